"""Columns folded into C1..C26, and entries that are alike into one."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["fold_columns", "fold_entries"]

LEAST = 3  # so many columns make a range
_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


def fold_columns(names: list[str]) -> Any:
    """The shortest way to write a list of columns."""
    folded = [
        piece[0] if len(piece) < LEAST else f"{piece[0]}..{piece[-1]}"
        for piece in _runs(names)
        for _ in [0]
    ]
    parts: list[str] = []
    for piece, text in zip(_runs(names), folded):
        parts += piece if len(piece) < LEAST else [text]
    return parts[0] if len(parts) == 1 else parts


def _runs(names: list[str]) -> list[list[str]]:
    """Cut into runs of names that count up."""
    runs: list[list[str]] = []
    for name in names:
        if runs and _follows(runs[-1][-1], name):
            runs[-1].append(name)
        else:
            runs.append([name])
    return runs


def _follows(before: str, name: str) -> bool:
    left, right = _NUMBERED.fullmatch(before), _NUMBERED.fullmatch(name)
    if left is None or right is None or left[1] != right[1] or not left[1]:
        return False
    return int(right[2]) == int(left[2]) + 1 and right[2] == str(int(left[2]) + 1).zfill(len(left[2]))


def fold_entries(entries: dict[str, Any], names: list[str], with_column: Any = None) -> dict[str, Any]:
    """Entries of columns, with one entry under a glob for those that are alike. A glob is taken only if it
    matches just these columns among `names`. with_column(name, entry) gives the entry with {column}."""
    groups: dict[str, list[str]] = {}
    for name, entry in entries.items():
        match = _NUMBERED.fullmatch(name)
        if match and match[1]:
            groups.setdefault(match[1], []).append(name)
    folded: dict[str, Any] = {}
    done: set[str] = set()
    for name, entry in entries.items():
        if name in done:
            continue
        match = _NUMBERED.fullmatch(name)
        group = groups.get(match[1], []) if match else []
        glob = match[1] + "*" if match else ""
        alike = _alike(group, entries, with_column)
        matched = [each for each in names if match and each.startswith(match[1])]
        if (
            alike is not None
            and len(group) >= LEAST
            and sorted(matched) == sorted(group)
            and _is_literal(glob)
        ):
            folded[glob] = alike
            done.update(group)
        else:
            folded[name] = entry
    return folded


def _is_literal(glob: str) -> bool:
    return not re.search(r"[*?\[\]{}]", glob[:-1])


def _alike(group: list[str], entries: dict[str, Any], with_column: Any) -> Any:
    if not group:
        return None
    texts = [entries[name] for name in group]
    if all(text == texts[0] for text in texts):
        return texts[0]
    if with_column is None:
        return None
    texts = [with_column(name, entries[name]) for name in group]
    return texts[0] if all(text == texts[0] for text in texts) else None
