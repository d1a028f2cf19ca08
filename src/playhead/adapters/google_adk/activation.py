# pyright: basic, reportMissingImports=false
"""`install()`: the plugin in every runner, and a session, turn or agent call around each of its runs."""

import functools
from collections.abc import AsyncGenerator
from typing import Any

from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import Runner

from playhead.adapters.google_adk.plugin import NAME, PlayheadPlugin
from playhead.adapters.google_adk.requests import CODEC
from playhead.adapters.google_adk.starting import text_of
from playhead.engine.frames import leave
from playhead.engine.patching import Activation, Patches
from playhead.engine.running import scope_of, wanted

_CALLBACKS = (
    "before_tool_callback", "after_tool_callback", "on_tool_error_callback", "before_model_callback",
    "after_model_callback", "on_model_error_callback", "on_user_message_callback",
)  # fmt: skip


def _hooks() -> dict[str, bool]:
    found = {f"BasePlugin.{name}": hasattr(BasePlugin, name) for name in _CALLBACKS}
    return {"Runner.run_async": "run_async" in vars(Runner), **found}


def _wrap(patches: Patches) -> None:
    """The plugin stays in runners that have run, and does nothing outside a session."""
    patches.wrap(Runner, "run_async", functools.partial(_run, patches))


def _run(patches: Patches, original: Any) -> Any:
    @functools.wraps(original)
    async def run_async(self: Any, **given: Any) -> AsyncGenerator[Any]:
        events = original(self, **given)
        if not patches.active or not wanted():
            async for event in events:
                yield event
            return
        _plug_in(self)
        talk = f"{self.app_name}/{given.get('user_id')}/{given.get('session_id')}"  # a run goes on from its last one
        problems = ["the run goes on after a pause of another one"] if _answers(given) else []
        scope = scope_of(
            self, self.app_name, _inputs(given), by=CODEC, history=[talk], not_replayable=problems
        )  # fmt: skip
        scope.messages = [talk]
        said: list[str] = []
        scope.open()
        try:
            while True:
                token = scope.enter()
                try:
                    event = await anext(events, None)
                finally:
                    leave(token)
                if event is None:
                    break
                if event.is_final_response():
                    said.append(text_of(event))
                yield event
        except BaseException as error:
            try:
                await events.aclose()
            finally:
                scope.close(error)
            raise
        scope.output = "".join(said)
        scope.close()

    return run_async


def _plug_in(runner: Any) -> None:
    """Puts the plugin before a runner's others, unless it is there."""
    manager = runner.plugin_manager
    if manager.get_plugin(NAME) is None:
        manager.plugins.insert(0, PlayheadPlugin())


def _answers(given: dict[str, Any]) -> bool:
    """Whether the message answers a call of an earlier run."""
    message = given.get("new_message")
    return any(part.function_response is not None for part in (message.parts or () if message is not None else ()))


def _inputs(given: dict[str, Any]) -> dict[str, Any]:
    message = given.get("new_message")
    parts = message.parts or [] if message is not None else []
    plain = len(parts) == 1 and parts[0].text is not None
    told = parts[0].text if plain else None
    if message is not None and not plain:
        told = message.model_dump(mode="json", exclude_none=True)
    return {"prompt": told, "user_id": given.get("user_id")}


_activation = Activation("google-adk", "adapter-google-adk.md", hooks=_hooks, wrap=_wrap)
install, uninstall, is_installed = _activation.install, _activation.uninstall, _activation.is_installed
