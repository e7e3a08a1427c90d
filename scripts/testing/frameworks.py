"""The interpreter of tests/python: PYTHON, or one in the build folder that has the frameworks."""

import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

from . import stand_ins

# Without a network this one tells so at once. The rest may take as long as pip is configured to wait.
_SMALL = ("typing_extensions", ("--retries", "0", "--timeout", "20"))
_INSTALL_S = 1200


def interpreter(folder, requirements):
    """A Python that has what the file of requirements names, and ""; or the machine's own, and why.

    It is made in the folder, unless it is there already."""
    if os.environ.get("PYTHON"):
        return Path(os.environ["PYTHON"]), ""
    python = folder / "bin" / "python"
    made_of = folder / "made-of.txt"
    wanted = f"{sys.version}\n{requirements.read_text()}"
    if made_of.exists() and made_of.read_text() == wanted:
        return python, ""
    shutil.rmtree(folder, ignore_errors=True)
    try:
        _make(folder, requirements)
    except (OSError, subprocess.SubprocessError) as error:
        shutil.rmtree(folder, ignore_errors=True)
        return machines_own(), _reason(error)
    made_of.write_text(wanted)
    return python, ""


def _make(folder, requirements):
    print(f"installing {requirements.name} into {folder}; this takes some minutes, once", flush=True)
    venv.create(folder, symlinks=True, with_pip=True)
    name, options = _SMALL
    pinned = next(line for line in requirements.read_text().splitlines() if line.startswith(name))
    _pip(folder, *options, pinned)
    _pip(folder, "--requirement", requirements)
    stand_ins.install(next(folder.glob("lib/python*/site-packages")))


def _pip(folder, *arguments):
    """Exactly what is named: the file names everything. Modules are compiled when they are imported."""
    command = [folder / "bin" / "python", "-m", "pip", "--quiet", "--disable-pip-version-check"]
    command += ["install", "--no-deps", "--no-compile", "--only-binary", ":all:", *arguments]
    subprocess.run(command, check=True, stderr=subprocess.PIPE, text=True, timeout=_INSTALL_S)


def machines_own():
    """The system's Python, which may have NumPy but has no framework, or the one that runs this."""
    for python in ("/usr/bin/python3", sys.executable):
        command = [python, "-c", "import numpy"]
        if Path(python).exists() and subprocess.call(command, stderr=subprocess.DEVNULL) == 0:
            return Path(python)
    return Path(sys.executable)


def _reason(error):
    said = (getattr(error, "stderr", None) or str(error)).strip().splitlines()
    return next((line for line in reversed(said) if "rror" in line), said[-1] if said else str(error))
