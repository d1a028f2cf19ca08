"""Calls that reach an inline replay from somewhere else: other sessions, threads, processes, and after its end."""

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import playhead
from playhead.engine.recorder import Recorder

CALLS: list[str] = []


@playhead.tool
def pay(to: str) -> str:
    CALLS.append(to)
    return f"paid {to}"


def record(agent: Any, *args: Any) -> None:
    agent(*args)
    playhead.flush()
    CALLS.clear()


def in_thread(run: Callable[[], object]) -> None:
    """Runs something in a thread without context and swallows what it raises."""

    def swallowing() -> None:
        with suppress(BaseException):
            run()

    thread = threading.Thread(target=swallowing)
    thread.start()
    thread.join()


def test_a_second_session_of_a_replay_gets_no_answers_of_the_first(recorder: Recorder):
    answers: list[str] = []

    @playhead.agent("inner")
    def inner(prompt: str) -> str:
        return pay("grace")

    @playhead.agent("desk")
    def desk(prompt: str, elsewhere: bool = False) -> str:
        first = pay("ada")
        if elsewhere:  # a thread without the context of the replay opens a session of its own
            in_thread(lambda: answers.append(inner("q")))
        return first

    record(desk, "q")
    result = playhead.replay("last", agent=lambda prompt, elsewhere: desk(prompt, True))
    assert (answers, CALLS) == ([], [])
    assert result.error is not None
    assert result.error.code == "miss"
    assert '"to":"grace"' in result.error.message
