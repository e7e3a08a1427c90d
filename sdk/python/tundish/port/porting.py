"""A port from its program to a pipeline file."""

from __future__ import annotations

import functools
import os
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import tensorflow as tf

from ..data import nest
from ..data.emit import Emission, document, entry
from . import (
    composed, control, datasets, dealing, distribute, epochs, functions, layers, paths, planned, program, python,
    streams, tables, variants,
)  # fmt: skip
from .calls import Problem
from .python import InPython
from .walk import Walk


@dataclass
class Stream:
    """A stream: the nest of its columns' names, why it has no order, and how it is made.

    races: why TensorFlow's own values change from run to run; None: they do not.
    draws: what runs in Python draws random numbers of its own.
    again: gives the program's value of this stream once more, as if for the first time; None: it cannot.
    """

    name: str
    value: Any
    structure: Any
    unordered: str | None
    again: Callable[[], Any] | None = None
    races: str | None = None
    draws: bool = False

    @property
    def replicas(self) -> int:
        """On each worker of the jobs that are compared."""
        noted = distribute.distributed(self.value)
        return 1 if noted is None else _replicas(noted)

    @property
    def repeated(self) -> Callable[[], Any] | None:
        """Gives the dataset once more; None: it cannot, or it is dealt to workers."""
        return self.again if distribute.distributed(self.value) is None else None

    @property
    def jobs(self) -> tuple[int, ...]:
        """The numbers of workers for which it is compared."""
        noted = distribute.distributed(self.value)
        is_alone = noted is None or self.unordered is not None or noted.is_per_worker
        has_more = noted is not None and (noted.function is not None or self.again is not None)
        return (1,) if is_alone or not has_more else (1, 2, 3)

    def make(self, workers: int, worker: int) -> Any:
        """TensorFlow's dataset for a worker, whose elements are for its replicas in turn."""
        noted = distribute.distributed(self.value)
        if noted is None:
            return self.value
        place = (workers, worker, self.replicas)
        if noted.function is not None:
            return dealing.from_function(noted.function, *place)
        if noted.is_per_worker:
            return noted.dataset
        if workers == 1 or self.again is None:
            return dealing.for_worker(noted.dataset, *place)
        made = distribute.distributed(self.again())
        assert made is not None
        return dealing.for_worker(made.dataset, *place)


def _replicas(noted: distribute.Distributed) -> int:
    """At least two for a dataset that TensorFlow itself deals, so that it is seen how."""
    here = int(noted.sections.get("replicas", 1))
    return here if noted.sections.get("from_function") else max(here, 2)


@dataclass
class Ported:
    """text: the pipeline file, "" if something is not carried over. compared: the same for the comparison,
    with seeds where TensorFlow's stages were given some. files: what lies beside either."""

    text: str = ""
    compared: str = ""
    files: dict[str, bytes] = field(default_factory=dict)
    problems: list[Any] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    streams: list[Stream] = field(default_factory=list)
    failing: list[Any] = field(default_factory=list)  # steps, and the names of what is not carried over there
    transform: Any = None  # transform.Transform: what tf.Transform computes, and what is learned for it


@dataclass
class Place:
    """Where the pipeline file will be served: how many replicas a node has, None: as in the program, and which
    beginnings of paths are others there."""

    replicas: int | None = None
    paths: list[tuple[str, str]] = field(default_factory=list)


def patch() -> None:
    """Let TensorFlow tell what the program asks of it. Once in a process, before the program."""
    functions.patch()
    control.patch()
    datasets.patch()
    composed.patch()
    layers.patch()
    tables.patch()
    distribute.patch()


def port(
    target: str,
    words: list[str],
    folder: str = "",
    compared_in: str | None = None,
    preprocessing: str | None = None,
    place: Place | None = None,
    in_python: bool = False,
) -> Ported:
    """Run the program, and make the pipeline file.

    folder: where it will lie, from the current folder on. compared_in: where the file to compare will lie;
    TensorFlow's stages that would be random get seeds, so that its batches can be compared. None: there is
    no comparison. preprocessing: of tf.Transform's preprocessing_fn, which follows on each of the program's
    datasets. place: where the file will be served, which the comparison does not regard. in_python: what has
    no stage runs under TensorFlow itself. Raises ProgramFailed."""
    if preprocessing is not None:
        from . import transform

        transform.patch()
    datasets.Draws.begin(compared_in is not None)
    made = program.run(target, words)
    found = streams.named(made.result, made.function, _is_stream)
    if not found:
        raise program.ProgramFailed(
            f"{target} gives {type(made.result).__name__}, not a tf.data.Dataset, or a mapping or tuple of them"
        )
    place = place or Place()
    if preprocessing is not None:
        return _transformed(transform.Transform(preprocessing), found, folder, compared_in, place)
    ported = _ported(found, folder, compared_in, place, interpreters=InPython(target, words, in_python))
    if made.again is not None:
        for stream in ported.streams:
            stream.again = functools.partial(_again, made, stream.name)
    return ported


def _transformed(
    transform: Any, found: dict[str, Any], folder: str, compared_in: str | None, place: Place
) -> Ported:
    ported = _ported(transform.traced(found), folder, compared_in, place, transform)
    for stream in ported.streams:
        stream.value = transform.computed(stream.value)
    return ported


def _again(made: program.Made, name: str) -> Any:
    assert made.again is not None
    return streams.named(made.again(), made.function, _is_stream)[name]


def _dataset(value: Any) -> Any:
    """The dataset of a stream, also of one that is dealt to workers."""
    noted = distribute.distributed(value)
    return value if noted is None else noted.dataset


def _is_stream(value: Any) -> bool:
    return isinstance(value, tf.data.Dataset) or distribute.distributed(value) is not None


def _ported(
    found: dict[str, Any],
    folder: str,
    compared_in: str | None,
    place: Place,
    transform: Any = None,
    interpreters: InPython | None = None,
) -> Ported:
    while True:
        ported = _whole(found, folder, compared_in, place, transform, interpreters)
        if not ported.problems or interpreters is None or not interpreters.take(ported.failing, map(_dataset, found.values())):
            break
        if interpreters.problems:
            return Ported(problems=interpreters.problems)
    if interpreters is not None and not ported.problems:
        ported.notes += interpreters.notes
        for stream in ported.streams:
            stream.draws = interpreters.draws_in(_dataset(stream.value))
    return ported


def _whole(
    found: dict[str, Any],
    folder: str,
    compared_in: str | None,
    place: Place,
    transform: Any,
    interpreters: InPython | None,
) -> Ported:
    """The port, with what is known to run in Python."""
    ported = Ported(transform=transform)
    ported.text, emission, walk = _written(found, ported, folder, place=place, interpreters=interpreters)
    told = {(tuple(each.origin), each.name) for each in walk.problems}
    others = [each for each in emission.unsupported if (tuple(each.origin), each.name) not in told]
    ported.problems = [*walk.problems, *others]
    ported.notes = [*walk.notes, *epochs.notes({name: _dataset(value) for name, value in found.items()})]
    ported.files = emission.beside.files
    if not ported.problems and transform is None:  # whose stages learn before the file is whole
        ported.problems = _refused(found, ported.files, interpreters)
    if ported.problems:
        ported.text = ""
        ported.failing = list(_failing(ported.problems, emission, walk))
    elif compared_in is not None:
        ported.compared, *_ = _written(found, Ported(transform=transform), compared_in, fills=True, interpreters=interpreters)
    return ported


def _failing(problems: list[Any], emission: Emission, walk: Walk) -> Iterator[tuple[Any, list[str]]]:
    """The steps that problems are of, and the names of the calls."""
    yield from ((step, [each.name for each in told]) for step, told in walk.failing)
    for node in dict.fromkeys(emission.failing):
        if node in walk.steps:
            step = walk.steps[node]
            yield step, [each.name for each in problems if python.is_at(step, each.origin)]
    if not walk.failing and not emission.failing:  # the server refuses it
        for problem in problems:
            at = [step for step in walk.steps.values() if python.is_at(step, problem.origin)]
            functions = [step for step in at if step.name in ("map", "filter")]
            yield from ((step, [problem.name]) for step in functions or at)


def _refused(
    found: dict[str, Any], files: dict[str, bytes], interpreters: InPython | None
) -> list[Problem]:
    """The server's complaints about the pipeline file."""
    with tempfile.TemporaryDirectory(prefix="tundish-port-") as folder:
        text, *_ = _written(found, Ported(), folder, interpreters=interpreters)
        for name, content in files.items():
            Path(folder, name).write_bytes(content)
        file = Path(folder, "pipeline.yaml")
        file.write_text(text, encoding="utf-8")
        return planned.problems(file, found)


def _written(
    found: dict[str, Any],
    ported: Ported,
    folder: str,
    fills: bool = False,
    place: Place | None = None,
    interpreters: InPython | None = None,
) -> tuple[str, Emission, Walk]:
    """The text of the pipeline file; with `fills` stages have the seeds that TensorFlow's were given."""
    walk, emission = Walk(fills, interpreters), Emission(os.path.join(folder, "") if folder else "")
    made: dict[str, Any] = {}
    for name, value in found.items():
        noted = distribute.distributed(value)
        dataset, sections = (value, {}) if noted is None else (noted.dataset, dict(noted.sections))
        if noted is not None:
            walk.problems += noted.problems
            walk.problems += variants.differences(noted, lambda each: _described(each, walk, fills))
        built = walk.stream(dataset)
        order = walk.order_of(dataset)
        sections |= order.sections
        if fills and noted is not None and _replicas(noted) > 1:
            sections["replicas"] = _replicas(noted)
        if built is not None:
            # As in a program of tundish.data: stages after `batch` decide TensorFlow's rule of rebatching.
            emission.keeps_maps = sections.get("rebatch") == "tensorflow"
            emission.sections = {}
            stages = emission.stages(built.node)
            emission.sections.setdefault("distribute", {}).update(sections)
            if place is not None and place.replicas is not None:
                emission.sections["distribute"]["replicas"] = place.replicas
            made[name] = (stages, emission.sections)
            names = nest.transform(lambda each: each.name.text, built.node.structure)
            ported.streams.append(Stream(name, value, names, order.unordered, races=order.races))
    if place is not None and place.paths:
        own = [emission.beside.folder + each for each in emission.beside.files]
        moving = paths.Moving(place.paths, own)
        for stages, _ in made.values():
            moving.move(stages)
        walk.notes += moving.end()
    emission.is_part = True
    for end in walk.ends:
        emission.stages(end.node)
    learns = next(iter(made), None) if ported.transform is not None and len(made) > 1 else None
    return document(made, datasets.Draws.seed, learns, emission.named), emission, walk


def _described(dataset: Any, walk: Walk, fills: bool) -> Any:
    """The stages of a dataset as plain values, the names of its columns, and the files beside it; None if
    something is not carried over, which becomes a problem of the walk."""
    own, emission = Walk(fills), Emission()
    built = own.stream(dataset)
    walk.problems += own.problems
    if built is None:
        return None
    stages = [entry(each) for each in emission.stages(built.node)]
    stages += [{name: list(map(entry, each))} for name, each in emission.named.items()]
    if emission.unsupported:
        walk.problems += [Problem((u.origin.file, u.origin.line), u.name, u.why, u.remedy) for u in emission.unsupported]
        return None
    names = nest.transform(lambda each: each.name.text, built.node.structure)
    return stages, names, own.order_of(dataset).sections, emission.beside.files
