"""--check: TensorFlow and Tundish on the same files, batch by batch."""

from __future__ import annotations

import contextlib
import itertools
import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from .. import serving
from ..data import nest
from ..errors import Error
from ..explaining import explain
from . import compare, datasets

# Where the bits of floats may differ from TensorFlow's: tests/conformance/cases/README.md. By stage, and
# by function of an expression.
_TOLERANCES = {
    1e-3: "mel_spectrogram random_rotation random_zoom",
    1e-4: "stft random_translation",
    1e-5: "resize resizing center_crop random_contrast random_crop random_resized_crop",
    1e-6: "normalization random_brightness category_encoding exp log log1p expm1 pow sqrt sin cos tanh sigmoid"
    " sum mean",
}


_ALL = 1 << 30


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
    epoch, question.unordered = _epoch(question)
    try:
        found = _peek(question, count, epoch)
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
    return _in_order(question, checked, theirs, ours, epoch)


def _epoch(question: Question) -> tuple[int, str | None]:
    """Which epoch TensorFlow's next iterator is: a shuffle draws anew for each iterator, and the program,
    or the check of another stream, may have made some."""
    steps = datasets.steps_of(question.dataset)
    counts = {step.iterations for step in steps if step.name in ("shuffle", "list_files")}
    if question.unordered is not None or counts <= {0}:
        return 0, question.unordered
    names = {step.name for step in steps}
    if len(counts) > 1 or names & {"cache", "repeat", "sample_from_datasets", "concatenate"}:
        return 0, "the program has iterated over its shuffle before, which then draws other orders"
    return counts.pop(), None


def _peek(question: Question, count: int, epoch: int) -> list[dict[str, Any]]:
    """The first batches of an epoch."""

    def first(steps: int, epochs: int) -> list[dict[str, Any]]:
        options: dict[str, Any] = {"root": question.root, "epochs": epochs}
        return serving.peek(question.file, steps, stream=question.stream, **options)

    if epoch == 0:
        return first(count, 1)
    passed = len(first(_ALL, epoch))
    return first(passed + count, epoch + 1)[passed:]


def _tolerance(question: Question) -> tuple[float, str]:
    """How far floats may be apart, and for which function."""
    words = set(re.findall(r"\b\w+(?=[:(])|(?<=- )\w+", question.file.read_text(encoding="utf-8")))
    for within, names in _TOLERANCES.items():
        for name in names.split():
            if name in words:
                return within, name
    return 0, ""


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


def _in_order(question: Question, checked: Checked, theirs: list[Any], ours: list[Any], epoch: int) -> Checked:
    within, function = _tolerance(question)
    near: set[str] = set()
    for step, (expected, found) in enumerate(zip(theirs, ours, strict=False)):
        for name, parts in expected.items():
            told = compare.difference(name, parts, found[name])
            if told is not None and within:
                near.add(name)
                told = compare.difference(name, parts, found[name], within)
            if told is not None:
                where = _where(question, epoch, step, told.row)
                return checked.fail(f"step {step}, column {name}: {told.text}{where}")
    if len(theirs) != len(ours):
        return checked.fail(f"TensorFlow has {len(theirs)} batches, Tundish {len(ours)}")
    columns = len(nest.flatten(question.structure))
    text = f"{len(ours)} batches of {columns} columns are the same, to the bit"
    if near:
        text += f", but {', '.join(sorted(near))} within {within:g}, as documented for {function}"
    checked.lines.append(text)
    return checked


def _where(question: Question, epoch: int, step: int, row: int | None) -> str:
    """The file and the bytes that Tundish made the row of."""
    if row is None:
        return ""
    with contextlib.suppress(Error):
        options: dict[str, Any] = {"root": question.root, "stream": question.stream}
        told = explain(question.file, epoch=epoch, step=step, row=row, **options)
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
