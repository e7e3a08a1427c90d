"""Dataset.check: the comparison with a program of tf.data, as a call."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from . import nest
from .plan import save_apart
from .trace import DifferenceError

if TYPE_CHECKING:
    from .dataset import Dataset

__all__ = ["check"]


def check(ds: Dataset, program: Any, steps: int, stream: str = "train", root: str | None = None) -> str:
    """In words what is the same. Raises DifferenceError."""
    if importlib.util.find_spec("tensorflow") is None:
        raise ArgumentError("check compares with TensorFlow, which is not installed in this Python")
    from ..port import check as comparing

    again, unordered = _maker(program, stream)
    names = nest.transform(lambda leaf: leaf.name.text, ds.node.structure)
    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        file = save_apart(ds, folder)
        question = comparing.Question(file, root or os.getcwd(), "train", lambda _: again(), names, unordered)
        checked = comparing.check(question, steps)
    if checked.failed:
        raise DifferenceError("; ".join(checked.lines))
    return "; ".join(checked.lines)


def _maker(program: Any, stream: str) -> tuple[Any, str | None]:
    """The source of the dataset, and why TensorFlow promises no order; None: it does."""
    import tensorflow as tf

    from ..port import program as running
    from ..port import streams

    function = running.function(program) if isinstance(program, str) else program
    made = function() if callable(function) else function
    found = streams.named(made, function, streams.is_dataset)
    if isinstance(made, tf.data.Dataset):
        dataset = made
    elif stream in found:
        dataset = found[stream]
    else:
        what = f"streams {', '.join(found)}: say stream=" if found else f"{type(made).__name__}, not a tf.data.Dataset"
        raise ArgumentError(f"the program gives {what}")
    is_ordered = dataset.options().deterministic is not False
    return lambda: dataset, None if is_ordered else "the program sets options.deterministic = False"
