"""The elements that a program read of its shuffles before it gave its datasets, and who shares them."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from . import datasets
from .datasets import Step

_SHUFFLES = ("shuffle", "list_files")


def notes(streams: Mapping[str, Any]) -> list[str]:
    """The facts that a reader of the pipeline file needs. streams: the dataset of each."""
    shared: dict[int, list[str]] = {}
    steps: dict[int, Step] = {}
    for name, dataset in streams.items():
        for step in shuffles(dataset):
            shared.setdefault(id(step), []).append(name)
            steps[id(step)] = step
    said = [_read_before(step) for step in steps.values() if step.iterations]
    said += [_leak(steps[key], names) for key, names in shared.items() if len(names) > 1 and steps[key].name == "shuffle"]
    return said


def shuffles(dataset: Any) -> list[Step]:
    """The steps that draw a new order for each iterator."""
    return [
        step
        for step in datasets.steps_of(dataset)
        if step.name in _SHUFFLES
        and step.arguments.get("reshuffle_each_iteration") is not False
        and step.arguments.get("shuffle") is not False
    ]


def read_before(steps: Iterable[Step]) -> str:
    """In words: which epoch of these shuffles is the next."""
    step = next(each for each in steps if each.iterations)
    times = "once" if step.iterations == 1 else f"{step.iterations} times"
    return f"the shuffle at {_line(step)} was read {times} before (by adapt, a loop, list, or another stream)"


def _read_before(step: Step) -> str:
    return (
        f"{read_before([step])}, so TensorFlow's next epoch is epoch {step.iterations} of this pipeline file, whose"
        " order is another one than epoch 0's: adapt and look at a dataset without the shuffle"
    )


def _leak(step: Step, names: list[str]) -> str:
    return (
        f"LEAK: {' and '.join(names)} are parts of one shuffle ({_line(step)}) that draws a new order for each"
        " epoch, so elements of one are in the other in TensorFlow, and from epoch to epoch here too: give the shuffle"
        " reshuffle_each_iteration=False"
    )


def _line(step: Step) -> str:
    return f"{os.path.basename(step.origin[0])}:{step.origin[1]}"
