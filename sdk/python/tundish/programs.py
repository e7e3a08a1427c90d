"""The programs of Tundish: where they are, and what their failures mean."""

from __future__ import annotations

import functools
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from . import errors

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    PipelineFile = str | os.PathLike[str]

__all__ = ["environment", "failed", "find", "pipeline", "run", "show"]

# Exit statuses of the program.
REFUSED, MISUSED, SYSTEM, SICK = 1, 2, 3, 4

# By which a process is a rank of an MPI job. A server of its own must not take its place there.
_RANK = ("OMPI_", "PMIX_", "PMI_", "ORTE_", "PRTE_")

_ERROR = re.compile(r"^\S+Z error \S+: (.*)$", re.MULTILINE)
_LOGGED = re.compile(r"^\d{4}-\d\d-\d\dT\S+Z ")


def find(name: str = "tundish") -> str:
    """The program that belongs to this package, by its path.

    It is the one of $TUNDISH_BUILD, of this installation, or of $PATH. Raises tundish.SystemFault if
    there is none, and tundish.LayoutError if its version is another.
    """
    for folder in _folders():
        path = os.path.join(folder, name)
        if os.path.isfile(path) and os.access(path, os.X_OK):
            break
    else:
        raise errors.SystemFault(
            f"there is no program `{name}` beside this package or in PATH: "
            "pip install 'tundish[server]', or install Tundish and add its folder to PATH"
        )
    _check_version(path, os.stat(path).st_mtime_ns)
    return path


def _folders() -> Iterator[str]:
    if build := os.environ.get("TUNDISH_BUILD"):
        yield os.path.join(build, "server")
        return
    yield sysconfig.get_path("scripts")
    yield os.path.dirname(sys.executable)
    yield sysconfig.get_path("scripts", "posix_user")
    yield str(Path(__file__).parents[1] / "bin")  # pip install --target
    yield from os.get_exec_path()


@functools.cache
def _check_version(path: str, changed_ns: int) -> None:
    """Server and package speak of the same shared memory only if they are of one release."""
    from . import __version__

    done = subprocess.run([path, "--version"], capture_output=True, text=True, check=False)
    version = done.stdout.strip().removeprefix("tundish ")
    if done.returncode != 0 or version != __version__:
        raise errors.LayoutError(
            f"{path} is Tundish {version or '(it does not say)'}, and this package is {__version__}: "
            "install both of one version"
        )


def _flags(options: dict[str, Any]) -> list[str]:
    """Options of a command: cache="x" is --cache x, analyze=True is --analyze; None and False are left
    out."""
    words: list[str] = []
    for name, value in options.items():
        if value is None or value is False:
            continue
        words.append("--" + name.replace("_", "-"))
        if value is not True:
            words.append(os.fspath(value) if isinstance(value, os.PathLike) else str(value))
    return words


def environment() -> dict[str, str]:
    """For a server that is not part of the MPI job of this process. Functions of a pipeline run in this
    interpreter, and find what this process finds."""
    own = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(_RANK) and name != "SLURM_NTASKS"
    }
    own.setdefault("TUNDISH_PYTHON", sys.executable)
    own.setdefault("TUNDISH_PYTHONPATH", os.pathsep.join(os.path.abspath(folder) for folder in sys.path))
    return own


def pipeline(
    file: PipelineFile | None, text: str | None, folder: str, options: dict[str, Any]
) -> list[str]:
    """A command's words for a pipeline file, or for the text of one, which is put into the folder, and
    for its options. Relative paths in a text begin at the current folder."""
    if (file is None) == (text is None):
        raise errors.ArgumentError("name a pipeline file, or give text= the text of one")
    if file is not None:
        return [*_flags(options), "--", os.fspath(file)]
    path = Path(folder, "pipeline.yaml")
    path.write_text(str(text), encoding="utf-8")
    return [*_flags({"root": os.getcwd(), **options}), "--", str(path)]


def show(environment: dict[str, str]) -> list[int]:
    """Let a program show what functions print, and its warnings, where Python's errors are seen. Returns the
    descriptor that it is to inherit for that, if there is one, which is the caller's to close."""
    if sys.__stderr__ is None:  # its descriptor may be any file's by now
        return []
    try:
        shown = os.dup(sys.__stderr__.fileno())
    except (OSError, ValueError):  # it was closed since
        return []
    environment["TUNDISH_TELL_FD"] = str(shown)
    return [shown]


def run(command: str, *words: str, telling: tuple[int, ...] = (REFUSED,)) -> bytes:
    """The output of a command. With a status that is `telling` it may say what is wrong; an error that is not in it
    is raised."""
    own = environment()
    passed = show(own)
    try:
        done = subprocess.run(
            [find(), command, *words],
            env=own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            pass_fds=passed,
            check=False,
        )
    finally:
        for descriptor in passed:
            os.close(descriptor)
    is_told = done.returncode in telling and done.stdout
    if done.returncode != 0 and not is_told:
        raise failed(done.returncode, done.stderr.decode("utf-8", "replace"))
    return done.stdout


def failed(status: int, said: str) -> errors.Error:
    """The exception for a program's exit status and for the text on its standard error."""
    text = "\n".join(_ERROR.findall(said))
    if not text:
        text = "\n".join(line for line in said.splitlines() if not _LOGGED.match(line)) or said
    if status == REFUSED:
        return errors.PipelineError(text)
    if status == MISUSED:
        return errors.ArgumentError(text)
    if status < 0:
        return errors.SystemFault(f"the program was ended by signal {-status}: {text}")
    return errors.SystemFault(text)
