"""Batches of TensorFlow and of Tundish, column by column, to the bit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf

from ..columns import Ragged, Sparse, Strings

Parts = tuple[tuple[str, Any], ...]


@dataclass
class Difference:
    """The first difference of a column: the row, where it has rows, and a sentence."""

    column: str
    row: int | None
    text: str


def of_tensorflow(value: Any) -> Parts:
    """The parts of a tensor: dense arrays by name, and lists of texts."""
    if isinstance(value, tf.RaggedTensor):
        splits = [(f"row_splits[{i}]", np.asarray(s)) for i, s in enumerate(value.nested_row_splits)]
        return (*splits, ("values", _dense(value.flat_values.numpy())))
    if isinstance(value, tf.SparseTensor):
        shape = np.asarray(value.dense_shape)
        return (("shape", shape), ("indices", value.indices.numpy()), ("values", _dense(value.values.numpy())))
    return (("values", _dense(value.numpy())),)


def of_tundish(value: Any) -> Parts:
    """The same of a column."""
    if isinstance(value, Ragged):
        splits = [(f"row_splits[{i}]", np.asarray(s)) for i, s in enumerate(value.row_splits)]
        return (*splits, ("values", _dense(value.values)))
    if isinstance(value, Sparse):
        shape = np.asarray(value.shape)
        return (("shape", shape), ("indices", np.asarray(value.indices)), ("values", _dense(value.values)))
    return (("values", _dense(value)),)


def _dense(value: Any) -> Any:
    if isinstance(value, Strings):
        return np.asarray(value.numpy(), dtype=object)
    if isinstance(value, bytes):
        return np.asarray(value, dtype=object)
    return np.asarray(value)


def difference(column: str, expected: Parts, found: Parts, within: float = 0) -> Difference | None:
    """The first difference; None: they are the same, to the bit, or floats within a tolerance, which is
    relative, absolute below 1."""
    if [name for name, _ in expected] != [name for name, _ in found]:
        return Difference(column, None, f"TensorFlow gives {_kind(expected)}, Tundish {_kind(found)}")
    for (name, one), (_, other) in zip(expected, found, strict=True):
        told = _part_difference(name, one, other, within)
        if told is not None:
            return Difference(column, *told)
    return None


def _kind(parts: Parts) -> str:
    first = parts[0][0]
    return "a sparse column" if first == "shape" else "a dense one" if first == "values" else "a ragged one"


_ERRORS = 6  # how many standard errors two means may be apart


def unlike(expected: list[Parts], found: list[Parts]) -> str | None:
    """How two columns differ that are drawn at random, batch by batch; None: in nothing but chance."""
    for one, other in zip(expected, found, strict=True):
        kinds = [[(name, part.dtype, part.ndim) for name, part in each] for each in (one, other)]
        if kinds[0] != kinds[1]:
            return f"TensorFlow gives {kinds[0]}, Tundish {kinds[1]}"
        if len(one) == 1 and one[0][1].shape != other[0][1].shape:
            return f"TensorFlow has shape {list(one[0][1].shape)}, Tundish {list(other[0][1].shape)}"
    means = [np.concatenate([_row_means(each[-1][1]) for each in half] or [[]]) for half in (expected, found)]
    if min(len(each) for each in means) < 2:
        return None
    spread = sum(each.var(ddof=1) / len(each) for each in means) ** 0.5
    centres = [float(each.mean()) for each in means]
    if abs(centres[0] - centres[1]) > _ERRORS * spread + 1e-6 * max(map(abs, centres)):
        return f"the mean is {centres[0]:g} in TensorFlow, {centres[1]:g} in Tundish"
    return None


def _row_means(array: Any) -> Any:
    if array.dtype == object or not array.size:
        return np.zeros(0)
    return array.reshape(len(array) if array.ndim else 1, -1).astype(np.float64).mean(axis=1)


def _part_difference(name: str, one: Any, other: Any, within: float) -> tuple[int | None, str] | None:
    if name == "values" and one.dtype != other.dtype:
        return None, f"TensorFlow has dtype {one.dtype}, Tundish {other.dtype}"
    if one.shape != other.shape:
        return None, f"{name}: TensorFlow has shape {list(one.shape)}, Tundish {list(other.shape)}"
    is_near = _near(one, other, within) if within and one.dtype.kind == "f" else False
    unlike = np.argwhere(_unlike(one, other) & np.logical_not(is_near))
    if not len(unlike):
        return None
    at = tuple(unlike[0])
    where = f"{name}{list(map(int, at))}" if at else name
    row = int(at[0]) if at and name == "values" else None
    return row, f"{where}: TensorFlow has {one[at]!r}, Tundish {other[at]!r}"


def _unlike(one: Any, other: Any) -> Any:
    """Where the bits differ: 0.0 and -0.0 do, two NaNs of the same bits do not."""
    if one.dtype == object or one.dtype.kind in "biu":
        return np.asarray(one != other)
    bits = np.dtype(f"u{one.dtype.itemsize}")
    return np.asarray(_bits(one, bits) != _bits(other, bits))


def _near(one: Any, other: Any, within: float) -> Any:
    with np.errstate(invalid="ignore"):
        gap = np.abs(one.astype(np.float64) - other.astype(np.float64))
    near: Any = (gap <= within * np.maximum(1, np.abs(one))) | (np.isnan(one) & np.isnan(other)) | (one == other)
    return near


def _bits(array: Any, bits: Any) -> Any:
    return np.ascontiguousarray(array).view(bits).reshape(array.shape)


def count_rows(columns: Iterable[Parts]) -> int:
    """The most rows that a column of a batch has."""
    return max((_count(parts) for parts in columns), default=0)


def _count(parts: Parts) -> int:
    name, first = parts[0]
    if name == "shape":
        return int(first[0])
    if name == "values":
        return len(first) if first.ndim else 1
    return len(first) - 1


def rows(batches: list[list[Parts]]) -> Counter[bytes]:
    """How often each row occurs in these batches, for orders that nobody promises. A batch has the parts
    of each of its columns."""
    counted: Counter[bytes] = Counter()
    for batch in batches:
        counted.update(_rows(batch))
    return counted


def _rows(batch: list[Parts]) -> list[bytes]:
    columns = [_rows_of(parts) for parts in batch]
    return [b"|".join(row) for row in zip(*columns, strict=True)]


def _rows_of(parts: Parts) -> list[bytes]:
    if len(parts) != 1:
        return [repr([(name, part.tolist()) for name, part in parts]).encode()]  # the batch as one row
    array = parts[0][1]
    if array.ndim == 0:
        return [repr(array.tolist()).encode()]
    if array.dtype == object:
        return [repr(row).encode() for row in array.tolist()]
    return [row.tobytes() for row in array]
