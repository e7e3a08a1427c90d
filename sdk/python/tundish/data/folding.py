"""Columns folded into C1..C26, and entries that are alike into one."""

from __future__ import annotations

import re
from typing import Any

__all__ = ["escaped", "fold_columns", "fold_entries", "for_column", "reads_as_several", "with_column"]

LEAST = 3  # columns that make a range
DIGITS = 9  # a range has no more
_NUMBERED = re.compile(r"(.*?)([0-9]+)", re.DOTALL)


def escaped(text: Any) -> Any:
    """A text in which a server would replace {column}."""
    if isinstance(text, bytes):
        return text.replace(b"{column}", b"{{column}")
    return text.replace("{column}", "{{column}") if isinstance(text, str) else text


def for_column(text: str, column: str) -> str:
    """The server's value of a text for a column."""
    return re.sub(r"\{?\{column\}", lambda match: match[0][1:] if match[0][1] == "{" else column, text)


def with_column(text: str, column: str) -> str:
    """The text with {column} wherever it has the column's name, if a server makes the same of that."""
    found = re.sub(rf"(?<![\w$`'{{\\]){re.escape(column)}(?![\w`'(])", "{column}", text)
    return found if for_column(found, column) == for_column(text, column) else text


def fold_columns(names: list[str]) -> Any:
    """The shortest way to write a list of columns."""
    parts: list[str] = []
    for piece in _runs(names):
        parts += piece if len(piece) < LEAST else [f"{piece[0]}..{piece[-1]}"]
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
    if left is None or right is None or left[1] != right[1] or not left[1] or len(right[2]) > DIGITS:
        return False
    return int(right[2]) == int(left[2]) + 1 and right[2] == str(int(left[2]) + 1).zfill(len(left[2]))


def fold_entries(
    entries: dict[str, Any], known: list[str] | None, is_map: bool = False
) -> dict[str, Any]:
    """Entries of columns, with one entry for those that are alike: under a glob, if it matches just these of
    the columns that there are, `known`, and in a map else under a range, which means the same wherever it
    stands. There an entry may have {column}."""
    groups: dict[str, list[str]] = {}
    for name in entries:
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
        alike = _alike(group, entries, is_map)
        pattern = _pattern(match[1], group, list(entries), known, is_map) if match and alike is not None else None
        if pattern is None:
            folded[name] = entry
        else:
            folded[pattern] = alike
            done.update(group)
    return folded


def _pattern(
    prefix: str, group: list[str], names: list[str], known: list[str] | None, has_ranges: bool
) -> str | None:
    """A list that means just these columns."""
    if len(group) < LEAST or reads_as_several(prefix) or ".." in prefix:
        return None
    if known is not None and prefix + "*" not in known:
        matched = {each for each in (*known, *names) if each.startswith(prefix)}
        if matched == set(group) <= set(known):
            return prefix + "*"
    whole = fold_columns(group)
    return whole if has_ranges and isinstance(whole, str) and whole not in (known or []) else None


def reads_as_several(name: str) -> bool:
    """Whether a server would take the name of a new column for a pattern or a range, or put a column's into it."""
    return bool(re.search(r"[*?[]|[0-9]\.\.|\{column\}", name))


def _alike(group: list[str], entries: dict[str, Any], has_column: bool) -> Any:
    if not group:
        return None
    texts = [entries[name] for name in group]
    if has_column and any(text != texts[0] for text in texts):
        texts = [with_column(entries[name], name) for name in group]
    return texts[0] if all(text == texts[0] for text in texts) else None
