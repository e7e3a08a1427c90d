"""A column of rows that go into a Transform: checked, and in the form of the C library."""

from __future__ import annotations

import numpy

from .columns import Ragged, Strings
from .dtypes import numpy_dtype
from .errors import ArgumentError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .reader import ColumnSpec

__all__ = ["Input"]


class Input:
    """One input column of a stream."""

    def __init__(self, spec: ColumnSpec) -> None:
        self.spec = spec
        self.varies = bool(spec.shape) and spec.shape[0] is None

    def column(self, values: Any) -> tuple[int, tuple[Any, Any, Any]]:
        """The number of rows, and (values, offsets of strings, counts of a size that varies)."""
        count, counts, flat = self._flat(values)
        self._check_shape(flat.shape[1:], self.spec.shape[1:] if self.varies else self.spec.shape)
        if isinstance(flat, Strings):
            return count, (_ready(flat.bytes, "uint8"), _ready(flat.offsets, "int64"), counts)
        return count, (_ready(flat, self.spec.dtype), None, counts)

    def _flat(self, values: Any) -> tuple[int, Any, Any]:
        """Rows, counts or None, and the values, of which the first dimension is rows, or all items of
        the dimension that varies."""
        if not self.varies:
            dense = self._dense(values)
            return dense.shape[0], None, dense
        if isinstance(values, Ragged):
            if len(values.row_splits) != 1:
                raise self._wrong("only the first dimension of a row may vary")
            return len(values), numpy.diff(values.row_splits[0]), self._dense(values.values)
        rows = [self._dense(row) for row in values]
        counts = numpy.array([row.shape[0] for row in rows], numpy.int64)
        return len(rows), counts, self._joined(rows)

    def _joined(self, rows: list[Any]) -> Any:
        if self.spec.dtype == "string":
            return _texts([text for row in rows for text in row.numpy().ravel()],
                          (sum(row.shape[0] for row in rows), *(rows[0].shape[1:] if rows else ())))
        if not rows:
            return numpy.empty((0, *(size or 0 for size in self.spec.shape[1:])), self.spec.dtype)
        return numpy.concatenate(rows)

    def _dense(self, values: Any) -> Any:
        """Strings, or an array of the column's dtype, of one dimension or more."""
        made: Any
        if self.spec.dtype != "string":
            made = self._numbers(values)
        else:
            made = values if isinstance(values, Strings) else self._strings(values)
        if not made.shape:
            raise self._wrong("a single value is not a column of rows")
        return made

    def _strings(self, values: Any) -> Strings:
        array = numpy.asarray(values, dtype=object)
        texts = array.ravel().tolist()
        for i, text in enumerate(texts):
            if isinstance(text, str):
                texts[i] = text.encode()
            elif not isinstance(text, bytes):
                raise self._wrong(f"{text!r} is neither bytes nor str")
        return _texts(texts, array.shape)

    def _numbers(self, values: Any) -> numpy.ndarray[Any, Any]:
        wanted = numpy_dtype(self.spec.dtype)
        if not hasattr(values, "dtype"):
            return self._of_list(values, wanted)
        array = numpy.asarray(values)
        if array.dtype != wanted and not numpy.can_cast(array.dtype, wanted, "safe"):
            raise self._wrong(f"it is {array.dtype}: pass column.astype('{self.spec.dtype}')")
        return array

    def _of_list(self, values: Any, wanted: numpy.dtype[Any]) -> numpy.ndarray[Any, Any]:
        """Python's numbers have no dtype; they have to fit."""
        try:
            natural = numpy.asarray(values)
        except ValueError as error:
            raise self._wrong(str(error)) from error
        if natural.dtype.kind not in "buif":
            raise self._wrong(f"{_shown(values)} are not numbers that NumPy knows")
        with numpy.errstate(invalid="ignore", over="ignore"):
            array = natural.astype(wanted)
            fits = wanted.kind not in "bui" or bool((array == natural).all())
        if not fits:
            raise self._wrong(f"not all of {_shown(values)} fit into {self.spec.dtype}")
        return array

    def _check_shape(self, shape: tuple[int, ...], wanted: tuple[int | None, ...]) -> None:
        if shape != tuple(wanted):
            of_rows = "items" if self.varies else "rows"
            raise self._wrong(f"its {of_rows} have the shape {list(shape)} instead of {list(wanted)}")

    def _wrong(self, why: str) -> ArgumentError:
        shape = [*self.spec.shape]
        return ArgumentError(f"column {self.spec.name!r}, {self.spec.dtype}{shape} in each row: {why}")


def _shown(values: Any) -> str:
    text = repr(values)
    return text if len(text) < 50 else text[:50] + "..."


def _texts(texts: list[bytes], shape: tuple[int, ...]) -> Strings:
    offsets = numpy.zeros(len(texts) + 1, numpy.int64)
    numpy.cumsum([len(text) for text in texts], out=offsets[1:])
    return Strings(numpy.frombuffer(b"".join(texts), numpy.uint8), offsets, shape)


def _ready(array: Any, dtype: str) -> Any:
    """As the library reads it; copied only if it is not so already. Bytes: not all exporters of
    NumPy's dtypes have a format."""
    made = numpy.require(array, numpy_dtype(dtype), ("C", "A"))
    return made.reshape(-1).view(numpy.uint8)
