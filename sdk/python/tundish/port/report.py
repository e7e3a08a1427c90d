"""The list of what is not carried over."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import Any


def relative(file: str) -> str:
    """A file's name as short as it may be written here."""
    path = os.path.relpath(file) if os.path.isabs(file) else file
    return file if path.startswith(os.pardir) else path


def lines(problems: Iterable[Any]) -> list[str]:
    """A line for each construct: file, line, name, why, remedy; each once, in the order of the program."""
    found = {
        (tuple(each.origin), each.name, each.why): each.remedy
        for each in sorted(problems, key=lambda each: tuple(each.origin))
    }
    return [
        f"{relative(file)}:{line}  {name}: {why}" + (f"; {remedy}" if remedy else "")
        for ((file, line), name, why), remedy in found.items()
    ]
