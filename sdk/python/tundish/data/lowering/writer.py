"""Expressions as text."""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Callable
from typing import Any

from ..dtypes import as_dtype, of_value
from ..graph import Column
from . import expressions
from .rule import Expression, refuse
from .specs import constant_spec

__all__ = ["Writer", "literal", "quoted"]

_PLACE = re.compile(r"\{(\w+)(?:(\+)|:(\w+))?\}")
LITERALS = 256  # in one list
_WORDS = ("and", "or", "not", "if", "else")


class Writer:
    """Writes columns. name_of gives the name of a column that exists, or None; rule_of the rule and the
    arguments of a call."""

    def __init__(
        self, name_of: Callable[[Column], str | None], rule_of: Callable[[Column], Any]
    ) -> None:
        self.name_of = name_of
        self.rule_of = rule_of

    def __call__(self, value: Any, precedence: int = 0, needs_dtype: bool = True) -> str:
        """The text, in parentheses if its outermost operator binds less than `precedence`."""
        text, own = self._text(value, needs_dtype)
        return f"({text})" if own < precedence else text

    def _text(self, value: Any, needs_dtype: bool) -> tuple[str, int]:
        if isinstance(value, (list, tuple)):
            return "[" + ", ".join(self(item, 0, needs_dtype) for item in value) + "]", 100
        if not isinstance(value, Column):
            return literal(value), 100 if not _is_negative(value) else expressions.SIGN
        if (name := self.name_of(value)) is not None:
            return name, 100
        rule, bound = self.rule_of(value)
        if rule.name == "tf.constant":
            return self._constant(bound, needs_dtype)
        assert isinstance(rule, Expression)
        return self._expression(rule, bound)

    def _constant(self, bound: dict[str, Any], needs_dtype: bool) -> tuple[str, int]:
        value = bound["value"]
        dtype = constant_spec(value).dtype if bound["dtype"] is None else as_dtype(bound["dtype"])
        text = literal(value)
        if needs_dtype and dtype is not None and dtype != of_value(_plain(value)):
            if not _fits_float32(_plain(value)):  # as which cast would read it first
                return f"where(0 == 0, {text}, cast(0, {dtype}))", 100
            return f"cast({text}, {dtype})", 100
        return text, expressions.SIGN if _is_negative(value) else 100

    def _expression(self, rule: Expression, bound: dict[str, Any]) -> tuple[str, int]:
        bare = self._bare(rule, bound)

        def write(value: Any, precedence: int = 0) -> str:
            return self(value, precedence, not any(value is each for each in bare))

        if not isinstance(rule.text, str):
            return rule.text(bound, write), rule.precedence

        def fill(match: re.Match[str]) -> str:
            least = 0
            if match[2]:
                least = rule.precedence + 1
            elif match[3]:
                least = getattr(expressions, match[3])
            elif rule.precedence < 100:
                least = rule.precedence
            return write(bound[match[1]], least)

        text = _PLACE.sub(fill, rule.text)
        return text, rule.precedence

    def _bare(self, rule: Expression, bound: dict[str, Any]) -> list[Any]:
        """The literals that take the dtype of another argument."""
        values = [bound[name] for name in rule.unified]
        if all(self._is_literal(value) for value in values):
            return []
        return [value for value in values if self._is_literal(value)]

    def _is_literal(self, value: Any) -> bool:
        return not isinstance(value, Column) or (
            value.call is not None and value.call.name == "tf.constant"
        )


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _fits_float32(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(map(_fits_float32, value))
    try:
        return not isinstance(value, float) or struct.unpack("f", struct.pack("f", value))[0] == value
    except OverflowError:
        return False


def _is_negative(value: Any) -> bool:
    value = _plain(value)
    return isinstance(value, (int, float)) and math.copysign(1, value) < 0


def literal(value: Any) -> str:
    """A Python value in an expression."""
    value = _plain(value)
    if isinstance(value, bool):
        return "(1 == 1)" if value else "(1 == 0)"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        if not math.isfinite(value):
            refuse(f"an expression has no literal for {value}", "compute it from a column")
        return repr(value)
    if isinstance(value, (str, bytes)):
        return quoted(value)
    if isinstance(value, (list, tuple)) and value:
        if _count(value) > LITERALS:
            refuse(f"an expression has no more than {LITERALS} literals here", "make it a column of a dataset")
        return "[" + ", ".join(literal(item) for item in value) + "]"
    refuse(f"an expression has no literal for {type(value).__name__}", "make it a column of a dataset")
    raise AssertionError


def _count(value: Any) -> int:
    return sum(map(_count, value)) if isinstance(value, (list, tuple)) else 1


def quoted(text: str | bytes) -> str:
    """A text of an expression. It has no {column}, which the file would replace."""
    text = text.decode(errors="surrogateescape") if isinstance(text, bytes) else text
    return "'" + _ESCAPED.sub(_escape, text) + "'"


_ESCAPED = re.compile("[\\\\'\x00-\x1f\x7f\udc80-\udcff]|\\{(?=column\\})")
_SHORT = {"\\": "\\\\", "'": "\\'", "\n": "\\n", "\t": "\\t"}


def _escape(match: re.Match[str]) -> str:
    return _SHORT.get(match[0]) or f"\\x{ord(match[0]) & 0xFF:02x}"


def column_name(name: str) -> str:
    """A column's name in an expression."""
    if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name not in _WORDS:
        return name
    if "`" in name or "{column}" in name:
        refuse(f"no expression can name the column {name!r}", "give it another name")
    return f"`{name}`"
