"""TypedDicts in annotations, as pydantic takes them: before Python 3.12 it needs those of typing_extensions."""

import collections.abc
import sys
import types
import typing
from typing import Any


def portable(hint: Any, seen: tuple[Any, ...] = ()) -> Any:
    """The annotation with every TypedDict of ``typing`` as one of typing_extensions; the same where none is in it."""
    if sys.version_info >= (3, 12) or hint in seen:
        return hint
    if typing.is_typeddict(hint):
        return _again(hint, (*seen, hint))
    args: tuple[Any, ...] = typing.get_args(hint)
    made: tuple[Any, ...] = tuple(
        portable(each, seen) if typing.get_origin(hint) is not collections.abc.Callable else each for each in args
    )
    if made == args:
        return hint
    origin: Any = typing.get_origin(hint)
    if origin in (typing.Union, types.UnionType):
        return typing.Union[made]  # noqa: UP007 - of a tuple
    if origin is typing.Annotated:
        return typing.Annotated[(made[0], *hint.__metadata__)]
    return hint.copy_with(made) if hasattr(hint, "copy_with") else origin[made]


def _again(cls: Any, seen: tuple[Any, ...]) -> Any:
    import typing_extensions

    hints: dict[str, Any] = {name: portable(each, seen) for name, each in typing.get_type_hints(cls).items()}
    optional: frozenset[str] = cls.__optional_keys__
    fields = {
        name: typing_extensions.NotRequired[each] if name in optional else typing_extensions.Required[each]
        for name, each in hints.items()
    }
    make: Any = typing_extensions.TypedDict
    return make(cls.__name__, fields)
