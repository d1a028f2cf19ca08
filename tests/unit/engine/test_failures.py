"""Exceptions come back as themselves, or as a stand-in with the same text."""

import asyncio
import json
import subprocess
from collections.abc import Iterator
from typing import Any

import httpx
import pytest

from playhead.core.codec import dump, load
from playhead.core.values import ErrorInfo
from playhead.engine import failures
from playhead.engine.failures import capture, rebuild, register_error
from playhead.errors import ReplayedToolError


def raised(make: Any) -> BaseException:
    try:
        make()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def back(error: BaseException) -> Exception:
    return rebuild(load(ErrorInfo, json.loads(json.dumps(dump(capture(error))))))


@pytest.fixture
def registry() -> Iterator[None]:
    before = dict(failures._registered)
    yield
    failures._registered.clear()
    failures._registered.update(before)


class ApiError(Exception):
    def __init__(self, message: str, *, status: int, code: str) -> None:
        super().__init__(message)
        self.status = status
        self.code = code


def unicode_error() -> None:
    b"\xff".decode("utf-8")


@pytest.mark.parametrize(
    "error",
    [
        KeyError("missing"),
        ZeroDivisionError("division by zero"),
        TimeoutError("slow"),
        ConnectionError("gone"),
        FileNotFoundError(2, "No such file or directory", "/nowhere"),
        raised(unicode_error),
        raised(lambda: json.loads("{")),
        subprocess.CalledProcessError(3, ["x"], output="o"),
        ValueError("a", 2, None),
        ModuleNotFoundError("No module named 'x'", name="x"),
    ],
    ids=lambda e: type(e).__name__,
)
def test_known_errors_come_back_as_they_were(error: Exception):
    again = back(error)
    assert type(again) is type(error)
    assert (str(again), repr(again), again.args) == (str(error), repr(error), error.args)
    assert again is not error


def test_attributes_beside_args_come_back():
    assert raised(lambda: json.loads("{")).pos == back(raised(lambda: json.loads("{"))).pos  # type: ignore[attr-defined]
    assert back(ModuleNotFoundError("no", name="x")).name == "x"  # type: ignore[attr-defined]
    assert back(FileNotFoundError(2, "No such file", "/nowhere")).filename == "/nowhere"  # type: ignore[attr-defined]


def test_a_foreign_class_becomes_a_stand_in_with_text_status_and_code():
    again = back(ApiError("taken", status=409, code="dup"))
    assert isinstance(again, ReplayedToolError)
    assert (str(again), again.original_class, again.status, again.error_code) == ("taken", "ApiError", 409, "dup")


@pytest.mark.usefixtures("registry")
def test_a_registered_class_comes_back_without_its_init_running():
    register_error(ApiError)
    again = back(ApiError("taken", status=409, code="dup"))
    assert type(again) is ApiError
    assert (str(again), again.status, again.code) == ("taken", 409, "dup")


@pytest.mark.usefixtures("registry")
def test_a_registered_class_with_functions_is_made_by_them():
    register_error(ApiError, lambda e: [str(e), e.status], lambda form: ApiError(form[0], status=form[1], code="made"))
    again = back(ApiError("taken", status=409, code="dup"))
    assert (type(again), again.status, again.code) == (ApiError, 409, "made")  # type: ignore[attr-defined]


@pytest.mark.usefixtures("registry")
def test_a_class_that_comes_back_with_another_text_is_replaced_by_the_stand_in():
    register_error(ApiError, lambda e: None, lambda _: ApiError("other words", status=1, code="x"))
    assert isinstance(back(ApiError("taken", status=409, code="dup")), ReplayedToolError)


def test_only_exception_classes_can_be_registered():
    with pytest.raises(TypeError, match="Exception class"):
        register_error(KeyboardInterrupt)  # type: ignore[arg-type]


def test_a_group_comes_back_with_its_members():
    again = back(ExceptionGroup("two", [KeyError("a"), ApiError("taken", status=409, code="dup")]))
    assert isinstance(again, ExceptionGroup)
    one, two = again.exceptions
    assert (type(one), str(two)) == (KeyError, "taken")


def test_the_cause_keeps_its_text_and_status():
    def fail() -> None:
        try:
            raise ApiError("taken", status=409, code="dup")
        except ApiError as error:
            raise ValueError("outer") from error

    cause = back(raised(fail)).__cause__
    assert isinstance(cause, ReplayedToolError)
    assert (str(cause), cause.status) == ("taken", 409)


def test_an_http_status_error_keeps_class_text_status_and_retry_after():
    request = httpx.Request("GET", "http://127.0.0.1/x")
    response = httpx.Response(429, headers={"retry-after": "7"}, request=request)
    error = raised(response.raise_for_status)
    info = capture(error)
    assert (info.status, info.retry_after) == (429, 7.0)
    again = back(error)
    assert (type(again), str(again)) == (httpx.HTTPStatusError, str(error))
    assert again.response.status_code == 429  # type: ignore[attr-defined]


def test_base_exceptions_are_never_rebuilt():
    for error in (KeyboardInterrupt("x"), SystemExit(3), asyncio.CancelledError()):
        assert isinstance(back(error), ReplayedToolError)


def test_a_recorded_class_name_imports_and_finds_nothing_it_should_not():
    for module, name in (("os", "system"), ("builtins", "eval"), ("builtins", "KeyboardInterrupt"), ("nowhere", "X")):
        assert isinstance(rebuild(ErrorInfo(class_name=name, module=module, args=["x"])), ReplayedToolError)


def test_capturing_survives_exceptions_whose_own_methods_fail():
    class BrokenError(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

        @property
        def status(self) -> int:
            raise RuntimeError("no status")

    info = capture(BrokenError())
    assert (info.class_name.split(".")[-1], info.status) == ("BrokenError", None)


def test_a_cause_that_leads_back_to_the_error_ends():
    one, two = ValueError("one"), ValueError("two")
    one.__cause__, two.__cause__ = two, one
    info: Any = capture(one)
    depth = 0
    while info is not None:
        info, depth = info.cause, depth + 1
    assert depth < 20
