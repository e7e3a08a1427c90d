"""A batch: a mapping of column names to arrays."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from . import _tundish
from .dtypes import empty_array, numpy_array
from .errors import ArgumentError, ColumnError, MisuseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, NoReturn

    from .explaining import Rows

    Columns = Mapping[str, Any]
else:
    Columns = Mapping

_SHOWN = 4  # values of a column
_SHOWN_BYTES = 24  # of a string


class Batch(_tundish.Batch, Columns):
    """The columns of one step, as numpy arrays (or what the reader's `format` names).

    batch["x"] is a read-only view of shared memory, made at its first use; so is batch.x, if the
    name is an identifier that no attribute has. Columns of strings are tundish.Strings, ragged ones
    tundish.Ragged, sparse ones tundish.Sparse, whose parts are such views. The batch and each array
    of it keep its slot. The slot goes back to the server when the last of them is gone.
    """

    __slots__ = ()

    def __getattr__(self, name: str) -> Any:
        if name in self:
            return self[name]
        raise AttributeError(f"a batch has no attribute {name!r}{nearest(name, self)}")

    def __missing__(self, name: object) -> NoReturn:
        raise ColumnError(f"the stream has no column {name!r}{nearest(name, self)}")

    def __enter__(self) -> Batch:
        return self

    def __exit__(self, *exception: object) -> None:
        self.release()

    def __repr__(self) -> str:
        """Each column with its dtype, shape and first values."""
        head = f"<tundish.Batch epoch {self.epoch} step {self.step}"
        try:
            columns = [(name, *self._sketched(name)) for name in self]
        except MisuseError:  # it was released
            return f"{head}: {', '.join(self)}>"
        return table(head, columns)

    def _sketched(self, name: str) -> tuple[str, str]:
        """The type, and the first values if they are in the host's memory."""
        kind = self.reader.spec[name].kind
        column = self._shaped(name)
        values = column if kind == "dense" else column.values
        dtype = getattr(values, "dtype", "string")
        sizes = [len(column), "ragged"] if kind == "ragged" else column.shape
        text = f"{dtype}[{','.join(map(str, sizes))}]" + (" sparse" if kind == "sparse" else "")
        return text, "" if self.reader.device is not None else first_values(values)

    def rows(self) -> Rows:
        """Where each row came from: reader.explain(batch)."""
        return self.reader.explain(self)

    def widen(self, name: str) -> Any:
        """The column as deliver.widen says: value * scale + offset, in memory of its own.

        A writable numpy array, aligned to 64 bytes. On a device it is the column itself, which came
        so. ArgumentError: deliver.widen does not name it.
        """
        return self._shaped(name, self._widened(name))

    def _made(self, name: str) -> Any:
        """The column [name], where it is not just a view of dense numbers."""
        reader = self.reader
        if reader.convert is not None and name in reader.numbers:
            return reader.convert(self.array(name))
        widens = reader.widens and reader.device is None and reader.spec[name].widen_dtype is not None
        value = self.widen(name) if widens else self._shaped(name)
        return value if reader.convert is None else reader.convert(value)

    def _widened(self, name: str) -> Any:
        raw = self.array(name)
        dtype = self.reader.spec[name].widen_dtype
        if dtype is None:
            raise ArgumentError(f"deliver.widen does not name the column {name!r}")
        if self.reader.device is not None:
            return raw
        shape = raw.shape
        if self.reader.spec[name].widen_layout == "NCHW":
            shape = (shape[0], shape[3], *shape[1:3])
        values, memory = empty_array(shape, dtype)
        self._widen_into(name, memory)
        return values

    def _shaped(self, name: str, values: Any = None) -> Any:
        """The column as its kind has it, with these values in the place of its own."""
        spec = self.reader.spec[name]
        on_host = self.reader.device is None
        if spec.kind == "dense" and spec.dtype != "string":
            if values is None:
                values = self._view(name) if on_host else self.array(name)
            return values
        from .columns import Ragged, Sparse, Strings

        made = numpy_array if on_host else _itself
        first, *parts = self.parts(name)
        if values is None:
            values = made(first)
        if spec.dtype == "string":
            values = Strings(values, made(parts.pop(0)), parts.pop(0))
        if spec.kind == "ragged":
            return Ragged(values, tuple(map(made, parts[0])))
        if spec.kind == "sparse":
            return Sparse(values, made(parts[0]), parts[1])
        return values


def _itself(array: Any) -> Any:
    return array


def table(head: str, rows: Iterable[tuple[str, ...]]) -> str:
    """The text of an object: its head, and a line for each column."""
    rows = list(rows)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = ("  ".join(map(str.ljust, row, widths)).rstrip() for row in rows)
    return "\n  ".join([head, *lines]) + ">"


def first_values(values: Any) -> str:
    """An array's, or that of Strings."""
    from .columns import Strings

    if isinstance(values, Strings):
        return _listed([_quoted(text) for text in values.first(_SHOWN)], values.size)
    return _listed([_number(value) for value in values.reshape(-1)[:_SHOWN].tolist()], values.size)


def _listed(texts: list[str], count: int) -> str:
    return " ".join(texts) + (" ..." if count > len(texts) else "")


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _quoted(text: bytes) -> str:
    return repr(text) if len(text) <= _SHOWN_BYTES else f"{text[:_SHOWN_BYTES]!r}..."


def nearest(name: object, names: Iterable[str]) -> str:
    """The end of the sentence: which of them was meant, or all there are."""
    import difflib

    close = difflib.get_close_matches(str(name), names, n=1)
    if close:
        return f": did you mean {close[0]!r}?"
    return f": it has {', '.join(map(repr, names))}"
