"""The interpreter that records: $PYTHON, or one in the build folder with the TensorFlow of requirements.txt."""

import os
import subprocess
import sys
import venv
from pathlib import Path

REQUIREMENTS = Path(__file__).resolve().parents[1] / "requirements.txt"


class NoEnvironment(Exception):
    """TensorFlow could not be installed."""


def interpreter(folder):
    """A Python that imports TensorFlow. It is made in `folder`, unless one of these versions is there."""
    if os.environ.get("PYTHON"):
        return Path(os.environ["PYTHON"])
    python, made_of = folder / "bin" / "python", folder / "made-of.txt"
    wanted = f"{sys.version}\n{REQUIREMENTS.read_text()}"
    if not made_of.exists() or made_of.read_text() != wanted:
        print(f"record: installing TensorFlow into {folder}; this takes some minutes, once", flush=True)
        venv.create(folder, clear=True, symlinks=True, with_pip=True)
        command = [python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*command, "--requirement", REQUIREMENTS], stderr=subprocess.PIPE, text=True)
        if done.returncode != 0:
            raise NoEnvironment(f"pip could not install {REQUIREMENTS.name}: {done.stderr.strip()}")
        made_of.write_text(wanted)
    return python
