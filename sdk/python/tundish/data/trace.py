"""One run of a user's function with columns in place of values."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from ..errors import Error
from . import nest
from .graph import Column, Field, Name, Origin, Scope, Unsupported

__all__ = ["AbsentError", "DifferenceError", "TraceError", "UnsupportedError", "Traced", "columns_of", "fields_of", "trace"]


class TraceError(Error, TypeError):
    """The function asks for the value of a column. The text names the line and the remedy."""

    def __init__(self, origin: Origin, what: str, remedy: str) -> None:
        super().__init__(f"{origin.file}:{origin.line}: {what}: {remedy}")
        self.origin = origin
        self.remedy = remedy


class UnsupportedError(Error, NotImplementedError):
    """Everything in a program that Tundish would not carry over: `unsupported` is the list."""

    def __init__(self, unsupported: list[Unsupported]) -> None:
        self.unsupported = unsupported
        super().__init__("\n".join(str(each) for each in unsupported))
        self.remedy = unsupported[0].remedy if unsupported else ""


class DifferenceError(Error, AssertionError):
    """Dataset.check: where TensorFlow's batches are others. The text names step, column and values."""


class AbsentError(UnsupportedError, AttributeError):
    """A method of tf.data's that there is not: also an AttributeError, so that hasattr() tells."""


class Traced:
    """A function that was run: its input columns, what it returned, and its names for columns."""

    def __init__(self, inputs: Any, result: Any, names: dict[int, str], scope: Scope) -> None:
        self.inputs = inputs
        self.result = result
        self.names = names
        self.scope = scope


def columns_of(structure: Any, scope: Scope) -> Any:
    """A column for each component of an element."""
    return nest.transform(
        lambda leaf: (
            Column(None, leaf.spec, field=leaf, scope=scope) if isinstance(leaf, Field) else leaf
        ),
        structure,
    )


def trace(function: Callable[..., Any], structure: Any) -> Traced:
    """Run a function of an element. A tuple is its arguments, as in tf.data."""
    scope = Scope()
    inputs = columns_of(structure, scope)
    args = inputs if isinstance(inputs, tuple) and not hasattr(inputs, "_fields") else (inputs,)
    _suggest_names(function, args)
    names: dict[int, str] = {}
    result = _watched(function, args, names)
    return Traced(inputs, result, names, scope)


def _code(function: Callable[..., Any]) -> Any:
    return getattr(getattr(function, "__func__", function), "__code__", None)


def _suggest_names(function: Callable[..., Any], args: tuple[Any, ...]) -> None:
    """Components of a tuple are called as the first function that takes them calls them."""
    code = _code(function)
    if code is None or len(args) < 2:
        return
    parameters = code.co_varnames[: code.co_argcount]
    if hasattr(function, "__self__"):
        parameters = parameters[1:]
    used = {
        leaf.field.name.text for leaf in nest.flatten(args) if isinstance(leaf, Column) and leaf.field
    }
    for parameter, value in zip(parameters, args):
        if isinstance(value, Column) and value.field is not None and parameter not in used:
            value.field.name.suggest(parameter)


def _watched(function: Callable[..., Any], args: tuple[Any, ...], names: dict[int, str]) -> Any:
    """Call it, and note which variables it had for columns when it returned."""
    code = _code(function)
    previous = sys.getprofile()

    def watch(frame: Any, event: str, _: Any) -> None:
        if event == "return" and frame.f_code is code:
            for variable, value in frame.f_locals.items():
                if isinstance(value, Column):
                    names[id(value)] = variable

    sys.setprofile(watch)
    Scope.depth += 1
    try:
        result = function(*args)
    finally:
        Scope.depth -= 1
        sys.setprofile(previous)
    names.update(getattr(function, "variables", {}))  # of one that stands for another, and knows them
    return result


def fields_of(traced: Traced, base: Callable[[Column, dict[int, str]], str]) -> Any:
    """The components of a function's result, with the names that a person would give them: the keys of
    dictionaries, else the function's variables, else those of the columns that they were made of."""
    used: set[str] = set()
    leaves = list(nest.paths(traced.result))
    keys = [[key for key in path if isinstance(key, str)] for path, _ in leaves]
    for key in keys:
        if key:
            used.add(key[-1])
    taken: set[str] = set()
    fields = []
    for (path, leaf), key in zip(leaves, keys):
        is_chosen = bool(key)
        if key:
            text = key[-1] if key[-1] not in taken else "_".join(key)
        else:
            is_named = bool(path) and isinstance(leaf, Column) and id(leaf) in traced.names
            text = traced.names[id(leaf)] if is_named else base(leaf, traced.names)
            # A feature's path, as image/class/label, gives way to the name that a later function has for it.
            is_chosen = is_named or isinstance(leaf, Column) and "/" not in text
            if text in used:
                text = _free(text, used | taken)
        if text in taken:
            text = _free(text, used | taken)
        taken.add(text)
        spec = leaf.spec if isinstance(leaf, Column) else _constant_spec(leaf)
        fields.append(Field(Name(text, is_chosen), spec))
    iterator = iter(fields)
    return nest.transform(lambda _: next(iterator), traced.result)


def _constant_spec(value: Any) -> Any:
    from .lowering import constant_spec

    return constant_spec(value)


def _free(text: str, used: set[str]) -> str:
    number = 1
    while f"{text}_{number}" in used:
        number += 1
    return f"{text}_{number}"
