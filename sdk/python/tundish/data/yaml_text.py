"""Pipeline files as text, as a person writes them."""

from __future__ import annotations

import base64
import json
import numbers
import os
import re
from collections.abc import Mapping
from typing import Any

__all__ = ["Variable", "block", "flow", "scalar"]

WIDTH = 100
_PLAIN = re.compile(r"[A-Za-z0-9_./$+\-][A-Za-z0-9_./$*?+\-]*(?: [A-Za-z0-9_./*+\-]+)*")
_NUMBER = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|0x[0-9A-Fa-f]+|0o[0-7]+")
# All characters may stand in a file as they are, though some only in quotes, but controls, the line breaks of
# YAML 1.1, byte order marks, and numbers that are not characters.
_UNSEEN = re.compile("[\x7f-\x9f\u2028\u2029\ufeff\ufffe\uffff]")
EXPANDED_BYTES = 1 << 20  # of a text with escapes a server takes no more
_WORDS = ("null", "Null", "NULL", "true", "True", "TRUE", "false", "False", "FALSE", "~", "")


class Variable(str):
    """$name, which a pipeline file has no quotes around: any other text is one, whatever it says."""


def scalar(value: Any) -> str:
    """A scalar; text that YAML would read as something else is quoted. Bytes that are not UTF-8 are base64."""
    if isinstance(value, Variable):
        return value
    if value is None:
        return "null"
    if isinstance(value, bool) or type(value).__name__ == "bool":  # numpy's
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    if isinstance(value, numbers.Real):
        return _number(float(value))
    if isinstance(value, bytes):
        return _of_bytes(value)
    text = os.fspath(value) if isinstance(value, os.PathLike) else str(value)
    if any("\ud800" <= letter <= "\udfff" for letter in text):  # a path, as Python has one
        return _of_bytes(text.encode(errors="surrogateescape"))
    if "${" in text:
        text = text.replace("${", "$${")
        if len(text) > EXPANDED_BYTES // 4:
            return _binary(text.replace("$${", "${").encode())
    is_plain = _PLAIN.fullmatch(text) and not _NUMBER.fullmatch(text) and text not in _WORDS
    if (
        is_plain
        and text.lower() not in (".inf", "-.inf", "+.inf", ".nan", "nan")
        and not text.startswith(("-", "$", "?", "---"))
    ):
        return text
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", json.dumps(text, ensure_ascii=False))


def _of_bytes(value: bytes) -> str:
    try:
        return scalar(value.decode())
    except UnicodeDecodeError:
        return _binary(value)


def _binary(value: bytes) -> str:
    return "!!binary " + base64.b64encode(value).decode()


def _number(value: float) -> str:
    if value != value:
        return ".nan"
    if value in (float("inf"), float("-inf")):
        return ".inf" if value > 0 else "-.inf"
    return repr(value)


def flow(value: Any) -> str:
    """On one line."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{scalar(key)}: {flow(item)}" for key, item in value.items()) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ", ".join(map(flow, value)) + "]"
    return scalar(value)


def block(value: Any, indent: int, used: int) -> str:
    """After a key: on its line if that holds it, else below it. used: columns of the line so far."""
    text = flow(value)
    if used + 1 + len(text) <= WIDTH or not isinstance(value, (Mapping, list, tuple)) or not value:
        return " " + text
    margin = "\n" + " " * indent
    if isinstance(value, Mapping):
        parts = [f"{margin}{scalar(key)}:{block(item, indent + 2, indent + len(scalar(key)) + 1)}"
                 for key, item in value.items()]  # fmt: skip
        return "".join(parts)
    if all(not isinstance(item, (Mapping, list, tuple)) for item in value):
        return " " + _wrapped(value, indent)
    return "".join(f"{margin}- {_item(item, indent + 2)}" for item in value)


def _item(value: Any, indent: int) -> str:
    """After a dash."""
    text = flow(value)
    if indent + len(text) <= WIDTH or not isinstance(value, Mapping) or not value:
        return text
    lines = []
    for number, (key, item) in enumerate(value.items()):
        margin = "" if number == 0 else "\n" + " " * indent
        lines.append(f"{margin}{scalar(key)}:{block(item, indent + 2, indent + len(scalar(key)) + 1)}")
    return "".join(lines)


def _wrapped(values: Any, indent: int) -> str:
    """A long list of scalars, filled into lines."""
    lines, line = [], " " * indent
    for value in values:
        word = flow(value) + ", "
        if len(line) + len(word) > WIDTH and line.strip():
            lines.append(line.rstrip())
            line = " " * indent
        line += word
    lines.append(line.rstrip().rstrip(","))
    return "[\n" + "\n".join(lines) + "\n" + " " * (indent - 2) + "]"
