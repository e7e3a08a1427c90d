"""Files beside a pipeline file: arrays and vocabularies that are too long to be written in it."""

from __future__ import annotations

import base64
import re
from typing import Any

from .dtypes import as_text
from .folding import escaped

__all__ = ["Beside"]

ARRAY_VALUES = 64  # more go to a file
TERMS = 50  # likewise
PICKLED_BYTES = 1 << 16  # likewise
LOOKUPS = ("string_lookup", "integer_lookup", "text_vectorization")


class Beside:
    """`files`: names and contents. folder: stands before the names in the pipeline file."""

    def __init__(self, folder: str = "") -> None:
        self.files: dict[str, bytes] = {}
        self.folder = folder

    def _put(self, name: str, content: bytes) -> str:
        stem, _, suffix = re.sub(r"[^\w.-]", "_", name).partition(".")
        free, number = f"{stem}.{suffix}", 1
        while self.files.get(free, content) != content:
            number += 1
            free = f"{stem}_{number}.{suffix}"
        self.files[free] = content
        return self.folder + free

    def array(self, column: str, value: Any) -> str | None:
        """The file of an array, or None if it is short, or is not numpy's, or holds texts."""
        descr = getattr(getattr(value, "dtype", None), "str", "")
        if not re.fullmatch(r"[<|][biuf]\d", descr) or value.size <= ARRAY_VALUES:
            return None
        header = (
            f"{{'descr': {descr!r}, 'fortran_order': False, 'shape': {tuple(value.shape)!r}, }}".encode()
        )
        header += b" " * (-(len(header) + 11) % 64) + b"\n"
        content = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + value.tobytes()
        return self._put(f"{column}.npy", content)

    def pickle(self, content: bytes) -> dict[str, str]:
        """An object's bytes for tundish.elements. A place holds the parameters, and a file's folder may be another
        one when it is resumed, so that only large ones are in files."""
        if len(content) <= PICKLED_BYTES:
            return {"pickled": base64.b64encode(content).decode()}
        return {"file": self._put("python.pickle", content)}

    def vocabulary(self, stage: str, params: Any) -> None:
        """Put a long list of terms into a file, if a file means the same."""
        terms = params.get("vocabulary") if stage in LOOKUPS else None
        if (
            not isinstance(terms, list)
            or len(terms) <= TERMS
            or "idf_weights" in params
            or not _fits(stage, params, len(terms))
        ):
            return
        texts = [as_text(term) if isinstance(term, (str, bytes)) else str(term) for term in terms]
        if any(isinstance(text, bytes) for text in texts):
            return
        special = {"", str(params.get("oov_token", "-1" if stage == "integer_lookup" else "[UNK]"))}
        special.add(str(params.get("mask_token", "")))
        is_same = len(set(texts)) == len(texts) and not special & set(texts)
        if is_same and not any("\n" in text or "\r" in text or "\0" in text for text in texts):
            columns = params.get("columns", stage)
            name = columns if isinstance(columns, str) else columns[0]
            content = "".join(text + "\n" for text in texts).encode()
            params["vocabulary"] = escaped(self._put(f"{name}.vocabulary.txt", content))


def _fits(stage: str, params: Any, count: int) -> bool:
    """Whether `count` terms and the special ones are within max_tokens: the others of a file are left out."""
    most = params.get("max_tokens")
    is_masked = stage == "text_vectorization" or params.get("mask_token") is not None
    masks = int(is_masked and params.get("output_mode", "int") == "int")
    return most is None or isinstance(most, int) and count + params.get("num_oov_indices", 1) + masks <= most
