"""Columns that are not plain arrays: strings, ragged and sparse ones.

Each holds the arrays that a batch lends, and copies nothing until it is asked for another form. The
arrays keep the batch's slot in shared memory, as every array of a batch does; they are read-only.
NumPy is imported on the first use that needs it, a framework on the first use of its method.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, overload

from ._tundish import Array, DeviceArray

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from .batch import Batch
    from .reader import Reader

    Numbers = npt.NDArray[Any]
    Offsets = npt.NDArray[np.int64]

__all__ = ["Ragged", "Sparse", "Strings"]


class Strings:
    """Byte strings in an array of any shape.

    Value i, in row-major order, is `bytes[offsets[i]:offsets[i + 1]]`.

    bytes: uint8, all values one after the other.
    offsets: int64, one more than there are values; they never fall.
    shape: of the array of strings; the default is one dimension.
    """

    __slots__ = ("bytes", "offsets", "shape")

    def __init__(self, bytes: Numbers, offsets: Offsets, shape: tuple[int, ...] | None = None) -> None:
        self.bytes = bytes
        self.offsets = offsets
        self.shape = (len(offsets) - 1,) if shape is None else tuple(shape)

    @property
    def size(self) -> int:
        """How many strings there are."""
        return len(self.offsets) - 1

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("one string without a dimension has no length; numpy() has its value")
        return self.shape[0]

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            return iter(self._values())
        return (self[i] for i in range(len(self)))

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Strings: ...
    @overload
    def __getitem__(self, index: Any) -> Any: ...
    def __getitem__(self, index: Any) -> Any:
        """The result of NumPy's indexing: `bytes` for one string, else `Strings`.

        Strings that follow each other are a view; others are gathered into new memory.
        """
        if type(index) is int and len(self.shape) == 1:
            if not -self.size <= index < self.size:
                raise IndexError(f"string {index} of {self.size}")
            return self._value(index % self.size)
        import numpy as np

        picked = np.arange(self.size).reshape(self.shape)[index]
        if picked.ndim == 0:
            return self._value(int(picked))
        return self._picked(picked)

    def _value(self, i: int) -> builtins.bytes:
        return self.bytes[self.offsets[i] : self.offsets[i + 1]].tobytes()

    def first(self, count: int) -> list[builtins.bytes]:
        """The first `count` in row-major order, or all."""
        return [self._value(i) for i in range(min(count, self.size))]

    def _values(self) -> list[builtins.bytes]:
        text = self.bytes.tobytes()
        at = self.offsets.tolist()
        return [text[begin:end] for begin, end in zip(at, at[1:])]

    def _picked(self, picked: Numbers) -> Strings:
        import numpy as np

        flat = picked.ravel()
        if flat.size == 0:
            return Strings(self.bytes, self.offsets[:1], picked.shape)
        if (np.diff(flat) == 1).all():
            return Strings(self.bytes, self.offsets[flat[0] : flat[-1] + 2], picked.shape)
        begins = self.offsets[flat]
        lengths = self.offsets[flat + 1] - begins
        offsets = np.concatenate([[0], np.cumsum(lengths)])
        where = np.arange(offsets[-1]) + np.repeat(begins - offsets[:-1], lengths)
        return Strings(self.bytes[where], offsets, picked.shape)

    def copy(self) -> Strings:
        """The same in memory of its own, which keeps no batch."""
        return Strings(self.bytes.copy(), self.offsets.copy(), self.shape)

    def to_list(self) -> Any:
        """`bytes` in nested lists, as deep as there are dimensions."""
        return self.numpy().tolist()

    def numpy(self, dtype: Any = object) -> Numbers:
        """A new array of `shape`.

        dtype: `object` (Python's `bytes`, exact), `"S"` (as wide as the longest; NumPy drops NULs at
        the end of a value), or `numpy.dtypes.StringDType()` (`str`; from NumPy 2).
        Raises UnicodeDecodeError if `str` is wanted and a value is not UTF-8.
        """
        import numpy as np

        values: Numbers
        if dtype is object or dtype == "O":
            values = np.empty(self.size, object)
            values[:] = self._values()
        elif np.dtype(dtype).kind == "S":
            values = self._fixed(np.dtype(dtype).itemsize)
        else:
            values = np.array([value.decode() for value in self._values()], dtype)
        return values.reshape(self.shape)

    def _fixed(self, width: int) -> Numbers:
        import numpy as np

        lengths = np.diff(self.offsets)
        longest = int(lengths.max(initial=0))
        if width and longest > width:
            raise ValueError(f"a string of {longest} bytes does not fit S{width}; ask for S")
        width = max(width, longest, 1)
        table = np.zeros((self.size, width), np.uint8)
        table[np.arange(width) < lengths[:, None]] = self.bytes[self.offsets[0] : self.offsets[-1]]
        return table.view(f"S{width}").reshape(-1)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Numbers:
        if copy is False:
            raise ValueError("strings become an array of NumPy's only by a copy")
        return self.numpy(object if dtype is None else dtype)

    def arrow(self, text: bool = False) -> Any:
        """A pyarrow array that shares the memory: LargeBinary, or LargeString if `text`.

        A second and further dimension becomes FixedSizeList. Raises pyarrow.ArrowInvalid if `text`
        is wanted and a value is not UTF-8.
        """
        import pyarrow as pa

        array: Any = pa.Array.from_buffers(
            pa.large_string() if text else pa.large_binary(),
            self.size,
            [None, pa.py_buffer(self.offsets), pa.py_buffer(self.bytes)],
        )
        if text:
            array.validate(full=True)
        for size in reversed(self.shape[1:]):
            array = pa.FixedSizeListArray.from_arrays(array, size)
        return array

    def torch(self) -> Any:
        """Raises TypeError: torch has no strings."""
        raise TypeError(_no_strings("torch"))

    def jax(self) -> Any:
        """Raises TypeError: JAX has no strings."""
        raise TypeError(_no_strings("JAX"))

    def tf(self) -> Any:
        """A tf.Tensor of strings. TensorFlow copies each of them, which is slow for many."""
        import tensorflow as tf

        return tf.constant(self.numpy(), tf.string)

    def __repr__(self) -> str:
        if isinstance(self.offsets, DeviceArray):
            return f"Strings({list(self.shape)}, {self.bytes.nbytes} bytes on {self.offsets.device})"
        from .batch import first_values

        return f"Strings({list(self.shape)}, {int(self.offsets[-1] - self.offsets[0])} bytes: {first_values(self)})"


class _Placed:
    """Values and where they belong, which a framework has as a type of its own."""

    __slots__ = ()

    values: Any

    def torch(self) -> Any:
        """A nested tensor of layout jagged, or a tensor of layout COO: see tundish.torch.convert."""
        if isinstance(self.values, Strings):
            return self.values.torch()
        from tundish import torch

        return torch.convert(self)

    def jax(self) -> Any:
        """Ragged with arrays of JAX, or a jax.experimental.sparse.BCOO: see tundish.jax.convert."""
        if isinstance(self.values, Strings):
            return self.values.jax()
        from tundish import jax

        return jax.convert(self)

    def tf(self) -> Any:
        """A tf.RaggedTensor or a tf.SparseTensor: see tundish.tensorflow.convert."""
        from tundish import tensorflow

        return tensorflow.convert(self)


class Ragged(_Placed):
    """Lists of lists, of which the inner ones differ in length, as in tf.RaggedTensor.

    values: what the innermost lists hold, one list after the other; an array [n, ...] or Strings.
    row_splits: int64, outermost first. List i of level k has the entries `row_splits[k][i]` to
        `row_splits[k][i + 1]` of the next level; of the last level, of `values`.
    """

    __slots__ = ("values", "row_splits")

    def __init__(self, values: Any, row_splits: tuple[Any, ...]) -> None:
        self.values = values
        self.row_splits = tuple(row_splits)

    def __len__(self) -> int:
        return len(self.row_splits[0]) - 1

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def __getitem__(self, index: int | slice) -> Any:
        """A row, which is what `values` is or Ragged again, or a slice of rows. The values are views."""
        if isinstance(index, slice):
            begin, end, step = index.indices(len(self))
            if step != 1:
                raise IndexError("rows of Ragged are taken one by one, or in slices without a step")
            return self._rows(begin, max(begin, end))
        if not -len(self) <= index < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        begin = index % len(self)
        return self._inner(int(self.row_splits[0][begin]), int(self.row_splits[0][begin + 1]))

    def _rows(self, begin: int, end: int) -> Ragged:
        splits = self.row_splits[0][begin : end + 1]
        inner = self._inner(int(splits[0]), int(splits[-1]))
        deeper = (inner.values, *inner.row_splits) if isinstance(inner, Ragged) else (inner,)
        return Ragged(deeper[0], (splits - splits[0], *deeper[1:]))

    def _inner(self, begin: int, end: int) -> Any:
        if len(self.row_splits) == 1:
            return self.values[begin:end]
        return Ragged(self.values, self.row_splits[1:])._rows(begin, end)

    def copy(self) -> Ragged:
        """The same in memory of its own, which keeps no batch."""
        return Ragged(self.values.copy(), tuple(splits.copy() for splits in self.row_splits))

    def to_list(self) -> list[Any]:
        """Nested lists of Python's numbers or bytes."""
        nested: list[Any] = _listed(self.values)
        for splits in reversed(self.row_splits):
            at = splits.tolist()
            nested = [nested[begin:end] for begin, end in zip(at, at[1:])]
        return nested

    def padded(self, fill: Any = None) -> Numbers:
        """A new dense array: each list is as long as the longest of its level, filled up with `fill`.

        The default is 0, for strings b"". Strings become an array of objects.
        """
        import numpy as np

        is_text = isinstance(self.values, Strings)
        dense: Numbers = self.values.numpy() if is_text else np.asarray(self.values)
        if fill is None:
            fill = b"" if is_text else 0
        for splits in reversed(self.row_splits):
            lengths: Numbers = np.diff(np.asarray(splits))
            width = int(lengths.max(initial=0))
            wider = np.full((len(lengths), width, *dense.shape[1:]), fill, dense.dtype)
            wider[np.arange(width) < lengths[:, None]] = dense
            dense = wider
        return dense

    def numpy(self) -> Numbers:
        """A new array of objects [rows]: each is an array of its row, or again one of objects."""
        import numpy as np

        rows: Numbers = np.empty(len(self), object)
        for i, row in enumerate(self):
            rows[i] = row.numpy() if isinstance(row, (Ragged, Strings)) else row
        return rows

    def __repr__(self) -> str:
        return f"Ragged({len(self)} rows, rank {len(self.row_splits)}, values {_described(self.values)})"


class Sparse(_Placed):
    """An array of which only some values are held, as in tf.SparseTensor.

    values: an array [n] or Strings.
    indices: int64 [n, rank], the coordinates of each value, in row-major order.
    shape: of the whole array.
    """

    __slots__ = ("values", "indices", "shape")

    def __init__(self, values: Any, indices: Any, shape: tuple[int, ...]) -> None:
        self.values = values
        self.indices = indices
        self.shape = tuple(shape)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("a sparse value without a dimension has no length")
        return self.shape[0]

    def copy(self) -> Sparse:
        """The same in memory of its own, which keeps no batch."""
        return Sparse(self.values.copy(), self.indices.copy(), self.shape)

    def to_list(self) -> list[tuple[tuple[int, ...], Any]]:
        """The values that are held, each as (coordinates, value)."""
        return [(tuple(at), value) for at, value in zip(self.indices.tolist(), _listed(self.values))]

    def dense(self, fill: Any = None) -> Numbers:
        """A new array of `shape` with `fill` where no value is held: 0, for strings b""."""
        import numpy as np

        is_text = isinstance(self.values, Strings)
        values: Numbers = self.values.numpy() if is_text else np.asarray(self.values)
        if fill is None:
            fill = b"" if is_text else 0
        whole: Numbers = np.full(self.shape, fill, values.dtype)
        whole[tuple(np.asarray(self.indices).T)] = values
        return whole

    numpy = dense

    def scipy(self) -> Any:
        """A scipy.sparse.coo_array that shares the values. Raises TypeError for strings, and ValueError
        for a rank that the installed SciPy does not have (releases before 1.15: other than 2)."""
        import scipy.sparse

        if isinstance(self.values, Strings):
            raise TypeError(_no_strings("SciPy"))
        return scipy.sparse.coo_array((self.values, tuple(self.indices.T)), shape=self.shape)

    def __repr__(self) -> str:
        return f"Sparse({list(self.shape)}, values {_described(self.values)})"


def lent(batch: Batch, name: str) -> Any:
    """The column as a framework's `convert` takes it with the least work: of dense numbers the Array
    itself, for which NumPy need not make a view first."""
    return batch.array(name) if name in batch.reader.numbers else batch[name]


def lender(numbers: Any) -> Array | None:
    """The Array of a batch that `numbers` is, or is a whole view of, or None.

    It gives libraries the same memory by DLPack, also to those to which NumPy refuses it, because it is
    read-only or bfloat16.
    """
    if isinstance(numbers, Array):
        return numbers
    if isinstance(numbers, DeviceArray):
        return None
    base = numbers.base
    return base if isinstance(base, Array) and base.shape == numbers.shape else None


def require(reader: Reader, names: Iterable[str], on_devices: bool = False) -> None:
    """Raise ArgumentError unless an adapter can convert these columns of the reader itself."""
    from .batch import nearest
    from .errors import ArgumentError, ColumnError

    if reader.convert is not None:
        raise ArgumentError("an adapter converts columns itself: open its reader without format=")
    if reader.device is not None and not on_devices:
        raise ArgumentError("this adapter reads the CPU's memory: open its reader without device=")
    for name in names:
        if name not in reader.spec:
            raise ColumnError(f"the stream has no column {name!r}{nearest(name, reader.spec)}")


def _listed(values: Any) -> Any:
    return values.to_list() if isinstance(values, Strings) else values.tolist()


def _described(values: Any) -> str:
    return repr(values) if isinstance(values, Strings) else f"{values.dtype}{list(values.shape)}"


def _no_strings(framework: str) -> str:
    return (
        f"{framework} has no strings; look them up or hash them in the pipeline (string_lookup, "
        "hashing), or take numpy(), arrow() or to_list()"
    )
