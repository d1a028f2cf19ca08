# pyright: basic, reportMissingImports=false
"""Starting a runner from the inputs of a session."""

from typing import Any

from google.adk.runners import Runner
from google.genai import types

from playhead.core.protocol.shape import is_object
from playhead.engine.entry import Inputs, register_starter


def fits(target: Any) -> bool:
    return isinstance(target, Runner)


async def start(runner: Any, inputs: Inputs) -> Any:
    """Runs the runner's agent with a session's inputs, in a new session of the framework's, and gives its text."""
    value = inputs.value if is_object(inputs.value) else {"prompt": inputs.value}
    user = str(value.get("user_id") or "playhead")
    session = await runner.session_service.create_session(app_name=runner.app_name, user_id=user)
    said: list[str] = []
    for turn in value.get("turns") or [value]:
        given = turn if is_object(turn) else {"prompt": turn}
        message = message_of(given.get("prompt"))
        said = [
            text_of(event)
            async for event in runner.run_async(user_id=user, session_id=session.id, new_message=message)
            if event.is_final_response()
        ]
    return "".join(said)


def message_of(prompt: Any) -> Any:
    if is_object(prompt):
        return types.Content.model_validate(prompt)
    return types.Content(role="user", parts=[types.Part(text=str(prompt))])


def text_of(event: Any) -> str:
    """What an event says, without the model's thoughts."""
    parts = event.content.parts if event.content is not None else None
    return "".join(part.text for part in parts or () if part.text and not part.thought)


def register() -> None:
    """Makes runners entry points."""
    register_starter(fits, start)
