"""Write the rows of a `program` stage to standard output.

    from tundish.rows import RowWriter

    with RowWriter({"image": ("uint8", [None, None, 3]), "label": ("int64", [])}) as rows:
        for image, label in examples(seed=rows.seed, epoch=rows.epoch):
            rows.write(image=image, label=label)

A sample that cannot be made is one bad row: an error of its step that names it, or left out and counted with
`on_error: skip`. The rows after it go on:

    try:
        image = decode(sample)
    except ValueError as error:
        rows.reject(error)

With `processes: 4` in the stage four processes run the program, and each writes its own rows: those of the numbers
`rows.first`, `rows.first + rows.step` and so on. Either the program makes these alone, or it passes over the others:

    for number in range(rows.first, len(files), rows.step):
        rows.write(**decode(files[number]))

    for image, label in itertools.islice(examples(), rows.first, None, rows.step):
        rows.write(image=image, label=label)

A program that does so may also say `seek: true`: where a place is resumed `rows.first` is then near that place.

A table's rows are written all at once, without a step of Python for each: of pyarrow, polars, DuckDB, Lance,
Iceberg, or anything else with Arrow's `__arrow_c_stream__`:

    with RowWriter({"price": "float32", "words": ("string", [None])}) as rows:
        rows.write_table(duckdb.sql("SELECT price, words FROM 'clicks.parquet'"), {"price": 0.0})

The columns, their dtypes, shapes and order are those of `spec` in the pipeline file. Values are
numbers, strings or bytes, nested lists of them, or NumPy arrays (NumPy is not needed). A value that
does not fit its column raises an exception; the stream then ends with its text. Nothing else may be
written to standard output, so print() goes to standard error as long as a RowWriter is open.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, BinaryIO, Protocol, TextIO

__all__ = ["RowWriter"]

_FORMATS = {
    "bool": "?", "uint8": "B", "int8": "b", "uint16": "H", "int16": "h", "uint32": "I",
    "int32": "i", "uint64": "Q", "int64": "q", "float16": "e", "float32": "f", "float64": "d",
}  # fmt: skip


_REJECTION_TEXT_MAX = 4096  # bytes


class ArrowTable(Protocol):
    """An object with a stream of Arrow's C interface, in a capsule."""

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...


class RowWriter:
    """Rows on their way to the server, buffered; close() or the end of `with` sends the last."""

    def __init__(
        self, spec: Mapping[str, Any], output: BinaryIO | None = None, buffer_bytes: int = 1 << 18
    ) -> None:
        self.epoch = int(os.environ.get("TUNDISH_EPOCH", "0"))
        self.worker = int(os.environ.get("TUNDISH_WORKER", "0"))
        self.num_workers = int(os.environ.get("TUNDISH_NUM_WORKERS", "1"))
        self.seed = int(os.environ.get("TUNDISH_SEED", "0"))
        self.first = int(os.environ.get("TUNDISH_FIRST_ROW", "0"))
        self.step = int(os.environ.get("TUNDISH_ROW_STEP", "1"))
        self._reject_word = os.environ.get("TUNDISH_REJECT", "").encode()
        self._columns = [(name, *_column(name, entry)) for name, entry in spec.items()]
        self._buffer = bytearray()
        self._buffer_bytes = buffer_bytes
        self._stdout: TextIO | None = None
        self._output: BinaryIO = sys.stdout.buffer if output is None else output
        if output is None:
            sys.stdout.flush()
            self._stdout = sys.stdout
            sys.stdout = sys.stderr

    def write(self, **row: Any) -> None:
        """Append a row: one value for each column, by name."""
        if len(row) != len(self._columns):
            self._refuse_names(row)
        begin = len(self._buffer)
        try:
            for name, dtype, shape in self._columns:
                if name not in row:
                    self._refuse_names(row)
                _append(self._buffer, name, dtype, shape, row[name])
        except BaseException:
            del self._buffer[begin:]  # whole rows only
            raise
        if len(self._buffer) >= self._buffer_bytes:
            self.flush()

    def reject(self, why: object) -> None:
        """Append a bad row: the server tells its number and the text, which may be an exception's."""
        if not self._reject_word:
            raise ValueError(f"a row is rejected, and no server that can be told so runs this: {why}")
        text = str(why).encode(errors="replace")[:_REJECTION_TEXT_MAX]
        self._buffer += self._reject_word + struct.pack("<Q", len(text)) + text
        if len(self._buffer) >= self._buffer_bytes:
            self.flush()

    def write_table(self, table: ArrowTable, default_values: Mapping[str, Any] | None = None) -> None:
        """Append the rows of a table, whose columns go by name; those not in the spec are left out.

        The dtypes must be the table's. Dates, times and timestamps are integers in the table's unit,
        a decimal of up to 18 digits is int64, unscaled; [None] is the shape of a list, and a list
        that is null is empty. Any other null must have a value in `default_values`.
        """
        from ._rows import TableRows

        values = default_values or {}
        for name in values:
            if all(name != column for column, _, _ in self._columns):
                raise ValueError(f"column {name} of default_values is not in the spec")
        columns = [
            (name, dtype, tuple(shape), _default(name, dtype, values.get(name)))
            for name, dtype, shape in self._columns
        ]
        parts = TableRows(table.__arrow_c_stream__(), columns)
        self.flush()
        for part in parts:
            self._output.write(part)

    def flush(self) -> None:
        """Send what is buffered."""
        self._output.write(self._buffer)
        self._output.flush()
        self._buffer.clear()

    def close(self) -> None:
        """Send the last rows, and give standard output back."""
        self.flush()
        if self._stdout is not None:
            sys.stdout, self._stdout = self._stdout, None

    def __enter__(self) -> RowWriter:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _refuse_names(self, row: Mapping[str, Any]) -> None:
        names = [name for name, _, _ in self._columns]
        raise ValueError(f"a row has the columns {', '.join(names)}, not {', '.join(row)}")


def _column(name: str, entry: Any) -> tuple[str, list[int | None]]:
    """A dtype, (dtype, shape), or {"dtype": ..., "shape": ...} as in the pipeline file."""
    if isinstance(entry, str):
        dtype, shape = entry, []
    elif isinstance(entry, dict):
        dtype, shape = entry["dtype"], entry.get("shape", [])
    else:
        dtype, shape = entry
    if dtype not in _FORMATS and dtype not in ("string", "bfloat16"):
        raise ValueError(f"column {name}: there is no dtype {dtype}")
    return dtype, list(shape)


def _default(name: str, dtype: str, value: Any) -> bytes | None:
    """The bytes of the value that stands for null."""
    if value is None:
        return None
    data = bytearray()
    _append(data, name, dtype, [], value)
    return bytes(data[8:] if dtype == "string" else data)


def _append(buffer: bytearray, name: str, dtype: str, shape: Sequence[int | None], value: Any) -> None:
    if hasattr(value, "tobytes") and str(getattr(value, "dtype", "")) == dtype:
        _append_array(buffer, name, shape, value)
        return
    if hasattr(value, "tolist"):
        value = value.tolist()
    sizes = _sizes(name, shape, value)
    for wanted, size in zip(shape, sizes):
        if wanted is None:
            buffer += struct.pack("<Q", size)
    values: list[Any] = []
    _flatten(name, value, sizes, values)
    if dtype == "string":
        for text in values:
            data = text.encode() if isinstance(text, str) else bytes(text)
            buffer += struct.pack("<Q", len(data))
            buffer += data
    elif dtype == "bfloat16":
        for number in values:
            buffer += _bfloat16(number)
    else:
        buffer += struct.pack(f"<{len(values)}{_FORMATS[dtype]}", *values)


def _append_array(buffer: bytearray, name: str, shape: Sequence[int | None], array: Any) -> None:
    """A NumPy array of the column's own dtype goes out as it lies."""
    _check_sizes(name, shape, array.shape)
    for wanted, size in zip(shape, array.shape):
        if wanted is None:
            buffer += struct.pack("<Q", size)
    buffer += array.tobytes()


def _sizes(name: str, shape: Sequence[int | None], value: Any) -> list[int]:
    """How long the nested lists are, outermost first."""
    sizes: list[int] = []
    inner = value
    for wanted in shape:
        if 0 in sizes:  # in no list there is nothing to be seen
            sizes.append(wanted or 0)
            continue
        if isinstance(inner, (str, bytes)) or not hasattr(inner, "__len__"):
            raise ValueError(f"column {name}: {len(shape)} dimensions are needed, not {len(sizes)}")
        sizes.append(len(inner))
        if len(inner) > 0:
            inner = inner[0]
    _check_sizes(name, shape, sizes)
    return sizes


def _check_sizes(name: str, shape: Sequence[int | None], sizes: Sequence[int]) -> None:
    if len(sizes) != len(shape):
        raise ValueError(f"column {name}: {len(shape)} dimensions are needed, not {len(sizes)}")
    for wanted, size in zip(shape, sizes):
        if wanted is not None and wanted != size:
            raise ValueError(f"column {name}: the shape {list(sizes)} does not fit {shape}")


def _flatten(name: str, value: Any, sizes: Sequence[int], values: list[Any]) -> None:
    if not sizes:
        values.append(value)
        return
    if len(value) != sizes[0]:
        raise ValueError(f"column {name}: its lists differ in length")
    for item in value:
        _flatten(name, item, sizes[1:], values)


def _bfloat16(number: float) -> bytes:
    """The nearest one, ties to even."""
    bits = struct.unpack("<I", struct.pack("<f", number))[0]
    if bits & 0x7FFFFFFF > 0x7F800000:
        return struct.pack("<H", bits >> 16 | 0x40)
    return struct.pack("<H", bits + 0x7FFF + (bits >> 16 & 1) >> 16)
