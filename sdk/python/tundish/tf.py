"""TensorFlow's names for a function that tundish.data traces, without TensorFlow.

    import tundish.tf as tf

    def parse(record):
        row = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([], tf.float32)})
        return tf.math.log1p(tf.maximum(row["x"], 0))

`python -m tundish.data.table` lists the functions.
"""

from __future__ import annotations

from typing import Any

from .data.namespace import Namespace

__all__: list[str] = []
_names = Namespace("tf")


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_names, name)


def __dir__() -> list[str]:
    return dir(_names)
