"""placeholder"""
from typing import Any


def judge(context: Any, params: Any, *, default_model: str | None) -> Any: ...
