"""Options of functions: one that a function does not have is refused with the nearest that it has."""

from __future__ import annotations

import functools

from .batch import nearest
from .errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    Function = TypeVar("Function", bound=Callable[..., Any])

__all__ = ["OptionError", "names_of", "refuse_unknown", "spelt"]


class OptionError(ArgumentError, TypeError):
    """The function has no such option. Python's own error is a TypeError."""


def names_of(function: Callable[..., Any]) -> list[str]:
    """The parameters that may be given by name, in order."""
    function = getattr(function, "__wrapped__", function)
    code = function.__code__
    names = code.co_varnames[code.co_posonlyargcount : code.co_argcount + code.co_kwonlyargcount]
    return [name for name in names if name not in ("self", "cls")]


def refuse_unknown(taker: str, given: Iterable[str], known: Iterable[str]) -> None:
    names = list(known)
    for name in given:
        if name not in names:
            raise OptionError(f"{taker} has no option {name!r}{nearest(name, names)}")


def spelt(taker: str) -> Callable[[Function], Function]:
    """For a function whose options all have names: refuse others before it is called."""

    def checked(function: Function) -> Function:
        names = frozenset(names_of(function))

        @functools.wraps(function)
        def call(*arguments: Any, **options: Any) -> Any:
            if not names.issuperset(options):
                refuse_unknown(taker, options, names_of(function))
            return function(*arguments, **options)

        return call  # type: ignore[return-value]

    return checked
