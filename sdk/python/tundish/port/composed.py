"""Functions that make a dataset by means of their own: the same, said with methods of tf.data.Dataset."""

from __future__ import annotations

import functools
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf
from keras.src.utils import timeseries_dataset_utils as timeseries
from tensorflow.python.data.experimental.ops import readers

from . import datasets, origin

# All windows of a shuffled series lie beside the pipeline file.
_MOST_BYTES = 1 << 28


def patch() -> None:
    """make_csv_dataset, make_batched_features_dataset, parse_example_dataset and timeseries_dataset_from_array."""
    files, maps = readers.core_readers, readers.map_op
    read = functools.partial(_interleaved, files.ParallelInterleaveDataset)
    readers.core_readers = SimpleNamespace(**{**vars(files), "ParallelInterleaveDataset": read})
    mapped = lambda dataset, function, **_: dataset.map(function)
    readers.map_op = SimpleNamespace(**{**vars(maps), "_MapDataset": mapped})
    for owner in (readers.parsing_ops, tf.data.experimental):
        setattr(owner, "parse_example_dataset", _parsing)
    timeseries._timeseries_dataset_tf = functools.partial(_series, timeseries._timeseries_dataset_tf)


def _interleaved(plain: Any, dataset: Any, function: Any, cycle_length: int, **kwargs: Any) -> Any:
    if cycle_length == 1:
        return dataset.flat_map(function)
    with datasets.unseen():
        made = plain(dataset, function, cycle_length=cycle_length, **kwargs)
    made._tundish_step = datasets.Step("parallel_interleave", (dataset,), {}, origin.here())
    return made


def _parsing(features: Any, num_parallel_calls: Any = None, deterministic: bool | None = None) -> Any:
    """deterministic: an option of the dataset, where it is False."""

    def parsed(dataset: Any) -> Any:
        return dataset.map(
            lambda rows: tf.io.parse_example(rows, features), num_parallel_calls, deterministic=deterministic
        )

    return parsed


def _series(plain: Any, **asked: Any) -> Any:
    if asked["shuffle"] and asked["seed"] is None:
        asked["seed"] = np.random.randint(1000000)
    with datasets.unseen():
        made = plain(**asked)
    said = _windows(**asked)
    if said is None:
        made._tundish_step = datasets.Step("timeseries_dataset_from_array", (), {}, origin.here())
    else:
        made._tundish_step = datasets.step_of(said)
    return made


def _windows(
    data: Any, targets: Any, sequence_length: int, sequence_stride: int, sampling_rate: int,
    batch_size: int | None, shuffle: bool, seed: int | None, start_index: int | None, end_index: int | None,
) -> Any:  # fmt: skip
    """None: they would be too many bytes, or reach beyond the data."""
    first, end = start_index or 0, len(data) if end_index is None else end_index
    series = np.asarray(data[first:end])
    span = (sequence_length - 1) * sampling_rate
    count = end - first - span if targets is None else min(end - first - span, len(targets))
    starts = np.arange(0, count, sequence_stride)
    if shuffle:
        np.random.RandomState(seed).shuffle(starts)
        made = _listed(series, starts[:, None] + np.arange(sequence_length) * sampling_rate)
    else:
        windows = tf.data.Dataset.from_tensor_slices(series).window(
            sequence_length, shift=sequence_stride, stride=sampling_rate, drop_remainder=True
        )
        made = windows.flat_map(lambda window: window.batch(sequence_length))
    if targets is not None and made is not None:
        others = _listed(np.asarray(targets[first:end]), starts)
        made = None if others is None else tf.data.Dataset.zip((made, others))
    if made is not None and shuffle:
        made = made.shuffle(1024 if batch_size is None else batch_size * 8, seed=seed)
    return made if made is None or batch_size is None else made.batch(batch_size)


def _listed(values: Any, indexes: Any) -> Any:
    rows = values[:1].nbytes * indexes.size
    if rows > _MOST_BYTES or indexes.size and indexes.max() >= len(values):
        return None
    return tf.data.Dataset.from_tensor_slices(values[indexes])
