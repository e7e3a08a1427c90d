"""Functions that are content stages with one result."""

from __future__ import annotations

from typing import Any

from ..dtypes import as_dtype
from ..graph import Column, Spec
from .rule import Bound, Rule, StageRule, refuse
from .specs import as_first, with_dtype

__all__ = ["RULES"]


def _ragged_words(bound: Bound) -> Spec:
    spec = as_first(bound)
    if spec.shape == ():
        return Spec("string", (None,))
    return Spec("string", None if spec.shape is None else (*spec.shape, None), "ragged")


def _raw(bound: Bound) -> Spec:
    spec = as_first(bound)
    return Spec(as_dtype(bound["out_type"]), None if spec.shape is None else (*spec.shape, None))


def _one_hot(bound: Bound) -> Spec:
    spec, axis = as_first(bound), bound["axis"]
    values = [value for value in (bound["on_value"], bound["off_value"]) if value is not None]
    dtype = bound["dtype"]
    from ..dtypes import of_value

    dtype = as_dtype(dtype) if dtype is not None else of_value(values[0]) if values else "float32"
    if spec.shape is None:
        return Spec(dtype)
    at = len(spec.shape) if axis in (None, -1) else axis
    return Spec(dtype, (*spec.shape[:at], bound["depth"], *spec.shape[at:]))


def _dtype_word(name: str) -> Any:
    def check(bound: Bound, parameters: Bound) -> None:
        if name in parameters:
            parameters[name] = as_dtype(parameters[name])

    return check


def _check_one_hot(bound: Bound, parameters: Bound) -> None:
    if isinstance(bound["depth"], Column):
        refuse("the depth must be a constant", "write the number")
    _dtype_word("dtype")(bound, parameters)


def _reshaped(bound: Bound) -> Spec:
    shape = bound["shape"]
    if isinstance(shape, Column):
        return Spec(as_first(bound).dtype)
    return Spec(as_first(bound).dtype, tuple(None if size == -1 else int(size) for size in shape))


def _check_shape(bound: Bound, parameters: Bound) -> None:
    shape = bound["shape"]
    if isinstance(shape, Column) or any(isinstance(size, Column) for size in shape):
        refuse("the shape must be constant", "write -1 for the dimension that is not known")
    parameters["shape"] = [int(size) for size in shape]


def _expanded(bound: Bound) -> Spec:
    spec = as_first(bound)
    if spec.shape is None:
        return spec
    axis = bound["axis"] if bound["axis"] >= 0 else bound["axis"] + len(spec.shape) + 1
    return Spec(spec.dtype, (*spec.shape[:axis], 1, *spec.shape[axis:]), spec.kind)


def _squeezed(bound: Bound) -> Spec:
    spec, axis = as_first(bound), bound["axis"]
    if spec.shape is None or axis is None and None in spec.shape:
        return Spec(spec.dtype)
    axes = [i for i, size in enumerate(spec.shape) if size == 1] if axis is None else axis
    axes = [axes] if isinstance(axes, int) else axes
    gone = {i % len(spec.shape) for i in axes}
    return Spec(spec.dtype, tuple(size for i, size in enumerate(spec.shape) if i not in gone))


RULES: list[Rule] = [
    StageRule("tf.io.read_file(filename, name=None)", with_dtype("string"), stage="read_file", columns=("filename",)),
    StageRule(
        "tf.io.decode_raw(input_bytes, out_type, little_endian=True, fixed_length=None, name=None)",
        _raw,
        stage="decode_raw",
        columns=("input_bytes",),
        check=_dtype_word("out_type"),
    ),
    StageRule(
        "tf.strings.lower(input, encoding='', name=None)", as_first, stage="string_lower", columns=("input",)
    ),
    StageRule(
        "tf.strings.upper(input, encoding='', name=None)", as_first, stage="string_upper", columns=("input",)
    ),
    StageRule("tf.strings.strip(input, name=None)", as_first, stage="string_strip", columns=("input",)),
    StageRule(
        "tf.strings.split(input, sep=None, maxsplit=-1, name=None)",
        _ragged_words,
        stage="string_split",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.regex_replace(input, pattern, rewrite, replace_global=True, name=None)",
        as_first,
        stage="regex_replace",
        columns=("input",),
    ),
    StageRule(
        "tf.strings.to_number(input, out_type='float32', name=None)",
        lambda bound: Spec(as_dtype(bound["out_type"]), as_first(bound).shape, as_first(bound).kind),
        stage="string_to_number",
        columns=("input",),
        check=_dtype_word("out_type"),
    ),
    StageRule(
        "tf.one_hot(indices, depth, on_value=None, off_value=None, axis=None, dtype=None, name=None)",
        _one_hot,
        stage="one_hot",
        columns=("indices",),
        check=_check_one_hot,
    ),
    StageRule(
        "tf.reshape(tensor, shape, name=None)",
        _reshaped,
        stage="reshape",
        columns=("tensor",),
        check=_check_shape,
    ),
    StageRule("tf.expand_dims(input, axis, name=None)", _expanded, stage="expand_dims", columns=("input",)),
    StageRule("tf.squeeze(input, axis=None, name=None)", _squeezed, stage="squeeze", columns=("input",)),
]
