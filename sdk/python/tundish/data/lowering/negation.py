"""`not` of a comparison, as TensorFlow's optimizer has it.

TensorFlow runs a function of tf.data as a graph, in which it writes not(x > 0) as x <= 0, if nothing else
reads x > 0; equal calls are one there. At NaN the two differ.
"""

from __future__ import annotations

from typing import Any

from ..graph import Call, Column
from . import find

__all__ = ["INVERSE", "negated"]

INVERSE = {
    "tf.less": "tf.greater_equal",
    "tf.less_equal": "tf.greater",
    "tf.greater": "tf.less_equal",
    "tf.greater_equal": "tf.less",
}
_NOT = "tf.logical_not"


def negated(outputs: list[Any]) -> dict[int, Call]:
    """The comparison by the serial of the call that negates it, where nothing else reads it."""
    readers: dict[Any, set[Any]] = {}
    nots: list[tuple[Call, Call]] = []
    seen: set[int] = set()

    def visit(value: Any, reader: Any) -> None:
        if isinstance(value, dict):
            value = list(value.values())
        if isinstance(value, slice):
            value = [value.start, value.stop, value.step]
        if isinstance(value, (list, tuple)):
            for each in value:
                visit(each, reader)
        if not isinstance(value, Column) or value.call is None:
            return
        readers.setdefault(keys.of(value), set()).add(reader)
        call = value.call
        if call.serial in seen:
            return
        seen.add(call.serial)
        of = _operand(call)
        if _name(call) == _NOT and isinstance(of, Column) and of.call is not None and _is_ordered(of.call):
            nots.append((call, of.call))
        visit((call.args, call.kwargs), keys.of(value))

    keys = _Keys()
    for output in outputs:
        visit(output, "output")
    return {call.serial: of for call, of in nots if len(readers[keys.of(_operand(call))]) == 1}


def _is_ordered(call: Call) -> bool:
    return _name(call) in INVERSE


def _operand(call: Call) -> Any:
    return next(iter((*call.args, *call.kwargs.values())), None)


def _name(call: Call) -> str:
    rule = find(call.name)
    return call.name if rule is None else rule.name


class _Keys:
    """Values that are equal calls have equal keys."""

    def __init__(self) -> None:
        self._made: dict[int, Any] = {}
        self._numbers: dict[Any, int] = {}

    def of(self, value: Any) -> Any:
        if isinstance(value, Column):
            if value.call is None:
                return ("input", id(value.field.name) if value.field is not None else id(value))
            if id(value) not in self._made:
                call = value.call
                own = (_name(call), self.of(list(call.args)), self.of(call.kwargs), value.index, id(call.layer))
                self._made[id(value)] = ("call", self._numbers.setdefault(own, len(self._numbers)))
            return self._made[id(value)]
        if isinstance(value, dict):
            return tuple((name, self.of(each)) for name, each in value.items())
        if isinstance(value, slice):
            return self.of([value.start, value.stop, value.step])
        if isinstance(value, (list, tuple)):
            return tuple(map(self.of, value))
        return repr(value)
