"""Datasets out of this process: pipeline files, peeks, servers."""

from __future__ import annotations

import os
import tempfile
import warnings
import weakref
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..errors import ArgumentError
from ..ranks import Ranks
from .dataset import Dataset
from .emit import Emission, document
from .graph import Node, Unsupported
from .trace import UnsupportedError

if TYPE_CHECKING:
    from ..reader import Reader

__all__ = ["open_dataset", "peek", "plan_of", "save", "save_apart", "text_of"]


def plan_of(ds: Dataset, stream: str = "train") -> tuple[str, dict[str, bytes], list[Unsupported]]:
    """The text of a pipeline file, the files to write beside it, and what it does not carry over."""
    return _plan({stream: ds})


def _plan(
    streams: dict[str, Dataset], folder: str = ""
) -> tuple[str, dict[str, bytes], list[Unsupported]]:
    emission = Emission(folder)
    made: dict[str, Any] = {}
    for name, dataset in streams.items():
        emission.sections = {}
        # TensorFlow's rule of rebatching looks at the stages after `batch`, also at those that do nothing.
        emission.keeps_maps = _rebatch(dataset.node) == "tensorflow"
        made[name] = (emission.stages(dataset.node), emission.sections)
    unsupported = sorted(emission.unsupported, key=lambda each: each.origin)
    text = "" if unsupported else document(made, emission.seed, named=emission.named)
    return text, emission.beside.files, unsupported


def _rebatch(node: Node) -> Any:
    sections = node.facts.get("sections", {}) if node.stage == "sections" else {}
    own = sections.get("distribute", {}).get("rebatch")
    return own or (_rebatch(node.inputs[0]) if node.stage == "sections" else None)


def text_of(streams: dict[str, Dataset]) -> str:
    """The text of a pipeline file with these streams."""
    text, _, unsupported = _plan(streams)
    if unsupported:
        raise UnsupportedError(unsupported)
    return text


def save(path: Any, **streams: Dataset) -> None:
    """Write a pipeline file with these streams, and the files that it needs beside it.

        tundish.data.save("clicks.yaml", train=train, valid=valid)

    Relative paths of the program start at the pipeline file's folder then, or at --root.
    """
    _save(Path(os.fspath(path)), streams, "")


def _save(path: Path, streams: dict[str, Dataset], folder: str) -> None:
    text, files, unsupported = _plan(streams, folder)
    if unsupported:
        raise UnsupportedError(unsupported)
    for name, content in files.items():
        (path.parent / name).write_bytes(content)
    path.write_text(text, encoding="utf-8")


def save_apart(ds: Dataset, folder: str) -> Path:
    """In a folder of its own, for this process: the program's paths start at the current folder still."""
    path = Path(folder, "pipeline.yaml")
    _save(path, {"train": ds}, folder + os.sep)
    return path


def open_dataset(ds: Dataset, options: dict[str, Any]) -> Reader:
    """tundish.open of a dataset: a reader of a server of its own, which ends with it."""
    from ..serving import serve

    if options.pop("server", None) is not None:
        raise ArgumentError("a dataset has a server of its own: leave server= out")
    world = Ranks(is_shared=True).world
    if world > 1 and not _has_shards(ds.node):
        warnings.warn(
            f"each of the {world} ranks reads all rows of this Dataset: shard() it by the rank, or save() it with "
            "`distribute: {replicas: N}` for `tundish-launch FILE --replicas N`, whose server deals the rows",
            RuntimeWarning,
            stacklevel=3,
        )
    folder = tempfile.TemporaryDirectory(prefix="tundish-")
    try:
        server = serve(save_apart(ds, folder.name), root=os.getcwd())
        reader = server._open_alone("train", **options)
    except BaseException:
        folder.cleanup()
        raise
    weakref.finalize(reader, _end, server, folder)
    return reader


def _has_shards(node: Node) -> bool:
    ahead = [node]
    while ahead:
        each = ahead.pop()
        if each.stage == "shard":
            return True
        ahead.extend(each.inputs)
    return False


def _end(server: Any, folder: tempfile.TemporaryDirectory[str]) -> None:
    server.stop()
    folder.cleanup()


def peek(ds: Dataset, steps: int = 3, **options: Any) -> Any:
    """tundish.peek of a dataset."""
    from ..serving import peek as peek_file

    with tempfile.TemporaryDirectory(prefix="tundish-") as folder:
        return peek_file(save_apart(ds, folder), steps, **{"root": os.getcwd(), **options})
