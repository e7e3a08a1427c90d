"""The source that packages are made of."""

import os
import re
import shutil
import subprocess
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]


class Missing(Exception):
    """A tool that makes packages is not installed."""


def needs(*tools):
    missing = [tool for tool in tools if shutil.which(tool) is None]
    if missing:
        raise Missing(f"{', '.join(missing)}: not installed; scripts/package --deps installs them")


def version():
    return re.search(r"version: '([^']+)'", (REPOSITORY / "meson.build").read_text())[1]


def copy_to(tree):
    """Copy the files that are in the repository or may be; without one, all that were not built."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY, capture_output=True, text=True, check=False,
    )  # fmt: skip
    if listed.returncode:
        left_out = shutil.ignore_patterns("build*", "dist", "__pycache__")
        shutil.copytree(REPOSITORY, tree, symlinks=True, ignore=left_out)
        return
    for name in filter(None, listed.stdout.split("\0")):
        if (REPOSITORY / name).exists():
            (tree / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(REPOSITORY / name, tree / name)


def date():
    """The source's date: packages of the same source are equal."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "log", "-1", "--format=%ct"]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return int(said.stdout or (REPOSITORY / "meson.build").stat().st_mtime)
