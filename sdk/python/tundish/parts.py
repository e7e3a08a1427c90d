"""Columns of the pieces that they are made of: what transform and peek hand out."""

from __future__ import annotations

from functools import cache

try:
    import numpy
except ImportError as error:
    raise ImportError(
        "tundish.Transform and tundish.peek give numpy arrays, and numpy is not installed: pip install numpy"
    ) from error

from .columns import Ragged, Sparse, Strings
from .dtypes import numpy_dtype

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Column = numpy.ndarray[Any, Any] | Strings | Ragged | Sparse

__all__ = ["column"]


def column(dtype: str, kind: str, shape: Sequence[int], parts: Sequence[Any]) -> Column:
    """A view of parts, each an object with the buffer protocol.

    parts: values (of strings their bytes and offsets), then row_splits, outermost first, or indices.
    shape: -1 where row_splits say; of a sparse column the shape of the dense array.
    """
    if kind == "dense" and dtype != "string":
        return _array(parts[0], dtype, tuple(shape))
    rest = list(parts)
    take_values = _take_values(dtype, rest)
    if kind == "ragged":
        splits = tuple(_array(part, "int64") for part in rest)
        return Ragged(take_values((int(splits[-1][-1]), *shape[len(splits) + 1 :])), splits)
    if kind == "sparse":
        indices = _array(rest.pop(), "int64").reshape(-1, len(shape))
        return Sparse(take_values((len(indices),)), indices, tuple(shape))
    dense: Column = take_values(tuple(shape))
    return dense


def _take_values(dtype: str, rest: list[Any]) -> Callable[[tuple[int, ...]], Any]:
    """Removes the parts of the values; returns how to make the values, given their shape."""
    values = rest.pop(0)
    if dtype != "string":
        return lambda shape: _array(values, dtype, shape)
    offsets = _array(rest.pop(0), "int64")
    return lambda shape: Strings(_array(values, "uint8"), offsets, shape)


_dtype = cache(numpy_dtype)


def _array(part: Any, dtype: str, shape: tuple[int, ...] | None = None) -> numpy.ndarray[Any, Any]:
    made = _dtype(dtype)
    if shape is None:
        shape = (memoryview(part).nbytes // made.itemsize,)
    return numpy.ndarray(shape, made, part)  # refuses a part that is too small
