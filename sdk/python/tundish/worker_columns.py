"""Columns as they lie in an arena: what a request holds, and what an answer is made of.

A message is a head, a record for each column, and what these point to, by offsets from its beginning in
multiples of 64. server/workers/python_wire.c is the other side and says more.
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from .columns import Ragged, Sparse, Strings
from .described import array as as_array
from .dtypes import numpy_dtype

_ALIGNMENT = 64
_HEAD_WORDS = 8
_RECORD_WORDS = 24
_RANK_MAX = 8
_DENSE, _RAGGED, _SPARSE = 1, 2, 3  # tundish_kind


class Arena:
    """Memory that the server maps as well. It grows; views into what it was stay as they are."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self.memory = mmap.mmap(descriptor, os.fstat(descriptor).st_size)

    def reach(self, size: int) -> None:
        """Map `size` bytes, and make the memory that large if it is smaller."""
        if size <= len(self.memory):
            return
        there = os.fstat(self._descriptor).st_size
        if there < size:
            there = size + size // 4
            os.ftruncate(self._descriptor, there)
        self.memory = mmap.mmap(self._descriptor, there)

    def array(self, dtype: Any, count: int, at: int) -> np.ndarray[Any, Any]:
        return np.frombuffer(self.memory, dtype, count, at)


class Spec:
    """A column as the server describes it."""

    def __init__(self, described: dict[str, Any]) -> None:
        self.name: str = described["name"]
        self.dtype: str = described["dtype"]
        self.kind: int = described["kind"]
        shape = described["shape"]
        self.shape: tuple[int, ...] | None = None if shape is None else tuple(shape)
        self.is_text = self.dtype == "string"
        self.numpy: Any = np.dtype(np.uint8) if self.is_text else numpy_dtype(self.dtype)
        # numpy itself refuses one that does not fit, of 64 bits in every version.
        self.takes_int = self.dtype == "int64" and self.shape == ()

    @property
    def is_fixed(self) -> bool:
        return self.shape is not None and -1 not in self.shape

    def __str__(self) -> str:
        shape = "?" if self.shape is None else ", ".join("null" if s < 0 else str(s) for s in self.shape)
        return f"{self.dtype}[{shape}]"


class Request:
    """The elements that a message holds, column by column."""

    def __init__(self, arena: Arena, at: int, specs: Sequence[Spec]) -> None:
        head = arena.array(np.int64, _HEAD_WORDS, at).tolist()
        self.count: int = head[0]
        ordinals, barred = head[2], head[3]
        self.one_by_one = bool(head[6])
        self.seed: int = head[7]
        self.ordinals: list[int] | None = (
            arena.array(np.uint64, self.count, at + ordinals).tolist() if ordinals else None
        )
        self.barred: bytes = (
            arena.array(np.uint8, self.count, at + barred).tobytes() if barred else bytes(self.count)
        )
        self.columns = [
            _Column(arena, at, at + 8 * (_HEAD_WORDS + _RECORD_WORDS * i), spec, self.count)
            for i, spec in enumerate(specs)
        ]


class _Column:
    """One column of a request: `all` where its elements lie in one array, else None; and each by its
    number."""

    def __init__(self, arena: Arena, base: int, at: int, spec: Spec, count: int) -> None:
        record = arena.array(np.int64, _RECORD_WORDS, at).tolist()
        values, values_at, text, text_bytes, indices, dense_shape, levels = record[:7]
        uniform = record[8 : 8 + levels]
        splits_at = record[8 + _RANK_MAX : 8 + _RANK_MAX + levels]
        self._kind = spec.kind
        self._levels: list[tuple[int, Any]] = []
        lists = count
        for size, splits in zip(uniform, splits_at, strict=True):
            found = arena.array(np.int64, lists + 1, base + splits) if size < 0 else None
            self._levels.append((size, found))
            lists = int(found[-1]) if found is not None else lists * size
        self._values: Any = (
            Strings(
                arena.array(np.uint8, text_bytes, base + text),
                arena.array(np.int64, values + 1, base + values_at),
            )
            if spec.is_text
            else arena.array(spec.numpy, values, base + values_at)
        )
        self._indices = arena.array(np.int64, values * levels, base + indices) if indices else None
        self._dense_shape = arena.array(np.int64, count * levels, base + dense_shape) if dense_shape else None
        self.all: Any = None
        if spec.kind == _DENSE and all(size >= 0 for size in uniform):
            self.all = _shaped(self._values, (count, *uniform))

    def __getitem__(self, element: int) -> Any:
        if self.all is not None:
            return self.all[element]
        begin, end = element, element + 1
        bounds = []
        for size, splits in self._levels:
            bounds.append((begin, end))
            begin, end = (
                (begin * size, end * size)
                if splits is None
                else (int(splits[begin]), int(splits[end]))
            )
        values = self._values[begin:end]
        if self._kind == _SPARSE:
            return self._sparse(element, begin, end, values)
        lengths = [self._lengths(k, *bounds[k]) for k in range(len(bounds))]
        if self._kind == _RAGGED:
            return _ragged(values, lengths)
        return _shaped(values, tuple(int(sizes[0]) if len(sizes) else 0 for sizes in lengths))

    def _lengths(self, level: int, begin: int, end: int) -> Any:
        """The sizes of a level's lists."""
        size, splits = self._levels[level]
        return np.full(end - begin, size) if splits is None else np.diff(splits[begin : end + 1])

    def _sparse(self, element: int, begin: int, end: int, values: Any) -> Any:
        rank = len(self._levels)
        if self._dense_shape is None or self._indices is None:
            raise ValueError("a sparse column without its coordinates: put to_dense before the stage")
        shape = self._dense_shape[rank * element : rank * (element + 1)].tolist()
        return Sparse(values, self._indices[rank * begin : rank * end].reshape(-1, rank), tuple(shape))


def _shaped(values: Any, shape: tuple[int, ...]) -> Any:
    if isinstance(values, Strings):
        return Strings(values.bytes, values.offsets, shape) if shape else values[0]
    return values.reshape(shape)


def _ragged(values: Any, lengths: list[Any]) -> Any:
    """An element of a ragged column: its first dimension is the element itself."""
    splits = [np.concatenate([[0], np.cumsum(sizes)]) for sizes in lengths[1:]]
    return Ragged(values, tuple(splits)) if splits else values


class Stack:
    """Arrays of one dtype and shape as np.stack would put them together, which is done where they are written."""

    __slots__ = ("arrays", "dtype", "ndim", "shape", "size")

    def __init__(self, arrays: Sequence[Any]) -> None:
        first = arrays[0]
        self.arrays, self.dtype = arrays, first.dtype
        self.shape: tuple[int, ...] = (len(arrays), *first.shape)
        self.ndim, self.size = len(self.shape), len(arrays) * first.size

    def as_one_dimension(self) -> Stack:
        """The same values, as those of one dimension."""
        made = Stack(self.arrays)
        made.ndim, made.shape = 1, (self.size,)
        return made

    def write(self, to: Any) -> None:
        np.stack(self.arrays, out=to.reshape(len(self.arrays), *self.arrays[0].shape))


class Misfit(ValueError):
    """A value that does not fit its column."""


def _fits(value: Any, spec: Spec) -> bool:
    """A quick look: does it fit as it is?"""
    if type(value) is np.ndarray:
        return bool(value.dtype == spec.numpy) and value.shape == spec.shape
    if type(value) is int:
        return spec.takes_int
    return isinstance(value, np.generic) and value.dtype == spec.numpy and not spec.shape


def fit(value: Any, spec: Spec) -> Any:
    """The value as an array of the column's dtype; texts as a flat list of bytes and their shape."""
    array: Any = _texts(value, spec) if spec.is_text else _numbers(value, spec)
    shape = array[1] if spec.is_text else array.shape
    wanted = spec.shape or ()
    if len(shape) != len(wanted) or any(w not in (-1, s) for s, w in zip(shape, wanted, strict=True)):
        raise Misfit(f"column '{spec.name}' wants {spec}, and the function gave {_described(value)}")
    return array


def _described(value: Any) -> str:
    dtype, shape = getattr(value, "dtype", None), getattr(value, "shape", None)
    if dtype is None or shape is None:
        return f"{type(value).__name__} {str(value)[:60]!r}"
    return f"{dtype}[{', '.join(map(str, shape))}]"


def _numbers(value: Any, spec: Spec) -> Any:
    if type(value) is Stack:
        return value  # of the dtype that it was flattened with
    array = as_array(value)
    if array.dtype == spec.numpy:
        return array
    if array.size == 0 and not hasattr(value, "dtype"):
        return array.astype(spec.numpy)
    if array.dtype.kind in "biu" and spec.numpy.kind in "iu" and array.dtype.kind != "b":
        made = array.astype(spec.numpy)
        if (made == array).all():
            return made
        raise Misfit(f"column '{spec.name}' is {spec.dtype}, and the function gave {array.flat[0]} there")
    if array.dtype.kind in "iuf" and spec.numpy.kind not in "biuc":
        return array.astype(spec.numpy)
    raise Misfit(f"column '{spec.name}' wants {spec}, and the function gave {_described(value)}")


def _texts(value: Any, spec: Spec) -> tuple[list[bytes], tuple[int, ...]]:
    if isinstance(value, Strings):
        return [bytes(text) for text in value.numpy().ravel().tolist()], value.shape
    array = np.asarray(value, object)
    flat: list[bytes] = []
    for text in array.ravel().tolist():
        if isinstance(text, str):
            flat.append(text.encode("utf-8", "surrogateescape"))
        elif isinstance(text, bytes | bytearray | memoryview):
            flat.append(bytes(text))
        else:
            raise Misfit(f"column '{spec.name}' wants {spec}, and the function gave {_described(value)}")
    return flat, array.shape


class Answer:
    """Columns of `count` elements on their way to the server, which must all be put, or rejected."""

    def __init__(self, arena: Arena, at: int, specs: Sequence[Spec], count: int) -> None:
        self._arena, self._at, self._specs, self._count = arena, at, specs, count
        self._used = _up(8 * (_HEAD_WORDS + _RECORD_WORDS * len(specs)))
        self._records = [[0] * _RECORD_WORDS for _ in specs]
        self._fixed: list[Any] = [None] * len(specs)
        self._parts: list[list[Any]] = [[] for _ in specs]
        self._sentences: list[tuple[int, bytes]] = []
        for i, spec in enumerate(specs):
            if spec.is_fixed and not spec.is_text:
                shape = (count, *(spec.shape or ()))
                size = int(np.prod(shape))
                self._records[i][0] = size
                self._records[i][1] = self._take(size * spec.numpy.itemsize)
                flat = arena.array(spec.numpy, size, at + self._records[i][1])
                self._fixed[i] = flat.reshape(shape)

    def _take(self, size: int) -> int:
        """Room for the bytes: its offset."""
        offset = self._used
        self._used += _up(size)
        self._arena.reach(self._at + self._used)
        return offset

    def put(self, element: int, column: int, value: Any) -> None:
        """A value of one element; the elements of a column that is not fixed come in their order."""
        fixed, spec = self._fixed[column], self._specs[column]
        if fixed is None:
            self._parts[column].append(fit(value, spec))
        elif _fits(value, spec):
            fixed[element] = value  # as nearly all are
        else:
            fixed[element] = fit(value, spec)

    def put_all(self, column: int, values: Any) -> bool:
        """All elements of a fixed column at once. False: it is not one, or these are not an array of it."""
        fixed, array = self._fixed[column], values
        if fixed is None or getattr(array, "shape", None) != fixed.shape:
            return False
        array = np.asarray(array)
        if array.dtype != fixed.dtype:
            return False
        fixed[...] = array
        return True

    def cut(self, element: int) -> None:
        """Forget what was put of this element and those after it."""
        for parts in self._parts:
            del parts[element:]

    def reject(self, element: int, sentence: str) -> None:
        """It cannot be made: nothing of it was put, or cut."""
        if sentence:
            self._sentences.append((element, sentence.encode("utf-8", "replace")[:4096]))
        for i, spec in enumerate(self._specs):
            if self._fixed[i] is not None:
                self._fixed[i][element] = np.zeros((), spec.numpy)
                continue
            shape = tuple(max(size, 0) for size in spec.shape or ())
            empty = [b""] * int(np.prod(shape)) if spec.is_text else np.zeros(shape, spec.numpy)
            self._parts[i].append((empty, shape) if spec.is_text else empty)

    def finish(self) -> int:
        """Write what is left. Returns the answer's bytes."""
        for i, spec in enumerate(self._specs):
            self._records[i][6] = len(spec.shape or ())
            if self._fixed[i] is not None or spec.is_fixed:
                self._records[i][8 : 8 + len(spec.shape or ())] = list(spec.shape or ())
            if self._fixed[i] is None:
                self._write_parts(i, spec)
        sentences = self._write_sentences()
        head = [self._count, len(self._specs), 0, 0, len(self._sentences), sentences, 0, 0]
        words = np.array(head + [word for record in self._records for word in record], np.int64)
        self._write(words, 0)
        return self._used

    def _write(self, array: Any, offset: int) -> None:
        self._arena.array(array.dtype, array.size, self._at + offset)[...] = array.ravel()

    def _added(self, array: Any) -> int:
        offset = self._take(array.nbytes)
        self._write(array, offset)
        return offset

    def _write_parts(self, column: int, spec: Spec) -> None:
        record, parts = self._records[column], self._parts[column]
        shapes = np.array([p[1] if spec.is_text else p.shape for p in parts], np.int64)
        shapes = shapes.reshape(self._count, len(spec.shape or ()))
        lists = np.ones(self._count, np.int64)  # of each element, at the level that is written
        for k, size in enumerate(spec.shape or ()):
            record[8 + k] = size
            if size < 0:
                lengths = np.repeat(shapes[:, k], lists)
                record[8 + _RANK_MAX + k] = self._added(np.concatenate([[0], np.cumsum(lengths)]))
            lists = lists * shapes[:, k]
        if spec.is_text:
            texts = [text for part in parts for text in part[0]]
            record[0] = len(texts)
            ends = np.cumsum([0, *(len(text) for text in texts)], dtype=np.int64)
            record[1] = self._added(ends)
            record[3] = int(ends[-1])
            record[2] = self._added(np.frombuffer(b"".join(texts), np.uint8))
            return
        record[0] = int(sum(part.size for part in parts))
        record[1] = self._take(record[0] * spec.numpy.itemsize)
        to = self._arena.array(spec.numpy, record[0], self._at + record[1])
        if any(type(part) is Stack for part in parts):
            begin = 0
            for part in parts:
                there = to[begin : begin + part.size]
                if type(part) is Stack:
                    part.write(there)
                else:
                    there[...] = part.ravel()
                begin += part.size
        elif parts:
            np.concatenate([part.ravel() for part in parts], out=to)

    def _write_sentences(self) -> int:
        words = []
        for element, text in self._sentences:
            words += [element, self._added(np.frombuffer(text, np.uint8)), len(text)]
        return self._added(np.array(words, np.int64)) if words else 0


def _up(size: int) -> int:
    return -(-size // _ALIGNMENT) * _ALIGNMENT
