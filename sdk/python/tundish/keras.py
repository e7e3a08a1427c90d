"""Batches for Keras 3, on its torch, JAX and TensorFlow backends.

    from tundish.keras import Adapter

    model.fit(Adapter(reader, x=["dense", "C"], y="label"), epochs=10)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Union

import keras

import tundish

from .columns import Sparse, require
from .options import spelt

__all__ = ["Adapter"]

# One column, several in order, or the model's inputs by name.
Names = Union[str, Sequence[str], Mapping[str, str]]

# Batches that Keras takes to build a model: one, and one more where it copies to a device ahead.
_PEEKED = 2


class _Source:
    """The epochs of a reader as Keras takes them, each batch a flat list of its columns.

    Keras takes a batch to build a model, lets the iterator go, and begins again; a new iter(reader) would
    pass over the rest of the epoch. So an epoch that was let go in its first batches begins again with
    them. They are copies, as they would hold their slots.
    """

    def __init__(self, reader: tundish.Reader, names: list[str]) -> None:
        self.reader = reader
        self.names = names
        self._rest: Iterator[list[Any]] = iter(())
        self._kept: list[list[Any]] = []
        self._is_held = False

    def epoch(self) -> Iterator[list[Any]]:
        if self.reader._has_pending:  # a place was loaded meanwhile
            self._kept = []
        kept = self._kept
        if not kept:
            self._rest = map(self._taken, iter(self.reader))
        rest = self._rest
        self._is_held = True
        try:
            for i in range(_PEEKED):
                if i == len(kept):
                    taken = next(rest, None)
                    if taken is None:
                        break
                    kept.append([column.copy() for column in taken])
                    del taken
                yield kept[i]
            self.is_used()
            yield from rest
        finally:
            self._is_held = False

    def ends(self) -> None:
        """Keras says that an epoch ends: one whose iterator it still holds was trained on."""
        if self._is_held:
            self.is_used()

    def is_used(self) -> None:
        self._kept = []

    def _taken(self, batch: tundish.Batch) -> list[Any]:
        return [batch[name] for name in self.names]


class _Batches:
    """The batches of a reader for fit, evaluate and predict, and for their validation_data.

    x: a column's name, several in the order of the model's inputs, or a dict of inputs and columns.
    y, sample_weight: likewise; without them for predict.

    Each of Keras's epochs is one of the stream. With steps_per_epoch an epoch of the stream lasts over
    several of Keras's. Where the pipeline does not tell the number of steps, Keras says after the first
    epoch that the input ran out of data: that is how it finds the end.

    An epoch of which Keras took no more than two batches, as it does to build a model, begins again with
    copies of them. Keras does not tell that from an epoch that a callback stopped so early
    (model.stop_training): the next fit then trains on these batches again. All other arrays may be the batch's memory, and are read-only; torch gets copies.
    Raises ArgumentError (ColumnError) for a column that is not there, or of a kind that the backend has
    not: strings (all but TensorFlow), ragged (TensorFlow only), sparse (not torch).
    """

    @spelt("tundish.keras.Adapter()")
    def __init__(
        self, reader: tundish.Reader, x: Names, y: Names | None = None, sample_weight: str | None = None
    ) -> None:
        super().__init__()
        if sample_weight is not None and y is None:
            raise tundish.ArgumentError("sample_weight weighs the loss of y: give y as well")
        self._wanted = [names for names in (x, y, sample_weight) if names is not None]
        names = [name for wanted in self._wanted for name in _listed(wanted)]
        require(reader, names)
        for name in names:
            _refuse_kind(reader.spec[name])
        self._source = _Source(reader, names)

    @property
    def num_batches(self) -> int | None:
        """Steps of an epoch, or None: unknown before it was read."""
        try:
            return len(self._source.reader)
        except TypeError:
            return None

    def _converted(self, convert: Callable[[Any], Any]) -> Iterator[tuple[Any, ...]]:
        return (self._packed(map(convert, columns)) for columns in self._source.epoch())

    def _packed(self, columns: Iterable[Any]) -> tuple[Any, ...]:
        left = iter(columns)
        return tuple(_shaped_as(names, left) for names in self._wanted)


def _listed(names: Names) -> list[str]:
    if isinstance(names, str):
        return [names]
    return list(names.values() if isinstance(names, Mapping) else names)


def _shaped_as(names: Names, left: Iterator[Any]) -> Any:
    if isinstance(names, str):
        return next(left)
    if isinstance(names, Mapping):
        return {name: next(left) for name in names}
    return tuple(next(left) for _ in names)


def _refuse_kind(spec: tundish.ColumnSpec) -> None:
    backend = keras.backend.backend()
    kind = "strings" if spec.dtype == "string" else spec.kind
    takes = {"tensorflow": ("dense", "strings", "ragged", "sparse"), "jax": ("dense", "sparse")}
    if kind not in takes.get(backend, ("dense",)):
        remedy = "string_lookup or hashing" if kind == "strings" else "padded_batch or to_dense"
        raise tundish.ArgumentError(
            f"column {spec.name!r} has {kind} values, and Keras on {backend} takes none: add {remedy} to "
            "the pipeline file"
        )


def _for_torch(column: Any) -> Any:
    from . import torch

    return keras.ops.convert_to_tensor(torch.convert(column))  # on the device that Keras uses


def _for_jax(column: Any) -> Any:
    from . import jax

    return jax.convert(column) if isinstance(column, Sparse) else column


class _Dataset(_Batches, keras.utils.PyDataset):  # type: ignore[misc]
    """The way that is public. Keras numbers the batches and may shuffle the numbers: they come in the
    stream's order all the same."""

    def __init__(self, *columns: Any, **by_name: Any) -> None:
        super().__init__(*columns, **by_name)
        if self.num_batches is None:
            raise tundish.ArgumentError(
                "the pipeline does not tell the steps of an epoch before its data is read, and this "
                "release of Keras needs them: install Keras 3.15, or iterate in a loop of your own"
            )
        self._run: Iterator[list[Any]] | None = None

    def __getitem__(self, index: int) -> tuple[Any, ...]:
        if self._run is None:
            self._run = self._source.epoch()
        columns = next(self._run, None)
        if columns is None:
            raise IndexError("the epoch is over")
        return self._packed(map(_for_backend, columns))

    def on_epoch_end(self) -> None:
        self._run = None


def _for_backend(column: Any) -> Any:
    backend = keras.backend.backend()
    if backend == "tensorflow":
        from . import tensorflow

        return tensorflow.convert(column)
    return _for_torch(column) if backend == "torch" else _for_jax(column)


def _adapter() -> type[_Batches]:
    try:
        from keras.src.trainers.data_adapters.data_adapter import DataAdapter
    except ImportError:  # it is not public, and may go
        return _Dataset

    class OwnAdapter(_Batches, DataAdapter):  # type: ignore[misc]
        """Keras takes an instance as it is, and asks it for what its backend iterates over."""

        batch_size = has_partial_batch = partial_batch_size = property(lambda self: None)

        def get_numpy_iterator(self) -> Iterator[tuple[Any, ...]]:
            return self._converted(lambda column: column)

        def get_jax_iterator(self) -> Iterator[tuple[Any, ...]]:
            return self._converted(_for_jax)

        def get_torch_dataloader(self) -> Iterator[tuple[Any, ...]]:
            return self._converted(_for_torch)

        def get_tf_dataset(self) -> Any:
            from . import tensorflow

            specs = [self._source.reader.spec[name] for name in self._source.names]
            epochs = tensorflow.of_epochs(specs, self._source.epoch)
            return epochs.map(lambda *columns: self._packed(columns))

        def on_epoch_end(self) -> None:
            self._source.ends()

    return OwnAdapter


Adapter = _adapter()
