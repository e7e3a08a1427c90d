"""Batches as TensorFlow's tensors.

    import tundish.tensorflow

    for x in tundish.tensorflow.iterate(reader):        # eager tensors, dict by name
        ...
    dataset = tundish.tensorflow.dataset(reader)        # for programs that must have a tf.data.Dataset

iterate() is the shorter way: the batches are ready, and a Dataset around them adds nothing but a hop
into TensorFlow's threads.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

import tundish

from .columns import Ragged, Sparse, Strings, lender, lent, require
from .options import spelt

__all__ = ["convert", "dataset", "element_spec", "iterate", "of_epochs"]


def _ragged(values: Any, splits: list[Any]) -> Any:
    kind: Any = tf.RaggedTensor
    return kind.from_nested_row_splits(values, splits, validate=False)


def convert(column: Any) -> Any:
    """A column, or batch.array(name), as TensorFlow has it, on the CPU.

    dense: a tf.Tensor, for a batch's column of its own memory (of bool, and of other arrays, a copy).
    ragged: a tf.RaggedTensor. sparse: a tf.SparseTensor. strings: dtype tf.string; TensorFlow copies
    each string by itself, which is slow for many.
    """
    if isinstance(column, Strings):
        return column.tf()
    if isinstance(column, Ragged):
        splits = [convert(splits) for splits in column.row_splits]
        return _ragged(convert(column.values), splits)
    if isinstance(column, Sparse):
        return tf.SparseTensor(convert(column.indices), convert(column.values), column.shape)
    array = lender(column)
    if array is None or array.dtype == "bool":  # which TensorFlow's DLPack does not have
        return tf.convert_to_tensor(column)
    return tf.experimental.dlpack.from_dlpack(array.__dlpack__(copy=False))


@spelt("tundish.tensorflow.iterate()")
def iterate(reader: tundish.Reader, columns: Sequence[str] | None = None) -> Iterator[dict[str, Any]]:
    """The batches of one epoch as dicts of eager tensors, without a copy but of strings and bool.

    columns: names; the default is all. A tensor keeps its batch's slot until it is gone. The next call
    is the next epoch. TensorFlow treats tensors as constants, but for raw_ops.InplaceAdd and its kin:
    these write to the batch's memory, which ends the process.
    """
    names = _names(reader, columns)
    return map(lambda batch: {name: convert(lent(batch, name)) for name in names}, iter(reader))


@spelt("tundish.tensorflow.element_spec()")
def element_spec(reader: tundish.Reader, columns: Sequence[str] | None = None) -> dict[str, Any]:
    """tf.TensorSpec, RaggedTensorSpec and SparseTensorSpec of the columns, as of a tf.data.Dataset."""
    return {name: _spec(reader.spec[name]) for name in _names(reader, columns)}


@spelt("tundish.tensorflow.dataset()")
def dataset(
    reader: tundish.Reader, columns: Sequence[str] | None = None, *, sessions: bool = False
) -> Any:
    """A tf.data.Dataset of dicts of tensors. Each iteration over it is one epoch, as each `for` over the
    reader is; one that is begun before another has ended passes over the rest of that epoch.

    columns: names; the default is all. Dense numbers are not copied. No batch is taken before the
    program asks for it, so the reader's place is where the program stands. During an iteration the
    reader works in a thread of TensorFlow's, so nothing else may use it.

    sessions: each iterator that runs beside others reads a session of its own, as of ClusterCoordinator's
        create_per_worker_dataset, whose workers each have an iterator: all of the stream, in an order of
        its own if the stream is not seeded (write it with from_function: true). They are read in the
        process that made the dataset. The reader says which server and stream, and is not read itself.
    """
    names = _names(reader, columns)
    specs = [reader.spec[name] for name in names]
    loops = _Sessions(reader) if sessions else reader
    tuples = of_epochs(specs, lambda: map(lambda batch: [batch[name] for name in names], iter(loops)))
    return tuples.map(lambda *columns: dict(zip(names, columns)))


class _Sessions:
    """A reader for each loop that runs at a time. One whose loop has ended has the next epoch for the next."""

    def __init__(self, reader: tundish.Reader) -> None:
        self._reader = reader
        self._free: list[tundish.Reader] = []

    def __iter__(self) -> Iterator[tundish.Batch]:
        try:
            reader = self._free.pop()  # by one thread alone
        except IndexError:
            reader = self._reader.in_session(f"{self._reader.info.stream[:80]}-{uuid.uuid4().hex}")
        try:
            yield from reader
        finally:
            self._free.append(reader)


def of_epochs(specs: Sequence[tundish.ColumnSpec], epoch: Callable[[], Iterator[Sequence[Any]]]) -> Any:
    """A tf.data.Dataset of tuples of tensors: each iteration takes the lists of columns of an `epoch`.

    Its cardinality is unknown, since the epoch in which a reader resumes is shorter than others.
    """
    # A generator's elements pass into the graph as plain arrays: a ragged or sparse column is taken
    # apart before and put together after, which is faster than TensorFlow's own way with them.
    parts = tuple(part for spec in specs for part in _part_specs(spec))

    def taken_apart() -> Iterator[tuple[Any, ...]]:
        return (tuple(part for column in columns for part in _parts(column)) for columns in epoch())

    def assembled(*parts: Any) -> tuple[Any, ...]:
        left = list(parts)
        return tuple(_assembled(spec, left) for spec in specs)

    # The server makes batches ahead. TensorFlow must not take them ahead as well: a reader's place, and
    # what another iteration finds, would be beyond what the program saw.
    options = tf.data.Options()
    options.autotune.enabled = False
    options.experimental_optimization.inject_prefetch = False
    taken = tf.data.Dataset.from_generator(taken_apart, output_signature=parts)
    return taken.map(assembled).with_options(options)


def _names(reader: tundish.Reader, columns: Sequence[str] | None) -> tuple[str, ...]:
    names = tuple(reader.spec if columns is None else columns)
    require(reader, names)
    return names


def _dtype(spec: tundish.ColumnSpec) -> Any:
    return tf.as_dtype(spec.dtype)


def _spec(spec: tundish.ColumnSpec) -> Any:
    if spec.kind == "ragged":
        return tf.RaggedTensorSpec(spec.shape, _dtype(spec), spec.ragged_rank, tf.int64)
    if spec.kind == "sparse":
        return tf.SparseTensorSpec(spec.shape, _dtype(spec))
    return tf.TensorSpec(spec.shape, _dtype(spec))


def _part_specs(spec: tundish.ColumnSpec) -> list[Any]:
    numbers = tf.TensorSpec([None], tf.int64)
    if spec.kind == "ragged":
        inner = spec.shape[spec.ragged_rank + 1 :]
        return [tf.TensorSpec([None, *inner], _dtype(spec)), *[numbers] * spec.ragged_rank]
    if spec.kind == "sparse":
        return [
            tf.TensorSpec([None], _dtype(spec)),
            tf.TensorSpec([None, len(spec.shape)], tf.int64),
            tf.TensorSpec([len(spec.shape)], tf.int64),
        ]
    return [_spec(spec)]


def _parts(column: Any) -> list[Any]:
    if isinstance(column, Strings):
        return [column.numpy()]
    if isinstance(column, Ragged):
        return [*_parts(column.values), *column.row_splits]
    if isinstance(column, Sparse):
        return [*_parts(column.values), column.indices, np.array(column.shape, np.int64)]
    return [column]


def _assembled(spec: tundish.ColumnSpec, left: list[Any]) -> Any:
    """The tensor of the parts that come next in `left`, which are taken off."""
    count = len(_part_specs(spec))
    values, *rest = left[:count]
    del left[:count]
    if spec.kind == "ragged":
        return _ragged(values, rest)
    if spec.kind == "sparse":
        indices, shape = rest
        # In pieces, so that the graph knows the sizes that do not change.
        sizes = [shape[i] if size is None else size for i, size in enumerate(spec.shape)]
        return tf.SparseTensor(indices, values, tf.stack(sizes))
    return values
