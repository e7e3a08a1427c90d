"""The server's own refusals of a pipeline file, by the lines of the program."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from .. import serving
from ..errors import Error, PipelineError
from .calls import Problem

_STAGE = re.compile(r" {6}- \"?(\w+)")
_ORIGIN = re.compile(r"  # ([^#]+?):(\d+)(?:, [^#]*)?$")


def problems(file: Path, streams: Iterable[str]) -> list[Problem]:
    """A problem for each mistake of the file. Files that are missing are none: the program has not read
    them yet."""
    lines = file.read_text(encoding="utf-8").splitlines()
    told = re.compile(rf"{re.escape(str(file))}:(\d+):\d+: (.*)")
    found: dict[tuple[int, str], None] = {}
    for stream in streams:
        for text in _said(file, stream).splitlines():
            if match := told.fullmatch(text):
                found[int(match[1]), match[2]] = None
    return [_problem(lines, number, why) for number, why in found]


def _said(file: Path, stream: str) -> str:
    try:
        serving.plan(file, stream=stream, root=os.getcwd())
    except PipelineError as error:
        return str(error)
    except Error:
        pass
    return ""


def _problem(lines: list[str], number: int, why: str) -> Problem:
    stage = list(_stage(lines, number - 1))
    name = _STAGE.match(stage[0])
    origins = [match for line in stage if (match := _ORIGIN.search(line))]
    origin = (origins[0][1], int(origins[0][2])) if origins else ("<program>", 0)
    called = name[1] if name else "stream"
    return Problem(origin, f"stage {called}", why, f"write it in another way: see `tundish help {called}`")


def _stage(lines: list[str], index: int) -> Iterator[str]:
    """The lines of the stage that has this line."""
    first = next((i for i in range(index, -1, -1) if _STAGE.match(lines[i])), index)
    yield lines[first]
    for line in lines[first + 1 :]:
        if not line.startswith(" " * 7):
            return
        yield line
