"""Rules: for each function its signature, the spec of its result, and how a pipeline file says it.

The tables of this folder are lists of rules. Calls that a program may make, those that are refused with which remedy,
and the table in the documentation are all made of them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NoReturn

from ..graph import Call, Column, Spec

__all__ = [
    "Bound",
    "Expression",
    "Parse",
    "Refused",
    "Rewrite",
    "Rule",
    "StageRule",
    "UNKNOWN",
    "is_literal",
    "refuse",
]

Bound = dict[str, Any]  # parameter to argument, with defaults
Infer = Callable[[Bound], Any]
UNKNOWN: Infer = lambda bound: Spec()


class Refused(Exception):
    """Raised while a call is lowered: why it cannot be, and the remedy. call: the call, where it is not the
    one that is looked at but one that it needs."""

    def __init__(self, why: str, remedy: str, call: Call | None = None) -> None:
        super().__init__(why)
        self.why = why
        self.remedy = remedy
        self.call = call


def refuse(why: str, remedy: str = "") -> NoReturn:
    raise Refused(
        why, remedy or "write the stage by hand: see `tundish help stages`, `python` and `op`"
    )


@dataclass(eq=False)
class Rule:
    """of: the signature, as "tf.math.log1p(x, name=None)"; infer: the spec of the result, or a dict or
    list of specs."""

    of: str
    infer: Infer = UNKNOWN
    ignored: tuple[str, ...] = ("name",)  # parameters that change nothing

    def __post_init__(self) -> None:
        self.name, _, parameters = self.of.partition("(")
        self.signature = inspect.signature(eval("lambda " + parameters.rstrip()[:-1] + ": 0"))

    def bind(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Bound:
        try:
            bound = self.signature.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self.name}: {error}; it is {self.of}") from None
        bound.apply_defaults()
        return dict(bound.arguments)

    def given(self, bound: Bound, leave: tuple[str, ...] = ()) -> Bound:
        """The arguments that are not the defaults."""
        return {
            name: value
            for name, value in bound.items()
            if name not in leave
            and name not in self.ignored
            and not _is_default(value, self.signature.parameters[name].default)
        }

    @property
    def says(self) -> str:
        """The words of a pipeline file instead."""
        raise NotImplementedError


def _is_default(value: Any, default: Any) -> bool:
    if isinstance(value, Column) or default is inspect.Parameter.empty:
        return False
    return type(value) is type(default) and bool(value == default)


@dataclass(eq=False)
class Expression(Rule):
    """A function that expressions have.

    text: with the parameters in braces, or a function of (bound, write), where write(value, precedence)
        gives the text of an argument. precedence: of the outermost operator.
    unified: parameters that TensorFlow brings to one dtype, so that a literal needs none of its own.
    """

    text: Any = ""
    precedence: int = 100
    unified: tuple[str, ...] = ()

    @property
    def says(self) -> str:
        if not isinstance(self.text, str):
            return f"`{self.text.__doc__}`"
        shown = re.sub(r"[{](\w+)[^}]*[}]", r"\1", self.text)
        return f"`{shown}`"


@dataclass(eq=False)
class StageRule(Rule):
    """A function that is a content stage with one result.

    columns: the parameters that are columns, each one column, or a list of them with `joined`.
    alike: they have one dtype, so that a literal takes it.
    renamed: parameter to the stage's. fixed: parameters of the stage that are always the same.
    check: looks at the arguments, may change those for the stage, and refuses what is not the same.
    together: the stage may do several columns at once. draws: it draws, and the layer's state goes on.
    beside: parameters that are columns, too, and which the stage takes by name.
    also: of a function with two results, the stage's parameter that names the second.
    learned_as: the stage's parameter that names what `tundish analyze` learns; else its column does.
    """

    stage: str = ""
    columns: tuple[str, ...] = ()
    renamed: dict[str, str] = field(default_factory=dict)
    fixed: dict[str, Any] = field(default_factory=dict)
    check: Callable[[Bound, Bound], None] | None = None
    joined: bool = False
    alike: bool = False
    together: bool = True
    draws: bool = False
    beside: tuple[str, ...] = ()
    also: str = ""
    learned_as: str = ""
    shown: str = ""

    def inputs(self, bound: Bound) -> list[Any]:
        if self.joined:
            values = list(bound[self.columns[0]])
            return _of_one_dtype(values) if self.alike else values
        return [bound[name] for name in self.columns]

    def others(self, bound: Bound) -> dict[str, Any]:
        """The columns that the stage takes by name."""
        return {name: bound[name] for name in self.beside if bound[name] is not None}

    def parameters(self, bound: Bound) -> Bound:
        """The stage's parameters, without its columns."""
        given = self.given(bound, (*self.columns, *self.beside))
        parameters = {
            **self.fixed,
            **{self.renamed.get(name, name): value for name, value in given.items()},
        }
        if self.check is not None:
            self.check(bound, parameters)
        return parameters

    @property
    def says(self) -> str:
        return self.shown or f"`{self.stage}`"


def _of_one_dtype(values: list[Any]) -> list[Any]:
    from . import record
    from .specs import constant_spec

    dtype = next((constant_spec(each).dtype for each in values if not is_literal(each)), None)
    if dtype is None:
        return values
    return [record("tf.constant", (each,), {"dtype": dtype}) if is_literal(each) else each for each in values]


def is_literal(value: Any) -> bool:
    """Whether it is Python's number or text, or a list of them."""
    if isinstance(value, (list, tuple)):
        return all(map(is_literal, value))
    return isinstance(value, (bool, int, float, str, bytes))


@dataclass(eq=False)
class Parse(Rule):
    """A function that is a stage with several results: a parse stage.

    make: gives the stage's parameters for the results that are used, by (bound, {result: column name}).
    """

    stage: str = ""
    column: str = ""
    make: Callable[[Bound, dict[Any, str]], Bound] = lambda bound, names: {}
    check: Callable[[Bound], None] | None = None

    @property
    def says(self) -> str:
        return f"`{self.stage}`"


@dataclass(eq=False)
class Rewrite(Rule):
    """A function that is others: `into` calls them with its own arguments."""

    into: Callable[..., Any] = lambda: None
    shown: str = ""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.infer is UNKNOWN:
            self.infer = self._infer

    def _infer(self, bound: Bound) -> Any:
        try:
            result = self.into(**self.without_ignored(bound))
        except Refused:
            return Spec()
        return result.spec if isinstance(result, Column) else Spec()

    def without_ignored(self, bound: Bound) -> Bound:
        return {name: value for name, value in bound.items() if name not in self.ignored}

    @property
    def says(self) -> str:
        return self.shown or (self.into.__doc__ or "").strip()


@dataclass(eq=False)
class Refusal(Rule):
    """A function that a pipeline file has nothing for."""

    why: str = ""
    remedy: str = ""

    @property
    def says(self) -> str:
        return f"refused, because {self.why}: {self.remedy}"
