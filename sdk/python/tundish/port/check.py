"""--check: TensorFlow and Tundish on the same files, batch by batch."""

from __future__ import annotations

import contextlib
import functools
import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .. import serving
from ..data import nest
from ..errors import Error
from ..explaining import explain
from . import compare, datasets, epochs

if TYPE_CHECKING:
    from .porting import Ported

# Where the bits of floats may differ from TensorFlow's: tests/conformance/cases/README.md. By stage, and
# by function of an expression.
_TOLERANCES = {
    1e-3: "mel_spectrogram random_rotation random_zoom scale_to_gaussian",
    1e-4: "stft random_translation",
    1e-5: "resize resizing center_crop random_contrast random_crop random_resized_crop"
    " scale_to_z_score scale_to_z_score_per_key scale_by_min_max scale_by_min_max_per_key scale_to_0_1"
    " scale_to_0_1_per_key",
    1e-6: "normalization random_brightness category_encoding tfidf exp log log1p expm1 pow sqrt sin cos tanh sigmoid"
    " sum mean",
}


_ALL = 1 << 30
_RUNS = 2  # of TensorFlow, to see whether it gives the same each time


@dataclass
class Checked:
    """The outcome of a check of one stream: `failed` or not, and sentences."""

    stream: str
    failed: bool = False
    lines: list[str] = field(default_factory=list)

    def fail(self, text: str) -> Checked:
        self.failed = True
        self.lines.append(text)
        return self


@dataclass
class Question:
    """One stream of a pipeline file, and how TensorFlow makes it for a job of some workers.

    make: the dataset of a worker, whose elements go to its replicas in turn. structure: the nest of names
    of its columns. unordered: why TensorFlow promises no order; None: it does. races: why its own values
    change from run to run; None: they do not. again: makes the dataset once more, as if for the first time.
    before: why another epoch than the first is compared. draws: Python draws other random numbers.
    """

    file: Path
    root: str
    stream: str
    make: Callable[[int], Any]
    structure: Any
    unordered: str | None = None
    workers: int = 1
    replicas: int = 1
    races: str | None = None
    again: Callable[[], Any] | None = None
    before: str = ""
    draws: bool = False

    @property
    def job(self) -> str:
        """The compared part of a job, in words; "" for one reader."""
        if self.workers * self.replicas == 1:
            return ""
        return f"{_number(self.workers, 'worker')} of {_number(self.replicas, 'replica')}: "


@dataclass
class Batches:
    """The batches of one replica from TensorFlow and from Tundish. epoch: the number of this one in Tundish. ended:
    with which error both ended after these."""

    worker: int
    replica: int
    epoch: int
    theirs: list[Any]
    ours: list[Any]
    ended: str = ""


def questions(ported: Ported, file: Path, root: str) -> Iterator[Question]:
    """All that is to be compared of a port. file: its pipeline file for the comparison."""
    for stream in ported.streams:
        for workers in stream.jobs:
            make = functools.partial(stream.make, workers)
            replicas = stream.replicas
            question = Question(file, root, stream.name, make, stream.structure, stream.unordered, workers, replicas)
            question.races, question.again = stream.races, stream.repeated
            question.draws = stream.draws
            yield question


def check(question: Question, count: int) -> Checked:
    """Compare `count` batches of each replica."""
    checked = Checked(question.stream)
    try:
        batches, refused = list(_batches(question, count)), None
    except _Refused as error:
        if not (error.ours and error.theirs and question.workers > 1):
            return checked.fail(f"{question.job}{error}")
        refused = str(error)
    if refused is not None:
        checked.lines.append(f"{question.job}neither gives batches: {refused}")
    elif question.unordered is not None:
        _as_sets(question, checked, batches, count)
    else:
        _in_order(question, checked, batches)
        if checked.failed and question.draws:
            checked = _alike(question, batches)
        if question.before:
            checked.lines.append(question.job + question.before)
        if checked.failed:
            _try_again(question, checked, batches)
    return checked


def _try_again(question: Question, checked: Checked, found: list[Batches]) -> None:
    """Whether TensorFlow itself gives other batches when the program runs once more, before anybody is blamed."""
    if question.again is None or question.workers * question.replicas > 1:
        return
    if all(_is_repeated(question, found[0]) for _ in range(_RUNS)):
        if question.races is not None:
            checked.lines.append(f"{question.races}, so that TensorFlow's values may change from run to run")
        return
    checked.lines.append("TensorFlow gives other batches in a second run of the program")
    if question.races is not None:
        checked.failed = False
        checked.lines = [f"not compared: {question.races}, and TensorFlow gives other values in each run"]


def _is_repeated(question: Question, found: Batches) -> bool:
    assert question.again is not None
    taken, _ = _taken(question.again(), len(found.theirs))
    again = [_components(question, element) for element in taken]
    alone = Batches(0, 0, found.epoch, again, found.theirs)
    return _difference(question, alone, 0, set()) is None


class _Refused(Exception):
    """There are no batches to compare: `ours` and `theirs` say why."""

    def __init__(self, theirs: str, ours: str) -> None:
        self.theirs, self.ours = theirs, ours
        super().__init__("; ".join(each for each in (theirs, ours) if each))


def _batches(question: Question, count: int) -> Iterator[Batches]:
    made: list[tuple[int, list[Any]]] = []
    theirs = ours = ""
    for worker in range(question.workers):
        try:
            dataset = question.make(worker)
        except Exception as error:  # whatever the program raises
            theirs = theirs or _of_tensorflow(error)
            continue
        epoch = _epoch(question, dataset)
        taken, ended = _taken(dataset, count * question.replicas)
        if ended and taken and question.workers * question.replicas == 1:
            yield _until(question, Batches(0, 0, epoch, taken, [], ended))
            return
        if not ended:
            made.append((epoch, taken))
        theirs = theirs or ended
    found: list[Batches] = []
    try:
        for worker, (epoch, slices) in enumerate(made):
            for replica in range(question.replicas):
                own = slices[replica :: question.replicas]
                expected = [_components(question, element) for element in own]
                peeked = _peek(question, (worker, replica), count, epoch)
                batches = [_columns(question, batch) for batch in peeked]
                found.append(Batches(worker, replica, epoch, expected, batches))
        if theirs and not made:
            _peek(question, (0, 0), 1, 0)
    except Error as error:
        ours = f"Tundish: {error}"
    if theirs or ours:
        raise _Refused(theirs, ours)
    yield from found


def _taken(dataset: Any, count: int) -> tuple[list[Any], str]:
    """TensorFlow's first elements, and the error that they end with."""
    taken: list[Any] = []
    try:
        for element in itertools.islice(iter(dataset), count):
            taken.append(element)
    except Exception as error:  # whatever the program's dataset raises
        return taken, _of_tensorflow(error)
    return taken, ""


def _of_tensorflow(error: Exception) -> str:
    return f"TensorFlow: {type(error).__name__}: {error}"


def _until(question: Question, found: Batches) -> Batches:
    """As many batches of Tundish as TensorFlow gives before it fails, and whether Tundish fails there, too."""
    found.theirs = [_components(question, element) for element in found.theirs]
    count = len(found.theirs)
    try:
        found.ours = [_columns(question, batch) for batch in _peek(question, (0, 0), count, found.epoch)]
    except Error as error:
        raise _Refused(found.ended, f"Tundish, within the {_number(count, 'batch')} before: {error}") from None
    try:
        _peek(question, (0, 0), count + 1, found.epoch)
    except Error as error:
        found.ended += f"; Tundish: {error}"
        return found
    raise _Refused(f"step {count}: {found.ended}", "Tundish goes on")


def _epoch(question: Question, dataset: Any) -> int:
    """Which epoch TensorFlow's next iterator is: a shuffle draws again for each iterator, and the program,
    or the check of another stream, may have made some."""
    shuffles = epochs.shuffles(dataset)
    counts = {step.iterations for step in shuffles}
    if question.unordered is not None or counts <= {0}:
        return 0
    names = {step.name for step in datasets.steps_of(dataset)}
    before = epochs.read_before(shuffles)
    if len(counts) > 1 or names & {"cache", "repeat", "sample_from_datasets", "concatenate"}:
        question.unordered = f"{before}, which then draws other orders"
        return 0
    question.before = f"{before}: compared is epoch {max(counts)} of Tundish, which is TensorFlow's next"
    return counts.pop()


def _peek(question: Question, place: tuple[int, int], count: int, epoch: int) -> list[dict[str, Any]]:
    """The first batches of an epoch, for a worker's replica."""
    worker, replica = place

    def first(steps: int, epochs: int) -> list[dict[str, Any]]:
        options: dict[str, Any] = {"root": question.root, "epochs": epochs, "num_workers": question.workers}
        options |= {"worker": worker, "replica": replica, "stream": question.stream}
        return serving.peek(question.file, steps, **options)

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
    theirs, ours = ([path for path, _ in nest.paths(each)] for each in (element, question.structure))
    if set(theirs) != set(ours):
        raise _Refused(f"TensorFlow's elements are {_shown(theirs)}, Tundish's {_shown(ours)}", "")
    parts = {}
    for path, name in nest.paths(question.structure):
        value = element
        for key in path:
            value = value[key]
        parts[str(name)] = compare.of_tensorflow(value)
    return parts


def _shown(paths: list[tuple[Any, ...]]) -> str:
    """A nest by the ways to its components."""
    if paths == [()]:
        return "one component"
    return f"{len(paths)} components: " + ", ".join("/".join(map(str, path)) for path in paths[:9])


def _in_order(question: Question, checked: Checked, found: list[Batches]) -> Checked:
    within, function = _tolerance(question)
    near: set[str] = set()
    for each in found:
        told = _difference(question, each, within, near)
        if told is not None:
            return checked.fail(question.job + told)
    columns = len(nest.flatten(question.structure))
    count = max(len(each.ours) for each in found)
    text = f"{_number(count, 'batch')} of {_number(columns, 'column')} are the same, to the bit"
    if count == 0:
        text = "neither gives a batch, so nothing was compared"
    if near:
        text += f", but {', '.join(sorted(near))} within {within:g}, as documented for {function}"
    ended = found[0].ended
    checked.lines.append(question.job + text + (f"; then both end at step {count}: {ended}" if ended else ""))
    return checked


def _alike(question: Question, found: list[Batches]) -> Checked:
    """Compare what draws at random: columns that differ by shapes, dtypes, and how the values of rows are spread."""
    checked, drawn = Checked(question.stream), set()
    for each in found:
        if len(each.theirs) != len(each.ours):
            return checked.fail(f"{question.job}TensorFlow has {len(each.theirs)} batches, Tundish {len(each.ours)}")
        for name in each.theirs[0] if each.theirs else ():
            halves = [[batch[name] for batch in half] for half in (each.theirs, each.ours)]
            if all(compare.difference(name, *pair) is None for pair in zip(*halves, strict=True)):
                continue
            drawn.add(name)
            told = compare.unlike(*halves)
            if told is not None:
                return checked.fail(f"{question.job}column {name}: {told}")
    columns, batches = len(found[0].theirs[0]), _number(len(found[0].ours), "batch")
    text = f"the same shapes, dtypes and spread of values of {', '.join(sorted(drawn))}, in all {batches}"
    text += ": what runs in Python draws random numbers of its own"
    if columns > len(drawn):
        text += f"; {_number(columns - len(drawn), 'other column')} the same to the bit"
    checked.lines.append(question.job + text)
    return checked


def _difference(question: Question, each: Batches, within: float, near: set[str]) -> str | None:
    """The first difference of a replica's batches. near: gets the columns that are the same only within the
    tolerance."""
    who = f"worker {each.worker}, replica {each.replica}, " if question.job else ""
    for step, (expected, found) in enumerate(zip(each.theirs, each.ours, strict=False)):
        for name, parts in expected.items():
            told = compare.difference(name, parts, found[name])
            if told is not None and within:
                near.add(name)
                told = compare.difference(name, parts, found[name], within)
            if told is not None:
                where = _where(question, each, step, told.row)
                return f"{who}step {step}, column {name}: {told.text}{where}"
    # A replica for which TensorFlow has none in the last steps gets empty ones.
    more = each.ours[len(each.theirs) :]
    is_empty = question.job and not any(compare.count_rows(batch.values()) for batch in more)
    if len(each.theirs) > len(each.ours) or more and not is_empty:
        return f"{who}TensorFlow has {_number(len(each.theirs), 'batch')}, Tundish {len(each.ours)}"
    return None


def _where(question: Question, each: Batches, step: int, row: int | None) -> str:
    """The file and the bytes that Tundish made the row of."""
    if row is None:
        return ""
    with contextlib.suppress(Error):
        options: dict[str, Any] = {"root": question.root, "stream": question.stream}
        options |= {"worker": each.worker, "replica": each.replica, "num_workers": question.workers}
        told = explain(question.file, epoch=each.epoch, step=step, row=row, **options)
        sources = [source for each in told for source in each.sources if source.file is not None]
        if sources:
            return f"; row {row} is of {sources[-1].file}, byte {sources[-1].offset}"
    return f"; row {row}"


def _as_sets(question: Question, checked: Checked, all_of: list[Batches], count: int) -> Checked:
    why = question.unordered
    if any(len(batches) == count for each in all_of for batches in (each.theirs, each.ours)):
        are = "is" if count == 1 else "are"
        checked.lines.append(f"not compared: {why}, and {_number(count, 'batch')} {are} not all of them: give a larger N")
        return checked
    halves = ([b for each in all_of for b in each.theirs], [b for each in all_of for b in each.ours])
    expected, found = (compare.rows([list(b.values()) for b in half]) for half in halves)
    if expected != found:
        missing, extra = sum((expected - found).values()), sum((found - expected).values())
        return checked.fail(f"as sets ({why}): {missing} rows of TensorFlow are missing, {extra} are not its")
    checked.lines.append(f"the same {sum(found.values())} rows, compared as sets: {why}")
    return checked


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}{'es' if noun.endswith('ch') else 's'}"
