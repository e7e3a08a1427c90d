"""Where the rows of a batch come from: tundish.explain, reader.explain and batch.rows."""

from __future__ import annotations

import base64
import json
import os
import tempfile
from dataclasses import dataclass, field

from . import programs
from .errors import ArgumentError, MisuseError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .batch import Batch
    from .programs import PipelineFile
    from .reader import Reader

__all__ = ["Mark", "Row", "Rows", "Source", "explain"]


@dataclass(frozen=True)
class Source:
    """One element of a source that a row was made of.

    `file` is its name as the pipeline has it, `path` where it is on this machine. The record is the
    `length` bytes from `offset` on; if `compression` is not None, these count what the file unpacks to.
    `record` is its number in the file, from 0. None: it has no such thing, or it is not known; then
    `note` says why. `numbers` holds what else numbers the element: {"value": 7} of `range`, {"element":
    3} of rows in memory or of a cache. `row`: of what this element gives or is made into, the row that
    it is. `is_outer`: it is the outer element of `interleave` or `flat_map`. `raw` is the record as it
    lies in the file, if it was asked for.
    """

    stage: str
    line: int | None
    file: str | None
    path: str | None
    offset: int | None
    length: int | None
    record: int | None
    compression: str | None
    row: int | None = None
    is_outer: bool = False
    numbers: dict[str, int] = field(default_factory=dict)
    note: str | None = None
    raw: bytes | None = None


@dataclass(frozen=True)
class Mark:
    """A stage that numbered, chose or drew for a row.

    For a random stage `ordinal` is the number of the element that it drew for, and `drawn` what it drew:
    {"degrees": 12.5}; None if that depends on the size of the image. For `enumerate`, `index` is the
    number it gave. `dataset` is the dataset that `sample_from_datasets`, `choose_from_datasets` or
    `concatenate` took the row from. `row`: the stage worked on a batch, of which this is a row.
    """

    stage: str
    line: int | None
    ordinal: int | None = None
    drawn: dict[str, float] | None = None
    index: int | None = None
    dataset: int | None = None
    row: int | None = None


@dataclass(frozen=True)
class Row:
    """A row of a batch: what it was made of, and what stages numbered, chose and drew for it."""

    row: int
    sources: list[Source]
    marks: list[Mark]

    @property
    def ordinals(self) -> dict[str, int]:
        """The ordinals of the random stages, by stage: the last one of a name."""
        return {mark.stage: mark.ordinal for mark in self.marks if mark.ordinal is not None}

    @property
    def drawn(self) -> dict[str, dict[str, float]]:
        """The draws of the random stages, by stage: the last one of a name."""
        return {mark.stage: mark.drawn for mark in self.marks if mark.drawn is not None}


class Rows(list[Row]):
    """The rows of one batch, or the one that was asked for, and which batch it is.

    `row_count` is how many the batch has. `notes` are sentences about all of them. `error`: why the
    content of the batch cannot be made; None: it can, or nobody tried (show=True does).
    """

    def __init__(self, rows: Iterable[Row], said: dict[str, Any]) -> None:
        super().__init__(rows)
        self.stream: str = said["stream"]
        self.epoch: int = said["epoch"]
        self.step: int = said["step"]
        self.worker: int = said["worker"]
        self.replica: int = said["replica"]
        self.row_count: int = said["row_count"]
        self.notes: list[str] = said["notes"]
        self.error: str | None = said["error"]


def explain(
    file: PipelineFile | None = None,
    *,
    text: str | None = None,
    place: str | None = None,
    epoch: int | None = None,
    step: int | None = None,
    row: int | None = None,
    show: bool = False,
    **options: Any,
) -> Rows:
    """The rows of a batch, and for each the file, the bytes and the record that it came from.

        for row in tundish.explain("clicks.yaml", place=token, step=41207):
            print(row.row, row.sources[0].file, row.sources[0].offset)

    place: names the run, and the batch that a reader opened there gets next; epoch and step name
        another one of the run. Without a place: of a run from its start.
    row: this one alone.
    show: with the bytes of the records.
    Other options are those of `tundish explain`: stream, replica, replicas, worker, num_workers, seed,
    root, analysis, cache.

    Nothing is served: the order of the epoch is gone through up to the step, as when a job resumes.
    Raises tundish.PipelineError if there is no such batch, or the place is not one of this pipeline and
    these files, tundish.ArgumentError for a wrong option, tundish.SystemFault if a file is missing.
    """
    options = {"place": place, "epoch": epoch, "step": step, "row": row, **options}
    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        words = programs.pipeline(file, text, folder, {**options, "show": show, "json": True})
        said = json.loads(programs.run("explain", *words))
    return Rows(map(_row, said["rows"]), said)


def of_batch(
    reader: Reader, batch: Batch, row: int | None, file: PipelineFile | None, options: dict[str, Any]
) -> Rows:
    """reader.explain: the place says of which run the batch is."""
    if batch.reader is not reader:
        raise MisuseError("the batch is another reader's: ask that one, or batch.rows()")
    if batch.shard >= 0:
        raise ArgumentError(
            "the stream is an evaluation: which reader gets which shard is decided while it runs, so no"
            " epoch and step name a batch"
        )
    info = reader.info
    return explain(
        **{
            **(_paths(reader) if file is None else {"file": file}),
            "place": reader.place,
            "epoch": batch.epoch,
            "step": batch.step,
            "row": row,
            "stream": info.stream,
            "worker": info.first_replica // info.replica_count,
            "num_workers": info.total_replica_count // info.replica_count,
            "replica": info.replica,
            "replicas": info.replica_count,
            **options,
        }
    )


def _paths(reader: Reader) -> dict[str, Any]:
    """Where the server of the reader has its pipeline file, and the folders that it was told."""
    socket = reader.server
    words = [] if socket is None else ["--socket", socket]
    said = programs.run("status", "--json", "--interval", "1", *words, telling=(programs.SYSTEM, programs.SICK))
    server = json.loads(said)["server"]
    if server["file"] is None:
        raise ArgumentError("the server does not say where its pipeline file is: name it with file=")
    return {name: _name(server[name]) for name in ("file", "root", "analysis")}


_OF_SOURCE = ("stage", "line", "offset", "length", "record", "compression", "row", "note")
_NAMED = ("file", "path", "bytes", "outer", *_OF_SOURCE)


def _row(said: dict[str, Any]) -> Row:
    return Row(said["row"], list(map(_source, said["sources"])), [Mark(**m) for m in said["marks"]])


def _source(said: dict[str, Any]) -> Source:
    facts: dict[str, Any] = {name: said.get(name) for name in _OF_SOURCE}
    return Source(
        **facts,
        file=_name(said["file"]),
        path=_name(said["path"]),
        is_outer=said.get("outer", False),
        numbers={name: value for name, value in said.items() if name not in _NAMED},
        raw=None if "bytes" not in said else _bytes(said["bytes"]),
    )


def _bytes(said: str | dict[str, str]) -> bytes:
    """As the program prints bytes: text if they are UTF-8."""
    return said.encode() if isinstance(said, str) else base64.b64decode(said["base64"])


def _name(said: str | dict[str, str] | None) -> str | None:
    return None if said is None else os.fsdecode(_bytes(said))
