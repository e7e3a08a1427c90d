"""The user's modules as an interpreter of a `python` stage imports them: code and digest are of the same bytes."""

from __future__ import annotations

import contextlib
import hashlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import site
import sys
import sysconfig
from collections.abc import Mapping
from types import CodeType

_digests: dict[str, int] = {}  # by the file, as it was when its code was loaded


def _digest(source: bytes) -> int:
    return int.from_bytes(hashlib.blake2b(source, digest_size=8).digest(), "little")


class _Loader(importlib.machinery.SourceFileLoader):
    def get_code(self, fullname: str) -> CodeType | None:
        with contextlib.suppress(OSError):
            _digests[self.path] = _digest(self.get_data(self.path))
        return super().get_code(fullname)

    def path_stats(self, path: str) -> Mapping[str, float]:
        """As Python's own, which an error tells to compile the source. Python compares its size and its second
        alone, so bytecode that was written within that second may be of the text before."""
        stats = super().path_stats(path)
        with contextlib.suppress(FileNotFoundError, NotImplementedError):
            if os.stat(importlib.util.cache_from_source(path)).st_mtime < int(stats["mtime"]) + 1:
                raise OSError(f"{path} was written in the second of its bytecode")
        return stats


def install() -> None:
    """Load with _Loader each module that is imported from now on, but not those of Python and of packages."""
    packages = [sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    packages += [*site.getsitepackages(), site.getusersitepackages()]
    found = importlib.machinery.FileFinder.path_hook(
        (importlib.machinery.ExtensionFileLoader, importlib.machinery.EXTENSION_SUFFIXES),
        (_Loader, importlib.machinery.SOURCE_SUFFIXES),
        (importlib.machinery.SourcelessFileLoader, importlib.machinery.BYTECODE_SUFFIXES),
    )

    def hook(path: str) -> importlib.abc.PathEntryFinder:
        if any(os.path.join(path, "").startswith(os.path.join(folder, "")) for folder in packages):
            raise ImportError(f"{path} has packages")
        return found(path)

    sys.path_hooks.insert(0, hook)
    sys.path_importer_cache.clear()


def digest(name: str, source_file: str | None) -> int:
    """A digest of the source of the name's module, by which nodes see that they have the same. source_file: the
    file whose functions the module calls."""
    file = source_file or importlib.import_module(name.partition(":")[0]).__file__ or ""
    if file in _digests:
        return _digests[file]
    try:
        with open(file, "rb") as opened:
            return _digest(opened.read())
    except OSError:  # it is in no file, as the interpreter's own
        return _digest(name.encode())
