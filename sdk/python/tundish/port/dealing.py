"""How TensorFlow deals a dataset to the workers and replicas of a job."""

from __future__ import annotations

from typing import Any

import tensorflow as tf
from tensorflow.python.data.experimental.ops import distribute as rebatching
from tensorflow.python.distribute import input_ops

from . import datasets
from .datasets import Draws


def rebatched(dataset: Any) -> dict[str, Any]:
    """How batches are cut for replicas: by TensorFlow's rule, if it knows their size; else each alone, as
    a pipeline file has it without a word."""
    return {} if _batch_size(dataset) == -1 else {"rebatch": "tensorflow"}


def _batch_size(dataset: Any) -> int:
    try:
        return int(rebatching.compute_batch_size(dataset))  # pyright: ignore[reportArgumentType]
    except IndexError:  # of elements without a first dimension, which cannot be dealt
        return -1


def for_worker(dataset: Any, workers: int, worker: int, replicas: int) -> Any:
    """As experimental_distribute_dataset makes it: the slices of a worker, for its replicas in turn."""
    slices, count = dataset, workers * replicas
    size = _batch_size(dataset)
    with datasets.unseen():
        if count > 1 and size == -1:
            slices = rebatching._LegacyRebatchDataset(slices, count)
        elif count > 1:
            slices = slices.rebatch(rebatching.batch_sizes_for_worker(size, workers, replicas, worker))
        slices = input_ops.auto_shard_dataset(slices, workers, worker, count)
    if slices is not dataset:
        # An iterator of it is one of the dataset.
        slices._tundish_step = datasets.step_of(dataset)  # pyright: ignore[reportAttributeAccessIssue]
    return slices


def from_function(function: tuple[Any, Any], workers: int, worker: int, replicas: int) -> Any:
    """As distribute_datasets_from_function makes it, of the function and where the program's generator
    stood."""
    make, before = function
    Draws.go_back(before)
    return make(tf.distribute.InputContext(workers, worker, workers * replicas))
