"""Datasets out of this process: pipeline files, peeks, servers."""

from __future__ import annotations

import os
import tempfile
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from .dataset import Dataset
from .emit import Emission, document
from .graph import Unsupported
from .trace import UnsupportedError

if TYPE_CHECKING:
    from ..reader import Reader

__all__ = ["open_dataset", "peek", "plan_of", "save", "text_of"]


def plan_of(ds: Dataset, stream: str = "train") -> tuple[str, dict[str, bytes], list[Unsupported]]:
    """The text of a pipeline file, the files to write beside it, and what it does not carry over."""
    return _plan({stream: ds})


def _plan(streams: dict[str, Dataset]) -> tuple[str, dict[str, bytes], list[Unsupported]]:
    emission = Emission()
    made: dict[str, Any] = {}
    for name, dataset in streams.items():
        emission.sections = {}
        made[name] = (emission.stages(dataset.node), emission.sections)
    unsupported = sorted(emission.unsupported, key=lambda each: each.origin)
    text = "" if unsupported else document(made, emission.seed)
    return text, emission.files, unsupported


def text_of(streams: dict[str, Dataset]) -> str:
    """The text of a pipeline file with these streams."""
    text, _, unsupported = _plan(streams)
    if unsupported:
        raise UnsupportedError(unsupported)
    return text


def save(path: Any, **streams: Dataset) -> None:
    """Write a pipeline file with these streams, and the files that it needs beside it.

    tundish.data.save("clicks.yaml", train=train, valid=valid)
    """
    text, files, unsupported = _plan(streams)
    if unsupported:
        raise UnsupportedError(unsupported)
    _write(Path(os.fspath(path)), text, files)


def open_dataset(ds: Dataset, options: dict[str, Any]) -> Reader:
    """tundish.open of a dataset: a reader of a server of its own, which ends with it."""
    from ..serving import serve

    if options.pop("server", None) is not None:
        raise ArgumentError("a dataset has a server of its own: leave server= out")
    folder = tempfile.TemporaryDirectory(prefix="tundish-")
    path = Path(folder.name, "pipeline.yaml")
    try:
        save(path, train=ds)
        server = serve(path, root=os.getcwd())
        reader = server.open("train", **options)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(reader, _end, server, folder)
    return reader


def _end(server: Any, folder: tempfile.TemporaryDirectory[str]) -> None:
    server.stop()
    folder.cleanup()


def _write(path: Path, text: str, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (path.parent / name).write_bytes(content)
    path.write_text(text, encoding="utf-8")


def peek(ds: Dataset, steps: int = 3, **options: Any) -> Any:
    """tundish.peek of a dataset."""
    from ..serving import peek as peek_file

    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        path = Path(folder, "pipeline.yaml")
        save(path, train=ds)
        return peek_file(path, steps, **{"root": os.getcwd(), **options})
