"""Datasets out of this process: pipeline files, peeks, servers."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from .dataset import Dataset
from .emit import Emission, document
from .graph import Unsupported
from .trace import UnsupportedError

__all__ = ["peek", "plan_of", "save", "text_of"]


def plan_of(ds: Dataset, stream: str = "train") -> tuple[str, dict[str, bytes], list[Unsupported]]:
    """The text of a pipeline file, the files to write beside it, and what it does not carry over."""
    return _plan({stream: ds})


def _plan(streams: dict[str, Dataset]) -> tuple[str, dict[str, bytes], list[Unsupported]]:
    emission = Emission()
    made: dict[str, Any] = {}
    for name, dataset in streams.items():
        made[name] = (emission.stages(dataset.node), {})
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
