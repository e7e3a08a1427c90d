"""Values of Python as columns: what a sample of a data set, or of a function's result, says of `output`.

    columns([dataset[0], dataset[1]])  # {"0": {"dtype": "uint8", "shape": [None, None, 3]}, "1": ...}

A sample is a value or a nest of values: mappings, tuples, named tuples and dataclasses. A value's column has
the keys, fields and numbers that lead to it for a name, joined by points ("target.boxes"); a sample that is
one value is the column "value". Values are numbers, texts, bytes, NumPy arrays, torch tensors, images of
Pillow, and lists of these of one shape.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .dtypes import numpy_dtype

__all__ = ["array", "columns", "items_of", "leaves", "samples"]


def samples(make: Callable[[Any], Any], keys: Iterable[Any]) -> list[Any]:
    """make(key) for each key, without those that fail, which are bad rows. Raises the first error if all do."""
    found, failed = [], None
    for key in keys:
        try:
            found.append(make(key))
        except Exception as error:
            failed = failed or error
    if failed is not None and not found:
        raise failed
    return found


def leaves(sample: Any) -> dict[str, Any]:
    """The values of a sample by the names of their columns, in their order. A sample is not changed, and
    values are not copied. Raises ValueError where two have one name, as of the keys 1 and "1"."""
    found: dict[str, Any] = {}
    for path, value in _paths(sample, ()):
        name = ".".join(map(str, path)) or "value"
        if name in found:
            raise ValueError(f"two values of a sample are column '{name}': rename one of the keys")
        found[name] = value
    return found


def _paths(value: Any, path: tuple[Any, ...]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    items = items_of(value)
    if items is None:
        yield path, value
        return
    for key, item in items:
        yield from _paths(item, (*path, key))


def items_of(value: Any) -> Iterator[tuple[Any, Any]] | None:
    """The keys and items of a nest; None of a value."""
    if isinstance(value, Mapping):
        return iter(value.items())
    if isinstance(value, tuple):
        return zip(getattr(value, "_fields", range(len(value))), value, strict=True)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return ((field.name, getattr(value, field.name)) for field in dataclasses.fields(value))
    return None


def array(value: Any) -> np.ndarray[Any, Any]:
    """A value as numpy has it: without a copy where its memory can be shared, texts as objects."""
    if hasattr(value, "detach"):  # a tensor of torch
        value = value.detach().cpu()
        if str(value.dtype) == "torch.bfloat16":
            import torch

            return np.asarray(value.view(torch.int16).numpy().view(numpy_dtype("bfloat16")))
    if isinstance(value, str | bytes | bytearray):
        return np.asarray(value, object)
    found = np.asarray(value)
    return np.asarray(value, object) if found.dtype.kind in "SU" else found


def columns(samples: Sequence[Any]) -> dict[str, dict[str, Any]]:
    """The `output` of some samples: column to {"dtype": str, "shape": list}. A dimension in which they
    differ is None.

    Raises ValueError, which names the column, where a value is none that a column can hold (None, an object),
    or where samples have other columns, dtypes or numbers of dimensions.
    """
    if not samples:
        raise ValueError("there is no sample: write output")
    first = {name: _described(name, value) for name, value in leaves(samples[0]).items()}
    if not first:
        raise ValueError(f"a sample has no values: it is {samples[0]!r}")
    for number, sample in enumerate(samples[1:], 1):
        other = {name: _described(name, value) for name, value in leaves(sample).items()}
        if list(other) != list(first) and set(other) != set(first):
            said = ", ".join(sorted(set(first) ^ set(other)))
            raise ValueError(f"samples differ in their columns: {said} is not in both 0 and {number}")
        for name, column in first.items():
            _join(name, column, other[name], number)
    return first


def _join(name: str, column: dict[str, Any], other: dict[str, Any], number: int) -> None:
    for what, a, b in (
        ("dtype", column["dtype"], other["dtype"]),
        ("number of dimensions", len(column["shape"]), len(other["shape"])),
    ):
        if a != b:
            raise ValueError(
                f"column '{name}' has another {what} in sample {number} ({b}) than before ({a}): "
                "convert it, or write output"
            )
    column["shape"] = [a if a == b else None for a, b in zip(column["shape"], other["shape"], strict=True)]


def _described(name: str, value: Any) -> dict[str, Any]:
    if value is None:
        raise ValueError(f"column '{name}' is None, which has no dtype: give a value in its place")
    try:
        found = array(value)
    except (TypeError, ValueError) as error:
        raise ValueError(f"column '{name}' is {_kind_of(value)}, which is no array: {error}") from None
    dtype = _dtype(found)
    if dtype is None:
        raise ValueError(
            f"column '{name}' is {_kind_of(value)}, which no column can hold: return numbers, texts or arrays"
        )
    return {"dtype": dtype, "shape": list(found.shape)}


def _kind_of(value: Any) -> str:
    dtype = getattr(value, "dtype", None)
    return type(value).__name__ if dtype is None else f"{type(value).__name__} of {dtype}"


_KNOWN = frozenset(
    [*(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)), "bool", "bfloat16"]
    + ["float16", "float32", "float64"]
)


def _dtype(found: np.ndarray[Any, Any]) -> str | None:
    if found.dtype.name in _KNOWN:
        return str(found.dtype.name)
    if found.dtype.kind != "O" or not found.size:
        return None
    texts = all(isinstance(text, str | bytes | bytearray) for text in found.ravel().tolist())
    return "string" if texts else None
