"""A port from its program to a pipeline file."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any

import tensorflow as tf

from ..data import nest
from ..data.emit import Emission, document, entry
from . import control, datasets, distribute, functions, layers, program, streams, tables, variants
from .calls import Problem
from .walk import Walk


@dataclass
class Stream:
    """A stream: the program's dataset, the nest of its columns' names, and why it has no order."""

    name: str
    dataset: Any
    structure: Any
    unordered: str | None


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


def patch() -> None:
    """Let TensorFlow tell what the program asks of it. Once in a process, before the program."""
    functions.patch()
    control.patch()
    datasets.patch()
    layers.patch()
    tables.patch()
    distribute.patch()


def port(target: str, words: list[str], folder: str = "", compared_in: str | None = None) -> Ported:
    """Run the program, and make the pipeline file.

    folder: where it will lie, from the current folder on. compared_in: where the file to compare will lie;
    TensorFlow's stages that would be random get seeds, so that its batches can be compared. None: there is
    no comparison. Raises ProgramFailed."""
    datasets.Draws.begin(compared_in is not None)
    result, function = program.run(target, words)
    found = streams.named(result, function, _is_stream)
    if not found:
        raise program.ProgramFailed(
            f"{target} gives {type(result).__name__}, not a tf.data.Dataset, or a mapping or tuple of them"
        )
    return _ported(found, folder, compared_in)


def _is_stream(value: Any) -> bool:
    return isinstance(value, tf.data.Dataset) or distribute.distributed(value) is not None


def _ported(found: dict[str, Any], folder: str, compared_in: str | None) -> Ported:
    ported = Ported()
    ported.text, emission, walk = _written(found, ported, folder)
    told = {(tuple(each.origin), each.name) for each in walk.problems}
    others = [each for each in emission.unsupported if (tuple(each.origin), each.name) not in told]
    ported.problems = [*walk.problems, *others]
    ported.notes, ported.files = walk.notes, emission.beside.files
    if ported.problems:
        ported.text = ""
    elif compared_in is not None:
        ported.compared, *_ = _written(found, Ported(), compared_in, fills=True)
    return ported


def _written(
    found: dict[str, Any], ported: Ported, folder: str, fills: bool = False
) -> tuple[str, Emission, Walk]:
    """The text of the pipeline file; with `fills` stages have the seeds that TensorFlow's were given."""
    walk, emission = Walk(fills), Emission(os.path.join(folder, "") if folder else "")
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
        if built is not None:
            # As in a program of tundish.data: stages after `batch` decide TensorFlow's rule of rebatching.
            emission.keeps_maps = sections.get("rebatch") == "tensorflow"
            emission.sections = {}
            stages = emission.stages(built.node)
            emission.sections.setdefault("distribute", {}).update(sections)
            made[name] = (stages, emission.sections)
            names = nest.transform(lambda each: each.name.text, built.node.structure)
            ported.streams.append(Stream(name, dataset, names, order.unordered))
    for end in walk.ends:
        emission.stages(end.node)
    return document(made, datasets.Draws.seed), emission, walk


def _described(dataset: Any, walk: Walk, fills: bool) -> Any:
    """The stages of a dataset as plain values, the names of its columns, and the files beside it; None if
    something is not carried over, which becomes a problem of the walk."""
    own, emission = Walk(fills), Emission()
    built = own.stream(dataset)
    walk.problems += own.problems
    if built is None:
        return None
    stages = [entry(each) for each in emission.stages(built.node)]
    if emission.unsupported:
        walk.problems += [Problem((u.origin.file, u.origin.line), u.name, u.why, u.remedy) for u in emission.unsupported]
        return None
    names = nest.transform(lambda each: each.name.text, built.node.structure)
    return stages, names, own.order_of(dataset).sections, emission.beside.files
