"""TensorFlow's datasets as tundish.data's: each step of the program calls the method of the same name."""

from __future__ import annotations

import inspect
import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from .. import data
from ..data import Origin
from ..data.absent import ABSENT
from ..data.lowering import find
from ..data.lowering.rule import Refusal
from ..data.remaining import remedy
from . import datasets, sampling
from .calls import Call, Opaque, Problem, Traced, Value, leaves, map_leaves
from .context import Symbol
from .layers import Layer
from .python import InPython
from .replay import RENAMED, Columns, Replay

NO_RULE = "Tundish has no stage or expression for it"
# They say how TensorFlow works, not what it gives.
_IGNORED = ("name", "num_parallel_calls", "deterministic", "buffer_size", "synchronous", "use_unbounded_threadpool")
_REMEDIES = {
    "_AssertCardinalityDataset": "leave it out",
    "_CopyToDeviceDataset": "leave it out",
    "_DataServiceDataset": "leave it out: name the helpers when it is served",
    "_DataServiceDatasetV2": "leave it out: name the helpers when it is served",
    "_MapAndBatchDataset": "use map, then batch",
    "_ShuffleAndRepeatDataset": "use shuffle, then repeat",
    "from_generator": "leave out --no-python, or write the rows as `program:` (tundish help program)",
    "SqlDataset": "write it as `program:` (tundish help program)",
    "parallel_interleave": "use interleave(..., cycle_length=n, block_length=m)",
    "timeseries_dataset_from_array": "make the windows with Dataset.window, and shuffle them with Dataset.shuffle",
    "sparse_batch": "use tf.io.parse_example after batch, or ragged_batch",
}


class Unseen(Exception):
    """A dataset that nothing was noted of, so that no stage can be made of what follows it."""


@dataclass
class Order:
    """sections: of `distribute`. unordered: why TensorFlow promises no order; None: it does. races: why its
    own values change from run to run; None: they do not."""

    sections: dict[str, Any] = field(default_factory=dict)
    unordered: str | None = None
    races: str | None = None


class Walk:
    """One walk: all problems of all datasets that are given to it. fills: stages get the seeds that they
    were given for a comparison. python: what is left to TensorFlow itself."""

    def __init__(self, fills: bool = False, python: InPython | None = None) -> None:
        self._fills = fills
        self._python = python
        self.steps: dict[Any, datasets.Step] = {}  # of tundish.data's nodes
        self.failing: list[tuple[datasets.Step, list[Problem]]] = []  # by itself, with its inputs right
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.ends: list[data.Dataset] = []  # before stages that are not carried over
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
            self.problem(datasets.origin_of(dataset), type(dataset).__name__, "how it was made cannot be seen",
                         _REMEDIES.get(type(dataset).__name__, "make it with the methods of tf.data.Dataset"))  # fmt: skip
            return None
        if self._python is not None and step in self._python.sources:
            return self._python.source(step, self._fills)
        if self._python is not None and step in self._python.functions:
            before = self._try(step.inputs[0])
            return None if before is None else self._in_python(step, before)
        told = len(self.problems)
        is_complete = self._note_functions(step)
        inputs = [self._try(each) for each in step.inputs]
        try:
            others = {name: self._argument(value) for name, value in step.arguments.items()}
        except Unseen:
            is_complete = False
        built = [each for each in inputs if each is not None]
        made = None
        if is_complete and len(built) == len(inputs):
            # with_options is read by order_of.
            made = built[0] if step.name == "with_options" else self._called(step, built, others)
        if made is not None:
            self.steps[made.node] = step
        elif len(built) == len(inputs):
            self.failing.append((step, self.problems[told:]))
        if made is None:
            self.ends += built
            if len(built) < len(inputs):
                self._known(step)
        for value in step.arguments.values():
            if isinstance(value, Traced):
                self._unknown(value.result, set())
        return made

    def _in_python(self, step: datasets.Step, before: data.Dataset) -> data.Dataset:
        assert self._python is not None
        made = self._python.applied(step, before, self._fills)
        made.node.depth = step.depth
        self.steps[made.node] = step
        return made

    def stands_for(self, dataset: Any, made: data.Dataset) -> None:
        """A dataset that a function gets: a window."""
        self._kept.append(dataset)
        self._made[id(dataset)] = made

    def _try(self, dataset: Any) -> data.Dataset | None:
        try:
            return self.dataset(dataset)
        except Unseen:
            return None

    def _unknown(self, nest: Any, seen: set[int]) -> None:
        """Calls without a rule, or refused, also where lowering would end before it comes to them."""

        def look(_: Any, leaf: Any) -> None:
            if isinstance(leaf, Value) and id(leaf.call) not in seen:
                seen.add(id(leaf.call))
                call = leaf.call
                told = any((each.origin, each.name) == (call.origin, call.name) for each in self.problems)
                rule = find(RENAMED.get(call.name, call.name))
                if isinstance(rule, Refusal) and not told:
                    self.problem(call.origin, call.name, rule.why, rule.remedy)
                if rule is None and call.name != "input" and not told:
                    self.problem(call.origin, call.name, NO_RULE, remedy(call.name))
                self._unknown((call.args, call.kwargs), seen)

        map_leaves(look, nest)

    def _note_functions(self, step: datasets.Step) -> bool:
        """All problems of its functions, also of those inside them."""
        if self._python is not None and step in self._python.functions:
            return True
        before = len(self.problems)
        for value in step.arguments.values():
            if isinstance(value, Traced):
                self.problems += value.problems
                self.notes += [note for note in value.notes if note not in self.notes]
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
        if not self._known(step):
            return None
        owner = inputs[0] if inputs else _owner(step)
        function: Callable[..., Any] = getattr(owner, step.name)
        known = inspect.signature(function).parameters
        given = {}
        for name, value in arguments.items():
            if _has_computed(step.arguments.get(name)):
                self.problem(step.origin, f"Dataset.{step.name}", f"{name} is computed from the InputContext",
                             "use its numbers themselves, or get_per_replica_batch_size")  # fmt: skip
                return None
            if name == "seed" and isinstance(step.arguments.get(name), Symbol):
                self.problem(step.origin, f"Dataset.{step.name}", "its seed is a number of the InputContext",
                             "give it a constant, and shard before it")  # fmt: skip
                return None
            unknown = [(path, leaf) for path, leaf in leaves(value) if isinstance(leaf, Opaque)]
            if unknown:
                path, leaf = unknown[0]
                place = name + "".join(f"[{key!r}]" for key in path)
                self.problem(step.origin, f"Dataset.{step.name}", f"{place} is {leaf.what}", leaf.remedy)
                return None
            if name in known:
                given[name] = value
            elif name not in _IGNORED:
                self.problem(step.origin, f"Dataset.{step.name}", f"it has no parameter {name}", "leave it out")
                return None
        if step.name == "interleave" and given.get("cycle_length") in (None, tf.data.AUTOTUNE):
            given["cycle_length"] = self._machines_cycle(step)
        if self._fills and step.filled is not None:
            given["seed"] = step.filled
        if step.name == "sample_from_datasets" and sampling.are_doubles(given.get("weights")):
            self.problem(step.origin, f"Dataset.{step.name}", "its weights are float64, by which TensorFlow draws"
                         " other numbers", "give a list of Python floats")  # fmt: skip
            return None
        if step.name == "list_files":
            given["file_pattern"] = _from_here(given["file_pattern"])
        positional = given.pop("args", ())
        try:
            made = function(*positional, **given, origin=Origin(*step.origin))
            made.node.depth = step.depth
            return made
        except data.UnsupportedError as error:
            self.problems += [Problem((u.origin.file, u.origin.line), u.name, u.why, u.remedy) for u in error.unsupported]
        except (TypeError, ValueError, NotImplementedError) as error:
            self.problem(step.origin, f"Dataset.{step.name}", str(error), "")
        return None

    def order_of(self, dataset: Any) -> Order:
        """The options on order and shards, and the stages that draw without a known seed."""
        order = Order()
        draws: list[int] = []
        for step in datasets.steps_of(dataset):
            if step.arguments.get("deterministic") is False:
                order.unordered = f"{_line(step)} says deterministic=False"
            if step.name == "with_options":
                _read_options(step.arguments["options"], order, _line(step))
            if step.name == "sample_from_datasets" and not sampling.is_exact(step.arguments.get("weights")):
                order.unordered = f"{_line(step)} has weights whose logarithms differ here in the last bit"
            if step.draw is not None:
                draws.append(step.draw)
            if step.arguments.get("num_parallel_calls") not in (None, 1) and _has_draws(step):
                order.races = f"{_line(step)} draws at random in several calls at once (num_parallel_calls)"
        if draws != list(range(len(draws))):
            order.unordered = "stages without a seed draw other seeds than in a program of this stream alone"
        return order

    def _known(self, step: datasets.Step) -> bool:
        """Whether tundish.data has the method; if not, a problem."""
        is_python = step.name == "from_generator"  # which --no-python lists, and TensorFlow runs else
        if (hasattr(_owner(step), step.name) and not is_python) or step.name == "with_options":
            return True
        by_hand = "write the stage by hand: see `tundish help stages`"
        remedy = ABSENT.get(step.name) or _REMEDIES.get(step.name, by_hand)
        self.problem(step.origin, f"Dataset.{step.name}", "Tundish has no such stage", remedy)
        return False

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


def _has_computed(argument: Any) -> bool:
    """Whether there is a number in it that has no name in a pipeline file."""
    return any(isinstance(leaf, Symbol) and leaf.text is None for _, leaf in leaves(argument))


def _has_draws(step: datasets.Step) -> bool:
    """Whether its function calls a layer that draws."""
    calls: dict[int, Call] = {}
    waiting = [value.result for value in step.arguments.values() if isinstance(value, Traced)]
    while waiting:
        for _, leaf in leaves(waiting.pop()):
            if isinstance(leaf, Value) and id(leaf.call) not in calls:
                calls[id(leaf.call)] = leaf.call
                waiting.append((leaf.call.args, leaf.call.kwargs))
    layers = [leaf for call in calls.values() for _, leaf in leaves(call.args) if isinstance(leaf, Layer)]
    return any(layer.name.rpartition(".")[2].startswith("Random") for layer in layers)


def _from_here(pattern: Any) -> Any:
    """The pattern with what TensorFlow puts before the files of one whose first folder is not named."""
    if isinstance(pattern, (list, tuple)):
        return [_from_here(each) for each in pattern]
    return "./" + pattern if isinstance(pattern, str) and re.match(r"[^/*?\[\\]*[*?\[\\]", pattern) else pattern


def _owner(step: datasets.Step) -> Any:
    return data if step.name in datasets.READERS else data.Dataset


def _read_options(options: Any, order: Order, line: str) -> None:
    if options.deterministic is False:
        order.unordered = f"{line} sets options.deterministic = False"
    policy = options.experimental_distribute.auto_shard_policy
    if policy is not tf.data.experimental.AutoShardPolicy.AUTO:
        order.sections["auto_shard"] = policy.name


def _line(step: datasets.Step) -> str:
    return f"{os.path.basename(step.origin[0])}:{step.origin[1]}"
