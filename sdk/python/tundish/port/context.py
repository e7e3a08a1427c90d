"""An InputContext whose numbers have names, and what a program asks of them while it makes its dataset."""

from __future__ import annotations

import operator
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from . import origin

PIPELINES = "$num_input_pipelines"
_LEAST = {PIPELINES: 1, "$input_pipeline_id": 0, "$num_replicas_in_sync": 1}
_BIG = 1 << 40
_LOGGING = sys.modules["logging"].__file__


@dataclass(frozen=True)
class Asked:
    """A comparison that the program made of a number: `subject <operator> other`, and the answer that it
    got."""

    subject: Symbol
    operator: str
    other: Any
    answer: bool
    origin: origin.Origin


@dataclass(eq=False)
class Run:
    """One call of a function of an InputContext.

    forced: the answers to its first comparisons; later ones are as the numbers are. asked: all of them.
    used: the lines on which a number became a plain one, which nothing can be known of.
    """

    forced: list[bool] = field(default_factory=list)
    asked: list[Asked] = field(default_factory=list)
    used: list[origin.Origin] = field(default_factory=list)

    def ask(self, subject: Symbol, name: str, other: Any) -> bool:
        """The answer to a comparison; the same one gets the same answer."""
        for each in self.asked:
            if (each.subject.formula, each.operator, _formula(each.other)) == (
                subject.formula, name, _formula(other),
            ):  # fmt: skip
                return each.answer
        count = len(self.asked)
        plain = bool(getattr(operator, name)(subject.number, _number(other)))
        answer = self.forced[count] if count < len(self.forced) else plain
        self.asked.append(Asked(subject, name, other, answer, origin.here()))
        return answer

    @property
    def answers(self) -> list[bool]:
        return [each.answer for each in self.asked]

    def others(self) -> Iterator[list[bool]]:
        """Answers that lead to other branches than this run's, as far as numbers can have them."""
        for i in range(len(self.forced), len(self.asked)):
            asked = self.asked[i]
            other = Asked(asked.subject, asked.operator, asked.other, not asked.answer, asked.origin)
            if all(_values([*self.asked[:i], other], name) for name in _LEAST):
                yield [*self.answers[:i], other.answer]

    @property
    def is_of_one(self) -> bool:
        """Whether its answers say that there is one input pipeline."""
        return _values(self.asked, PIPELINES) == {1}


def _values(asked: list[Asked], name: str) -> set[int]:
    """Values that a number may have by these answers: one of each range between the constants that it is
    compared with."""
    known = [each for each in asked if each.subject.text == name and isinstance(each.other, (int, float))]
    least = _LEAST[name]
    tried = {least, _BIG} | {int(each.other) + step for each in known for step in (-1, 0, 1)}
    return {
        value
        for value in tried
        if value >= least
        and all(getattr(operator, each.operator)(value, each.other) == each.answer for each in known)
    }


class Symbol:
    """A number of an InputContext: its value here, and its name in a pipeline file. A number computed
    from it has no name there; its formula tells it from others."""

    def __init__(self, run: Run, number: Any, text: str | None, formula: str | None = None) -> None:
        self.run = run
        self.number = number
        self.text = text
        self.formula = formula or str(text)

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """To the user's `isinstance` it is a number."""
        return type(self.number) if origin.asked_by_user(origin.caller()) else Symbol

    def plain(self) -> Any:
        """The number itself; the program goes on with it, and it is a plain one from here on."""
        frame = origin.caller()
        if frame is not None and frame.f_back is not None and frame.f_back.f_code.co_filename == _LOGGING:
            return self.number  # a message
        self.run.used.append(origin.here())
        return self.number

    def _computed(self, name: str, *operands: Any) -> Any:
        if not all(isinstance(_number(each), (int, float)) for each in operands):
            return NotImplemented
        number = getattr(operator, name)(*map(_number, operands))
        return Symbol(self.run, number, None, f"{name}({', '.join(map(_formula, operands))})")

    def __repr__(self) -> str:
        return repr(self.number)

    def __str__(self) -> str:
        return str(self.number)

    def __format__(self, spec: str) -> str:
        return format(self.number, spec)

    def __bool__(self) -> bool:
        return self.run.ask(self, "ne", 0)

    def __index__(self) -> int:
        return operator.index(self.plain())

    def __int__(self) -> int:
        return int(self.plain())

    def __float__(self) -> float:
        return float(self.plain())

    def __hash__(self) -> int:
        return hash(self.plain())

    def __array__(self, *args: Any, **kwargs: Any) -> Any:
        import numpy as np

        return np.asarray(self.plain(), *args)

    __trunc__ = __floor__ = __ceil__ = __int__

    def __round__(self, digits: int | None = None) -> Any:
        return round(self.plain(), digits)


def _number(value: Any) -> Any:
    return value.number if type(value) is Symbol else value


def _formula(value: Any) -> str:
    return value.formula if type(value) is Symbol else repr(value)


def plain(value: Any) -> Any:
    """Numbers for Symbols, for TensorFlow's own use, where the Symbol itself is on record."""
    if type(value) is Symbol:
        return value.number
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    return value


def _add_operators() -> None:
    for name in ("lt", "le", "gt", "ge", "eq", "ne"):

        def compare(self: Symbol, other: Any, name: str = name) -> Any:
            if not isinstance(_number(other), (int, float)):
                return NotImplemented
            return self.run.ask(self, name, other)

        setattr(Symbol, f"__{name}__", compare)
    for name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):

        def forward(self: Symbol, other: Any, name: str = name) -> Any:
            return self._computed(name, self, other)

        def backward(self: Symbol, other: Any, name: str = name) -> Any:
            return self._computed(name, other, self)

        setattr(Symbol, f"__{name}__", forward)
        setattr(Symbol, f"__r{name}__", backward)
    for name in ("neg", "pos", "abs"):
        setattr(Symbol, f"__{name}__", lambda self, name=name: self._computed(name, self))


_add_operators()
tf.register_tensor_conversion_function(
    Symbol, lambda value, dtype=None, name=None, as_ref=False: tf.constant(value.plain(), dtype)
)


class Context(tf.distribute.InputContext):  # type: ignore[misc]
    """An InputContext whose numbers have names. `others`: other numbers than TensorFlow's, to see which
    of them count without their names."""

    def __init__(self, run: Run, context: Any, others: bool = False) -> None:
        self._run, self._more = run, int(others)
        pipelines, number = context.num_input_pipelines, context.input_pipeline_id
        super().__init__(pipelines + 2 * self._more, number + self._more, context.num_replicas_in_sync)

    @property
    def num_input_pipelines(self) -> Any:
        return Symbol(self._run, self._num_input_pipelines, PIPELINES)

    @property
    def input_pipeline_id(self) -> Any:
        return Symbol(self._run, self._input_pipeline_id, "$input_pipeline_id")

    @property
    def num_replicas_in_sync(self) -> Any:
        return Symbol(self._run, self._num_replicas_in_sync + self._more, "$num_replicas_in_sync")

    def get_per_replica_batch_size(self, global_batch_size: int) -> Any:
        size = operator.index(global_batch_size)
        here = super().get_per_replica_batch_size(size) + self._more
        return Symbol(self._run, here, f"$per_replica_batch_size({size})")
