"""--check: TensorFlow and Tundish on the same files, batch by batch."""

from __future__ import annotations

import contextlib
import itertools
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import serving
from ..data import nest
from ..errors import Error
from ..explaining import explain
from . import compare


@dataclass
class Checked:
    """What a check of one stream found: `failed` or not, and sentences."""

    stream: str
    failed: bool = False
    lines: list[str] = field(default_factory=list)

    def fail(self, text: str) -> Checked:
        self.failed = True
        self.lines.append(text)
        return self


@dataclass
class Question:
    """One stream of a pipeline file, and the dataset that it came from.

    structure: the nest of names of its columns. unordered: why TensorFlow promises no order; None: it
    does.
    """

    file: Path
    root: str
    stream: str
    dataset: Any
    structure: Any
    unordered: str | None = None


def check(question: Question, count: int) -> Checked:
    """Compare `count` batches."""
    checked = Checked(question.stream)
    options = {"root": question.root, "epochs": 1}
    try:
        found = serving.peek(question.file, count, stream=question.stream, **options)
    except Error as error:
        return checked.fail(f"Tundish: {error}")
    try:
        expected = list(itertools.islice(iter(question.dataset), count))
    except Exception as error:  # whatever the program's dataset raises
        return checked.fail(f"TensorFlow: {type(error).__name__}: {error}")
    ours = [_columns(question, batch) for batch in found]
    theirs = [_components(question, element) for element in expected]
    if question.unordered is not None:
        return _as_sets(question, checked, theirs, ours, count)
    return _in_order(question, checked, theirs, ours)


def _columns(question: Question, batch: dict[str, Any]) -> dict[str, compare.Parts]:
    return {
        str(name): compare.of_tundish(batch[str(name)]) for name in nest.flatten(question.structure)
    }


def _components(question: Question, element: Any) -> dict[str, compare.Parts]:
    parts = {}
    for path, name in nest.paths(question.structure):
        value = element
        for key in path:
            value = value[key]
        parts[str(name)] = compare.of_tensorflow(value)
    return parts


def _in_order(question: Question, checked: Checked, theirs: list[Any], ours: list[Any]) -> Checked:
    for step, (expected, found) in enumerate(zip(theirs, ours, strict=False)):
        for name, parts in expected.items():
            told = compare.difference(name, parts, found[name])
            if told is not None:
                return checked.fail(f"step {step}, column {name}: {told.text}{_where(question, step, told.row)}")
    if len(theirs) != len(ours):
        return checked.fail(f"TensorFlow has {len(theirs)} batches, Tundish {len(ours)}")
    columns = len(nest.flatten(question.structure))
    checked.lines.append(f"{len(ours)} batches of {columns} columns are the same, to the bit")
    return checked


def _where(question: Question, step: int, row: int | None) -> str:
    """The file and the bytes that Tundish made the row of."""
    if row is None:
        return ""
    with contextlib.suppress(Error):
        options = {"root": question.root, "stream": question.stream}
        told = explain(question.file, epoch=0, step=step, row=row, **options)
        sources = [source for each in told for source in each.sources if source.file is not None]
        if sources:
            return f"; row {row} is of {sources[-1].file}, byte {sources[-1].offset}"
    return f"; row {row}"


def _as_sets(question: Question, checked: Checked, theirs: list[Any], ours: list[Any], count: int) -> Checked:
    why = question.unordered
    if len(theirs) == count or len(ours) == count:
        checked.lines.append(f"not compared: {why}, and {count} batches are not all of them: give a larger N")
        return checked
    expected, found = (compare.rows([list(b.values()) for b in each]) for each in (theirs, ours))
    if expected != found:
        missing, extra = sum((expected - found).values()), sum((found - expected).values())
        return checked.fail(f"as sets ({why}): {missing} rows of TensorFlow are missing, {extra} are not its")
    checked.lines.append(f"the same {sum(found.values())} rows, compared as sets: {why}")
    return checked
