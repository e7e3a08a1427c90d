"""Functions that make a dataset by means of their own: the same, said with methods of tf.data.Dataset.

tests/port/test_composed.py holds what is said here against what TensorFlow's own make.
"""

from __future__ import annotations

import functools
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
import tensorflow as tf
from keras.src.utils import timeseries_dataset_utils as timeseries
from tensorflow.python.data.experimental.ops import interleave_ops, readers

from ..data.fused import map_and_batch, shuffle_and_repeat
from . import datasets, origin

# All windows of a shuffled series lie beside the pipeline file.
_MOST_BYTES = 1 << 28


def patch() -> None:
    """make_csv_dataset, make_batched_features_dataset, parse_example_dataset, timeseries_dataset_from_array, and the
    fused stages of tf.data.experimental."""
    files, maps = readers.core_readers, readers.map_op
    read = functools.partial(_interleaved, files.ParallelInterleaveDataset)
    readers.core_readers = SimpleNamespace(**{**vars(files), "ParallelInterleaveDataset": read})
    mapped = lambda dataset, function, **_: dataset.map(function)
    readers.map_op = SimpleNamespace(**{**vars(maps), "_MapDataset": mapped})
    for owner in (readers.parsing_ops, tf.data.experimental):
        setattr(owner, "parse_example_dataset", _parsing)
    timeseries._timeseries_dataset_tf = functools.partial(_series, timeseries._timeseries_dataset_tf)
    plain = interleave_ops.readers
    interleave_ops.readers = SimpleNamespace(**{**vars(plain), "ParallelInterleaveDataset": read})
    for fused in (map_and_batch, shuffle_and_repeat):  # whose methods are tf.data's, too
        _replace(getattr(tf.data.experimental, fused.__name__), fused)


def _replace(function: Any, other: Any) -> None:
    """Under all public names of a function."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("tensorflow"):
            for name in [name for name, value in vars(module).items() if value is function]:
                setattr(module, name, other)


def _interleaved(
    plain: Any,
    dataset: Any,
    function: Any,
    cycle_length: int,
    block_length: int = 1,
    sloppy: Any = False,
    *rest: Any,
    **more: Any,
) -> Any:
    """For single elements it is interleave; after a block that ends early it goes on in another way."""
    if cycle_length == 1:
        return dataset.flat_map(function)
    if sloppy:  # in any order
        return dataset.interleave(function, cycle_length, block_length, cycle_length, deterministic=False)
    if block_length == 1:
        return dataset.interleave(function, cycle_length)
    with datasets.unseen():
        made = plain(dataset, function, cycle_length, block_length, sloppy, *rest, **more)
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
