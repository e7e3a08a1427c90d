"""Specs of results: TensorFlow's rules of dtype and static shape."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import as_dtype, of_value
from ..graph import Column, Spec
from .rule import Bound

__all__ = [
    "as_first", "as_floats", "broadcast", "constant_spec", "dense", "ensured_shape", "of_dtype", "reduced", "reduced_as", "shapes_together", "truth",
    "with_dtype",
]  # fmt: skip

Infer = Callable[[Bound], Spec]


def constant_spec(value: Any) -> Spec:
    """The spec of a Python value, as tf.constant makes it."""
    if isinstance(value, Column):
        return value.spec
    if isinstance(value, (list, tuple)) and (parts := _parts(value)):
        first = constant_spec(next((each for each in value if isinstance(each, Column)), value[0]))
        return Spec(parts[0].spec.dtype, None if first.shape is None else (len(value), *first.shape))
    shape: list[int | None] = []
    own = getattr(value, "shape", None)
    if own is not None:
        return Spec(of_value(value), tuple(own))
    inner = value
    while isinstance(inner, (list, tuple)):
        shape.append(len(inner))
        inner = inner[0] if inner else 0.0
    if not _fills(value, shape):
        raise ValueError(
            "lists of different lengths are no tensor: pad them, or read the rows from a file, as lists"
        )
    return Spec(of_value(value), tuple(shape))


def _fills(value: Any, shape: Sequence[int | None]) -> bool:
    """Is a nested list of this shape all through?"""
    if not isinstance(value, (list, tuple)):
        return not shape
    return len(shape) > 0 and len(value) == shape[0] and all(_fills(item, shape[1:]) for item in value)


def _parts(value: Any) -> list[Column]:
    """The columns in a nested list."""
    if isinstance(value, (list, tuple)):
        return [part for item in value for part in _parts(item)]
    return [value] if isinstance(value, Column) else []


def of_constant(bound: Bound) -> Spec:
    spec = constant_spec(bound["value"])
    return spec if bound["dtype"] is None else Spec(as_dtype(bound["dtype"]), spec.shape)


def _spec(value: Any) -> Spec:
    return value.spec if isinstance(value, Column) else Spec(None, constant_spec(value).shape)


def _first(bound: Bound) -> Spec:
    for value in bound.values():
        if isinstance(value, Column):
            return value.spec
    return Spec()


def as_first(bound: Bound) -> Spec:
    """That of the first column."""
    return _first(bound)


def ensured_shape(bound: Bound) -> Spec:
    """That of the column, with the sizes that the shape tells."""
    spec = bound["x"].spec
    sizes = [None if size in (None, -1) else int(size) for size in bound["shape"]]
    if spec.shape is not None and len(spec.shape) == len(sizes):
        sizes = [own if size is None else size for own, size in zip(spec.shape, sizes)]
    return Spec(spec.dtype, tuple(sizes), spec.kind)


def with_dtype(dtype: str) -> Infer:
    """A dtype, with the shape and the kind of the first column."""
    return lambda bound: Spec(dtype, _first(bound).shape, _first(bound).kind)


def of_dtype(parameter: str) -> Infer:
    """The dtype that a parameter names, with the shape and the kind of the first column."""

    def infer(bound: Bound) -> Spec:
        dtype = bound[parameter]
        return Spec(None if dtype is None else as_dtype(dtype), _first(bound).shape, _first(bound).kind)

    return infer


def dense(dtype: str | None, shape: tuple[int | None, ...] | None = None) -> Infer:
    return lambda bound: Spec(dtype, shape)


def shapes_together(shapes: list[tuple[int | None, ...] | None]) -> tuple[int | None, ...] | None:
    """The shape that they broadcast to."""
    if any(shape is None for shape in shapes):
        return None
    known = [shape for shape in shapes if shape is not None]
    rank = max((len(shape) for shape in known), default=0)
    together: list[int | None] = []
    for axis in range(-rank, 0):
        sizes = {shape[axis] for shape in known if len(shape) >= -axis} - {1}
        sizes.discard(1)
        together.append(1 if not sizes else next(iter(sizes)) if len(sizes) == 1 else _largest(sizes))
    return tuple(together)


def _largest(sizes: set[int | None]) -> int | None:
    known = [size for size in sizes if size is not None]
    return known[0] if len(known) == 1 else None


def broadcast(*parameters: str) -> Infer:
    """The dtype of these parameters, and the shape they broadcast to."""

    def infer(bound: Bound) -> Spec:
        values = [bound[name] for name in parameters]
        specs = [_spec(value) for value in values]
        dtype = next((spec.dtype for spec in specs if spec.dtype is not None), None)
        if dtype is None and not any(isinstance(value, Column) for value in values):
            dtype = constant_spec(values[0]).dtype
        kind = next((spec.kind for spec in specs if spec.kind != "dense"), "dense")
        shape = shapes_together([spec.shape for spec in specs])
        return Spec(dtype, shape, kind)

    return infer


def truth(*parameters: str) -> Infer:
    """A bool, of the shape that these parameters broadcast to."""

    def infer(bound: Bound) -> Spec:
        spec = broadcast(*parameters)(bound)
        return Spec("bool", spec.shape, spec.kind)

    return infer


def as_floats(bound: Bound) -> Spec:
    """x / y: integers become floats."""
    spec = broadcast("x", "y")(bound)
    dtype = spec.dtype
    if dtype in ("int8", "uint8", "int16", "uint16"):
        dtype = "float32"
    elif dtype is not None and "int" in dtype:
        dtype = "float64"
    return Spec(dtype, spec.shape, spec.kind)


def reduced(bound: Bound) -> Spec:
    """Without the dimensions of axis."""
    spec = _first(bound)
    axis = bound.get("axis")
    if axis is None:
        return Spec(spec.dtype, ())
    if spec.shape is None:
        return Spec(spec.dtype, None)
    rank = len(spec.shape)
    axes = (
        {number % rank for number in (axis if isinstance(axis, (list, tuple)) else [axis])}
        if rank
        else set()
    )
    return Spec(spec.dtype, tuple(size for i, size in enumerate(spec.shape) if i not in axes))


def reduced_as(dtype: str) -> Infer:
    return lambda bound: Spec(dtype, reduced(bound).shape)
