"""Functions that the expressions of map and filter have."""

from __future__ import annotations

import re
from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from . import specs
from .rule import Bound, Expression, Rule, refuse
from .specs import as_first, as_floats, broadcast, of_dtype, reduced, reduced_as, truth

__all__ = ["RULES"]

# Precedence, as in Python.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, SIGN, POWER = range(1, 9)


def _binary(name: str, sign: str, precedence: int, infer: Any = broadcast("x", "y")) -> Rule:
    # The operators that are not associative bind their right side closer.
    right = "{y}" if precedence == POWER else "{y+}"
    left = "{x+}" if precedence in (POWER, COMPARE) else "{x}"
    return Expression(
        f"{name}(x, y, name=None)",
        infer,
        text=f"{left} {sign} {right}",
        precedence=precedence,
        unified=("x", "y"),
    )


def _unary(name: str, text: str, infer: Any = as_first, precedence: int = 100) -> Rule:
    return Expression(f"{name}(x, name=None)", infer, text=text, precedence=precedence)


def _reduction(name: str, function: str, infer: Any = reduced) -> Rule:
    return Expression(f"{name}(input_tensor, axis=None, name=None)", infer, text=_reduce(function))


def _reduce(function: str) -> Any:
    def write(bound: Bound, writer: Any) -> str:
        x = writer(bound["input_tensor"])
        axis = bound["axis"]
        if axis is None:
            return f"{function}({x})"
        return f"{function}({x}, axis={_axes(axis)})"

    write.__doc__ = f"{function}(x, axis=axis)"
    return write


def _axes(axis: Any) -> str:
    if isinstance(axis, Column):
        refuse("the axis must be a constant", "write the number")
    if isinstance(axis, (list, tuple)):
        return "[" + ", ".join(str(int(number)) for number in axis) + "]"
    return str(int(axis))


def _extremum(name: str, function: str) -> Rule:
    def write(bound: Bound, writer: Any) -> str:
        x, y = writer(bound["x"]), writer(bound["y"])
        if re.fullmatch(r"\[[-0-9, ]*\]", y):  # would look like axes
            dtype = broadcast("x", "y")(bound).dtype
            return f"{function}({y}, {x})" if dtype is None else f"{function}({x}, cast({y}, {dtype}))"
        return f"{function}({x}, {y})"

    write.__doc__ = f"{function}(x, y)"
    return Expression(f"{name}(x, y, name=None)", broadcast("x", "y"), text=write, unified=("x", "y"))


def _argmax(bound: Bound, writer: Any) -> str:
    """argmax(x, axis=axis)"""
    return f"argmax({writer(bound['input'])}, axis={_axes(0 if bound['axis'] is None else bound['axis'])})"


def _cast(bound: Bound, writer: Any) -> str:
    """cast(x, dtype)"""
    return f"cast({writer(bound['x'])}, {as_dtype(bound['dtype'])})"


def _where(bound: Bound, writer: Any) -> str:
    """where(condition, x, y)"""
    if bound["x"] is None or bound["y"] is None:
        refuse("tf.where with one argument gives the places of values, whose number is not known")
    parts = (writer(bound["condition"]), writer(bound["x"]), writer(bound["y"]))
    return f"where({', '.join(parts)})"


def _where_spec(bound: Bound) -> Spec:
    spec = broadcast("x", "y")(bound)
    return Spec(spec.dtype, broadcast("condition", "x", "y")(bound).shape, spec.kind)


def _argmax_spec(bound: Bound) -> Spec:
    return reduced_as("int64")({**bound, "axis": 0 if bound["axis"] is None else bound["axis"]})


def _slice(bound: Bound, writer: Any) -> str:
    """x[a:b:c]"""
    items = bound["slice_spec"]
    items = items if isinstance(items, tuple) else (items,)
    return f"{writer(bound['tensor'], 100)}[{', '.join(_item(item, writer) for item in items)}]"


def _item(item: Any, writer: Any) -> str:
    if item is Ellipsis:
        return "..."
    if item is None:
        refuse("a new axis inside [] has no expression", "use tundish.tf.expand_dims")
    if isinstance(item, slice):
        parts = ["" if part is None else writer(part) for part in (item.start, item.stop)]
        return ":".join(parts) + ("" if item.step is None else f":{writer(item.step)}")
    text: str = writer(item)
    return text


def _sliced(bound: Bound) -> Spec:
    spec = bound["tensor"].spec if isinstance(bound["tensor"], Column) else Spec()
    items = bound["slice_spec"]
    items = items if isinstance(items, tuple) else (items,)
    if spec.shape is None or any(item is None for item in items):
        return Spec(spec.dtype, None, spec.kind)
    shape = list(spec.shape)
    if Ellipsis in [item if item is Ellipsis else None for item in items]:
        at = next(i for i, item in enumerate(items) if item is Ellipsis)
        filler = (slice(None),) * (len(shape) - len(items) + 1)
        items = (*items[:at], *filler, *items[at + 1 :])
    result: list[int | None] = []
    for axis, size in enumerate(shape):
        item = items[axis] if axis < len(items) else slice(None)
        if isinstance(item, slice):
            result.append(_cut(item, size))
    return Spec(spec.dtype, tuple(result), spec.kind)


def _cut(item: slice, size: int | None) -> int | None:
    if size is None or any(isinstance(part, Column) for part in (item.start, item.stop, item.step)):
        return size if item.start is item.stop is item.step is None else None
    return len(range(*item.indices(size)))


def _join(bound: Bound, writer: Any) -> str:
    """a + separator + b"""
    texts = [writer(each, ADD) for each in bound["inputs"]]
    if bound["separator"]:
        texts = [part for text in texts for part in (writer(bound["separator"]), text)][1:]
    return " + ".join(texts)


def _joined_spec(bound: Bound) -> Spec:
    parts = {str(i): value for i, value in enumerate(bound["inputs"])}
    spec = broadcast(*parts)(parts)
    return Spec("string", spec.shape, spec.kind)


def _clip(bound: Bound, writer: Any) -> str:
    """clip(x, low, high)"""
    return (
        f"clip({', '.join(writer(bound[name]) for name in ('t', 'clip_value_min', 'clip_value_max'))})"
    )


def _uniform(bound: Bound, writer: Any) -> str:
    """stateless_uniform(s0, s1, n)"""
    shape = bound["shape"]
    if isinstance(shape, Column) or len(shape) > 1:
        refuse("stateless_uniform makes one number, or a vector", "use shape=[] or [n], then reshape")
    if bound["alg"] != "auto_select":
        refuse("only alg='auto_select'")
    seed = bound["seed"]
    seeds = list(seed) if isinstance(seed, (list, tuple)) else [seed[0], seed[1]]
    if len(seeds) != 2:
        refuse("seed must have shape [2]", "give two numbers or columns")
    count = f", {int(shape[0])}" if len(shape) else ""
    return f"stateless_uniform({writer(seeds[0])}, {writer(seeds[1])}{count})"


RULES: list[Rule] = [
    _binary("tf.add", "+", ADD),
    _binary("tf.subtract", "-", ADD),
    _binary("tf.multiply", "*", MULTIPLY),
    _binary("tf.truediv", "/", MULTIPLY, as_floats),
    _binary("tf.divide", "/", MULTIPLY, as_floats),
    _binary("tf.math.floordiv", "//", MULTIPLY),
    _binary("tf.math.floormod", "%", MULTIPLY),
    _binary("tf.pow", "**", POWER),
    _binary("tf.less", "<", COMPARE, truth("x", "y")),
    _binary("tf.less_equal", "<=", COMPARE, truth("x", "y")),
    _binary("tf.greater", ">", COMPARE, truth("x", "y")),
    _binary("tf.greater_equal", ">=", COMPARE, truth("x", "y")),
    _binary("tf.equal", "==", COMPARE, truth("x", "y")),
    _binary("tf.not_equal", "!=", COMPARE, truth("x", "y")),
    _binary("tf.math.logical_xor", "!=", COMPARE, truth("x", "y")),
    _binary("tf.logical_and", "and", AND, truth("x", "y")),
    _binary("tf.logical_or", "or", OR, truth("x", "y")),
    _unary("tf.logical_not", "not {x:NOT}", precedence=NOT),
    _unary("tf.negative", "-{x:POWER}", precedence=SIGN),
    *(
        _unary(name, f"{name.rpartition('.')[2]}({{x}})")
        for name in (
            "tundish.abs", "tf.sign", "tf.sqrt", "tf.exp", "tf.math.log", "tf.math.log1p", "tf.math.expm1",
            "tf.floor", "tf.math.ceil", "tf.round", "tf.sin", "tf.cos", "tf.tanh", "tf.sigmoid",
        )
    ),
    _unary("tundish.same", "{x}"),
    _unary("tundish.length", "length({x})", specs.with_dtype("int32")),
    _unary("tundish.size", "size({x})", specs.dense("int64", ())),
    _unary("tf.nn.tanh", "tanh({x})"),
    _unary("tf.nn.sigmoid", "sigmoid({x})"),
    _unary("tf.math.is_nan", "isnan({x})", truth("x")),
    _unary("tf.math.is_finite", "isfinite({x})", truth("x")),
    _extremum("tf.maximum", "max"),
    _extremum("tf.minimum", "min"),
    Expression(
        "tf.clip_by_value(t, clip_value_min, clip_value_max, name=None)",
        broadcast("t", "clip_value_min", "clip_value_max"),
        text=_clip,
        unified=("t", "clip_value_min", "clip_value_max"),
    ),
    Expression("tf.cast(x, dtype, name=None)", of_dtype("dtype"), text=_cast),
    Expression(
        "tf.where(condition, x=None, y=None, name=None)", _where_spec, text=_where, unified=("x", "y")
    ),
    Expression("tundish.slice(tensor, slice_spec, name=None)", _sliced, text=_slice),
    _reduction("tundish.reduce_sum", "sum"),
    _reduction("tundish.reduce_mean", "mean"),
    _reduction("tundish.reduce_min", "min"),
    _reduction("tundish.reduce_max", "max"),
    _reduction("tundish.reduce_any", "any"),
    _reduction("tundish.reduce_all", "all"),
    Expression(
        "tundish.argmax(input, axis=None)", _argmax_spec, text=_argmax, ignored=()
    ),
    Expression("tf.strings.join(inputs, separator='', name=None)", _joined_spec, text=_join, precedence=ADD),
    Expression(
        "tundish.stateless_uniform(shape, seed, alg='auto_select')",
        lambda bound: Spec("float32", tuple(bound["shape"])),
        text=_uniform,
    ),
    Expression("tf.constant(value, dtype=None, shape=None, name=None)", specs.of_constant, text="{value}"),
]  # fmt: skip
