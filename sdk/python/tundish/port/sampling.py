"""sample_from_datasets: whether the weights give the same draws."""

from __future__ import annotations

from typing import Any

import numpy as np
import tensorflow as tf


def are_doubles(weights: Any) -> bool:
    """Whether TensorFlow takes them as float64."""
    return _is_given(weights) and bool(tf.convert_to_tensor(weights).dtype == tf.float64)


def is_exact(weights: Any) -> bool:
    """Whether TensorFlow's logarithms of them are those of the server, which are rounded correctly."""
    if not _is_given(weights):
        return True
    given = np.asarray(weights, np.float32)
    given = given[given > 0]
    return bool(np.array_equal(tf.math.log(given).numpy(), np.log(given.astype(np.float64)).astype(np.float32)))


def _is_given(weights: Any) -> bool:
    return weights is not None and not isinstance(weights, tf.data.Dataset)
