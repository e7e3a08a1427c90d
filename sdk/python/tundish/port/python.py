"""The parts that cannot be traced: they are left to TensorFlow itself, in interpreters. The smallest part that can be.

That is the function of a `map` or `filter`, as the stage `python`, or a dataset as it stands, as `program`.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from typing import Any

import tensorflow as tf

from ..data import Dataset, Origin, Spec, nest
from ..data.graph import Field, Name, Node
from . import datasets, rerun
from .calls import Problem, Traced, Value, leaves
from .context import Symbol
from .datasets import Step

_LONGEST_S = 600
# A function that has these depends on how often it was called before.
_STATE = (
    "Assign", "ResourceApply", "ResourceScatter", "Rng", "StatefulUniform", "StatefulStandardNormal",
    "StatefulTruncatedNormal", "StatefulRandom",
)  # fmt: skip


class InPython:
    """One program's: the steps whose functions run in Python, and those that are rows of a program. Each
    has the names of the calls for which there is no stage."""

    def __init__(self, target: str, words: list[str], is_wanted: bool) -> None:
        self._target, self._words = target, words
        self._is_wanted = is_wanted
        self.functions: dict[Step, list[str]] = {}
        self.sources: dict[Step, list[str]] = {}
        self._tried: dict[Step, dict[str, Any]] = {}
        self._parents: dict[Step, Step] = {}

    def take(self, failing: Iterable[tuple[Step, list[str]]], streams: Iterable[Any]) -> bool:
        """Take what is not carried over. False: nothing is taken that was not before."""
        if not self._is_wanted:
            return False
        self._parents = dict(_parents(streams))
        before = {*self.functions, *self.sources}
        listed = list(failing)
        around = {outer for step, _ in listed for outer in self._around(step)}
        for step, calls in listed:
            if step in around:
                continue  # what it has in it may be all
            if step not in self.functions and _is_function(step):
                self.functions[step] = calls
            else:
                self._take_source(step, [*self.functions.pop(step, []), *calls])
        for source in list(self.sources):
            for step in _within(source):
                self.functions.pop(step, None)
                self.sources.pop(step, None)
        self._try()
        return {*self.functions, *self.sources} != before

    def _around(self, step: Step) -> Iterator[Step]:
        while step in self._parents:
            step = self._parents[step]
            yield step

    def _take_source(self, step: Step, calls: list[str]) -> None:
        while step.depth > 0 and step in self._parents:
            step = self._parents[step]
        if step.depth == 0 and _has_rows(step) and not _is_of_context(step):
            self.sources.setdefault(step, calls)

    def _try(self) -> None:
        """See what gives which ranks, and how long a row takes, in a process of its own: datasets are read."""
        waiting = [step for step in (*self.functions, *self.sources) if step not in self._tried]
        if not waiting:
            return
        jobs = [{**self._job(step, False), "is_source": step in self.sources} for step in waiting]
        for job, step in zip(jobs, waiting, strict=True):
            job["gives"] = [str(number) for number, _ in enumerate(_leaves(step))]
            if not job["is_source"]:
                job["takes"] = [str(n) for n, _ in enumerate(rerun._paths(_function(step).inputs))]
        command = [sys.executable, "-m", rerun.__name__, json.dumps(jobs)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=_LONGEST_S, env=_environment())
        if done.returncode != 0:
            said = done.stderr.strip().splitlines() or [f"status {done.returncode}"]
            self._tried |= {step: {"why": said[-1]} for step in waiting}
        else:
            self._tried |= dict(zip(waiting, json.loads(done.stdout.splitlines()[-1]), strict=True))

    def _job(self, step: Step, fills: bool) -> dict[str, Any]:
        job: dict[str, Any] = {"program": self._target, "step": step.number, "at": rerun.described(step)}
        if self._words:
            job["words"] = self._words
        return {**job, **({"fills": True} if fills else {})}

    @property
    def problems(self) -> list[Problem]:
        """The parts that cannot run in Python, either."""
        return [
            Problem(step.origin, f"Dataset.{step.name}", f"it fails in Python: {tried['why']}", "")
            for step, tried in self._tried.items()
            if "why" in tried and (step in self.functions or step in self.sources)
        ]

    def draws_in(self, dataset: Any) -> bool:
        """Whether what runs in Python for a dataset draws at random, in an order of its own."""
        steps = datasets.steps_of(dataset)
        return any(_draws(step) for step in steps if step in self.functions or step in self.sources)

    @property
    def notes(self) -> list[str]:
        """A sentence for each, with what a row costs."""
        found = []
        for step, calls in (*self.functions.items(), *self.sources.items()):
            seconds = self._tried.get(step, {}).get("seconds")
            cost = "" if seconds is None else f": {_duration(seconds)} a row"
            what = "" if step in self.functions else ", with all before it in one process"
            of = f" ({', '.join(calls)})" if calls else ""
            found.append(f"{rerun.described(step)} runs in Python{of}{what}{cost}")
        return found

    # As tundish.data has it.

    def applied(self, step: Step, before: Dataset, fills: bool) -> Dataset:
        """The dataset after a function."""
        origin, facts = Origin(*step.origin), {"gives": self._fields(step)}
        arguments = {**self._job(step, fills), **({"draws": True} if _draws(step) else {})}
        params = {"call": f"{rerun.__name__}:Function", "arguments": arguments}
        if step.name == "filter":
            return Dataset(Node("python_filter", params, (before.node,), before.node.structure, origin, facts))
        return Dataset(Node("python", params, (before.node,), facts["gives"], origin, facts))

    def source(self, step: Step, fills: bool) -> Dataset:
        """The dataset as the rows of a program."""
        fields = self._fields(step)
        params = {"module": rerun.__name__, "job": self._job(step, fills)}
        return Dataset(Node("program", params, (), fields, Origin(*step.origin)))

    def _fields(self, step: Step) -> Any:
        """The components that it gives; where the rank is unknown, those that were seen."""
        if step.name == "filter":
            return Field(Name("keep", False), Spec("bool", ()))
        ranks = self._tried.get(step, {}).get("ranks", {})
        number = {path: str(n) for n, path in enumerate(rerun._paths(step.element))}
        names = _names(step)
        made = iter(
            Field(names[path], _spec(spec, ranks.get(number[path]))) for path, spec in nest.paths(step.element)
        )
        return nest.transform(lambda _: next(made), step.element)


def _within(source: Step) -> list[Step]:
    """The steps before it, and in its functions."""
    values = [value.result if isinstance(value, Traced) else value for value in source.arguments.values()]
    parts = [*source.inputs, *(leaf for value in values for _, leaf in leaves(value))]
    return [step for part in parts if isinstance(part, tf.data.Dataset) for step in datasets.steps_of(part)]


def _leaves(step: Step) -> list[Any]:
    return [tf.bool] if step.name == "filter" else nest.flatten(step.element)


def _function(step: Step) -> Traced:
    traced = step.arguments[datasets.FUNCTIONS[step.name][0]]
    assert isinstance(traced, Traced)
    return traced


def _spec(spec: Any, rank: int | None) -> Spec:
    shape = spec.shape.as_list() if spec.shape.rank is not None else None if rank is None else [None] * rank
    return Spec(spec.dtype.name, None if shape is None else tuple(shape))


def _names(step: Step) -> dict[Any, Name]:
    """Columns are called as the keys of dictionaries, or the function's variables."""
    traced = next((value for value in step.arguments.values() if isinstance(value, Traced)), None)
    variables = {(id(v.call), v.path): name for v, name in (traced.variables if traced else ())}
    values = dict(leaves(traced.result)) if traced is not None else {}
    found: dict[Any, Name] = {}
    taken: set[str] = set()
    for path, _ in nest.paths(step.element):
        keys = [str(key) for key in path if isinstance(key, str)]
        value = values.get(path)
        variable = variables.get((id(value.call), value.path)) if isinstance(value, Value) and path else None
        text = keys[-1] if keys else variable or "_".join(["value", *map(str, path)])
        while text in taken:
            text += "_"
        taken.add(text)
        found[path] = Name(text, bool(keys) or variable is not None)
    return found


def _is_function(step: Step) -> bool:
    """Whether its function can be called for each row: on tensors alone, which it gives, and without state."""
    if step.name not in ("map", "filter") or not isinstance(step.arguments[datasets.FUNCTIONS[step.name][0]], Traced):
        return False
    traced = _function(step)
    is_alone = all(isinstance(leaf, Value) for _, leaf in leaves(traced.inputs)) and not _uses_outer(traced)
    return is_alone and _has_rows(step) and not any(
        operation.startswith(_STATE) for operation in traced.operations
    )


def _has_rows(step: Step) -> bool:
    """Whether its elements are tensors."""
    specs = [] if step.name == "filter" else nest.flatten(step.element)
    return all(isinstance(spec, tf.TensorSpec) and spec.dtype.name not in ("variant", "resource") for spec in specs)


def _uses_outer(traced: Traced) -> bool:
    """Whether it has a value of a function that it stands in."""
    own = {id(leaf.call) for _, leaf in leaves(traced.inputs) if isinstance(leaf, Value)}
    seen: set[int] = set()
    waiting = [traced.result]
    while waiting:
        for _, leaf in leaves(waiting.pop()):
            if isinstance(leaf, Value) and id(leaf.call) not in seen:
                seen.add(id(leaf.call))
                if leaf.call.name == "input" and id(leaf.call) not in own:
                    return True
                waiting.append((leaf.call.args, leaf.call.kwargs))
    return False


def _is_of_context(step: Step) -> bool:
    """Whether a number of tf.distribute's InputContext is in it, which the program does not know by itself."""
    steps = [step, *(each for dataset in step.inputs for each in datasets.steps_of(dataset))]
    return any(isinstance(leaf, Symbol) for each in steps for _, leaf in leaves(each.arguments))


def _draws(step: Step) -> bool:
    steps = [step, *(each for dataset in step.inputs for each in datasets.steps_of(dataset))]
    traced = [value for each in steps for value in each.arguments.values() if isinstance(value, Traced)]
    operations = {operation for each in traced for operation in each.operations}
    return any(("Random" in name or name in _DRAWING) and "Stateless" not in name for name in operations)


_DRAWING = ("Multinomial", "SampleDistortedBoundingBoxV2", "SampleDistortedBoundingBox", "TruncatedNormal")


def _parents(streams: Iterable[Any]) -> Iterator[tuple[Step, Step]]:
    """Which step's function made which."""
    for dataset in streams:
        steps = datasets.steps_of(dataset)
        for outer in steps:
            for value in outer.arguments.values():
                for _, leaf in leaves(value.result if isinstance(value, Traced) else ()):
                    if isinstance(leaf, tf.data.Dataset):
                        yield from ((each, outer) for each in datasets.steps_of(leaf) if each.depth == outer.depth + 1)


def _environment() -> dict[str, str]:
    folders = [os.path.abspath(folder) for folder in sys.path if os.path.isdir(folder or ".")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(folders)}


def _duration(seconds: float) -> str:
    return f"{seconds * 1e3:.2g} ms" if seconds >= 1e-4 else f"{seconds * 1e6:.2g} us"


def is_at(step: Step, origin: Any) -> bool:
    """Whether a line is the step's own, or of a call in its functions. The file may be without its folder."""
    file, line = origin
    return any(number == line and os.path.basename(own) == os.path.basename(file) for own, number in _lines(step))


def _lines(step: Step) -> Iterator[tuple[str, int]]:
    yield step.origin
    seen: set[int] = set()
    waiting = [value.result for value in step.arguments.values() if isinstance(value, Traced)]
    while waiting:
        for _, leaf in leaves(waiting.pop()):
            if isinstance(leaf, Value) and id(leaf.call) not in seen:
                seen.add(id(leaf.call))
                yield leaf.call.origin
                waiting.append((leaf.call.args, leaf.call.kwargs))
