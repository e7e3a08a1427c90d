"""TensorFlow's datasets as tundish.data's: each step of the program calls the method of the same name."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from .. import data
from ..data import Origin
from . import datasets
from .calls import Opaque, Problem, Traced, map_leaves
from .replay import Columns, Replay

# They say how TensorFlow works, not what it gives.
_IGNORED = ("name", "num_parallel_calls", "deterministic", "buffer_size", "synchronous", "use_unbounded_threadpool")
_REMEDIES = {
    "from_generator": "write it as `program:` (tundish help program)",
    "SqlDataset": "write it as `program:` (tundish help program)",
    "random": "write it as `program:`, or draw with tf.random.stateless_uniform from a column",
    "ignore_errors": "remove it, and write `deliver: {on_error: skip}`",
    "load": "read the files that the snapshot was made of",
    "snapshot": "remove it, or use cache(filename)",
    "scan": "compute it before, or write it as `program:`",
    "take_while": "use take, or filter",
    "unique": "remove duplicates from the files",
    "rejection_resample": "use sample_from_datasets of one dataset for each class",
    "sparse_batch": "use tf.io.parse_example after batch, or ragged_batch",
}


class Unseen(Exception):
    """A dataset that nothing was noted of, so that no stage can be made of what follows it."""


class Walk:
    """One walk: all problems of all datasets that are given to it."""

    def __init__(self) -> None:
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self._columns = Columns(self)
        self._made: dict[int, data.Dataset | None] = {}
        self._kept: list[Any] = []  # so that no id is given again

    def stream(self, dataset: Any) -> data.Dataset | None:
        """The dataset; None if it is incomplete, and the problems say why."""
        try:
            return self.dataset(dataset)
        except Unseen:
            return None

    def dataset(self, dataset: Any) -> data.Dataset:
        if id(dataset) not in self._made:
            self._kept.append(dataset)
            self._made[id(dataset)] = self._make(dataset)
        made = self._made[id(dataset)]
        if made is None:
            raise Unseen
        return made

    def _make(self, dataset: Any) -> data.Dataset | None:
        step = datasets.step_of(dataset)
        if step is None:
            self.problem(("<program>", 0), type(dataset).__name__, "how it was made cannot be seen",
                         "make it with the methods of tf.data.Dataset")  # fmt: skip
            return None
        is_complete = self._note_functions(step)
        try:
            inputs = [self.dataset(each) for each in step.inputs]
            others = {name: self._argument(value) for name, value in step.arguments.items()}
        except Unseen:
            return None
        if not is_complete:
            return None
        return self._called(step, inputs, others)

    def _note_functions(self, step: datasets.Step) -> bool:
        """All problems of its functions, also of those inside them."""
        before = len(self.problems)
        for value in step.arguments.values():
            if isinstance(value, Traced):
                self.problems += value.problems
                map_leaves(lambda _, leaf: self._inner(leaf), value.result)
        return len(self.problems) == before

    def _inner(self, leaf: Any) -> None:
        if isinstance(leaf, tf.data.Dataset):
            step = datasets.step_of(leaf)
            if step is not None:
                self._note_functions(step)
                for each in step.inputs:
                    self._inner(each)

    def _called(self, step: datasets.Step, inputs: list[data.Dataset], arguments: dict[str, Any]) -> Any:
        function = _function(step.name, inputs)
        if function is None:
            self.problem(step.origin, f"Dataset.{step.name}", "Tundish has no such stage",
                         _REMEDIES.get(step.name, "write the stage by hand: see `tundish help stages`"))  # fmt: skip
            return None
        known = inspect.signature(function).parameters
        given = {}
        for name, value in arguments.items():
            if isinstance(value, Opaque):
                self.problem(step.origin, f"Dataset.{step.name}", f"{name} is {value.what}", "give a constant")
                return None
            if name in known:
                given[name] = value
            elif name not in _IGNORED:
                self.problem(step.origin, f"Dataset.{step.name}", f"it has no parameter {name}", "leave it out")
                return None
        if step.name == "interleave" and given.get("cycle_length") in (None, tf.data.AUTOTUNE):
            given["cycle_length"] = self._machines_cycle(step)
        positional = given.pop("args", ())
        try:
            return function(*positional, **given, origin=Origin(*step.origin))
        except data.UnsupportedError as error:
            self.problems += [Problem(tuple(u.origin), u.name, u.why, u.remedy) for u in error.unsupported]
        except (TypeError, ValueError, NotImplementedError) as error:
            self.problem(step.origin, f"Dataset.{step.name}", str(error), "")
        return None

    def _machines_cycle(self, step: datasets.Step) -> int:
        cores = len(os.sched_getaffinity(0))
        self.notes.append(
            f"{os.path.basename(step.origin[0])}:{step.origin[1]}: without cycle_length TensorFlow interleaves as "
            f"many files as the machine has cores; the pipeline file says {cores}, as here"
        )
        return cores

    def _argument(self, value: Any) -> Any:
        if isinstance(value, Traced):
            return Replay(self._columns, value, value.function)
        if isinstance(value, (Opaque, tf.data.Options)):
            return value
        return self._columns.of(value)

    def problem(self, origin: tuple[str, int], name: str, why: str, remedy: str) -> None:
        self.problems.append(Problem(origin, name, why, remedy))


def _function(name: str, inputs: list[data.Dataset]) -> Callable[..., Any] | None:
    owner: Any = inputs[0] if inputs else data if name in datasets.READERS else data.Dataset
    return getattr(owner, name, None)
