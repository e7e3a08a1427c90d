"""Paths that begin in another way where the pipeline file will be served."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from ..data.lowering.schedule import Stage

# Parameters that are paths, and sources whose values may be.
_PARAMETERS = ("filenames", "file_pattern", "directory", "filename", "vocabulary")
_VALUES = ("from_tensors", "from_tensor_slices")


class Moving:
    """Changes them in the stages of a pipeline file, by pairs of an old and a new beginning. own: the files that
    lie beside it, which stay. notes: what a reader of the file must know."""

    def __init__(self, pairs: list[tuple[str, str]], own: Iterable[str]) -> None:
        self.notes: list[str] = []
        self._moved = dict.fromkeys(pairs, 0)
        self._own = set(own)

    def move(self, stages: list[Stage]) -> None:
        """In these stages, and in the datasets inside them."""
        for stage in stages:
            if isinstance(stage.params, dict):
                self._change(stage, stage.params)

    def end(self) -> list[str]:
        """All notes, also of beginnings that no path has."""
        unused = [f"--map-path {old}={new}: no path begins with {old}" for (old, new), n in self._moved.items() if not n]
        return self.notes + unused

    def _change(self, stage: Stage, params: dict[str, Any]) -> None:
        before = sum(self._moved.values())
        for name, value in params.items():
            if name in ("dataset", "choice_dataset"):
                self.move([each for each in value if isinstance(each, Stage)])
            elif name == "datasets":
                for part in value:
                    self.move([each for each in part if isinstance(each, Stage)])
            elif name in _PARAMETERS or stage.name in _VALUES:
                params[name] = self._path(value)
        if stage.name in _VALUES and sum(self._moved.values()) > before:
            where = f"{stage.origins[0]}: " if stage.origins else ""
            self.notes.append(f"{where}values of {stage.name} are taken for paths, and changed by --map-path")

    def _path(self, value: Any) -> Any:
        if isinstance(value, (list, tuple)):
            return [self._path(each) for each in value]
        if isinstance(value, Mapping):
            return {key: self._path(each) for key, each in value.items()}
        for old, new in self._moved:
            if isinstance(value, str) and value not in self._own and _begins(value, old):
                self._moved[old, new] += 1
                return type(value)(new + value[len(old) :])
        return value


def _begins(path: str, old: str) -> bool:
    return path == old or path.startswith(old if old.endswith(os.sep) else old + os.sep)
