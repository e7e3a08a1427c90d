"""Debian packages, of what debian/ says, for the release of Debian that makes them."""

import email.utils
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
WORK = REPOSITORY / "build-deb"
DIST = REPOSITORY / "dist"

_TOOLS = ("dpkg-buildpackage", "dh", "dh_python3", "lintian")
_CHANGELOG = """\
tundish ({version}-0tundish1) unstable; urgency=medium

  * Made from the source of Tundish {version}.

 -- {maintainer}  {date}
"""


class Missing(Exception):
    """What makes packages is not installed."""


def make():
    """dist/: packages for Debian, which need `scripts/package --deps` once; lintian finds no fault"""
    needs_tools()
    packages = build(WORK)
    lint(packages)
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob("*.deb"):
        old.unlink()
    for package in packages:
        shutil.copy(package, DIST)
        print(f"dist/{package.name}: {package.stat().st_size / 1e6:.2f} MB")


def needs_tools():
    missing = [tool for tool in _TOOLS if shutil.which(tool) is None]
    if missing:
        raise Missing(f"{', '.join(missing)}: not installed; scripts/package --deps installs them")


def build(folder, **environment):
    """Build in a fresh copy of the tree in this folder, and return the packages."""
    shutil.rmtree(folder, ignore_errors=True)
    tree = folder / "tundish"
    _copy_tree(tree)
    version = re.search(r"version: '([^']+)'", (tree / "meson.build").read_text())[1]
    maintainer = re.search(r"Maintainer: (.+)", (tree / "debian" / "control").read_text())[1]
    date = email.utils.formatdate(_date(), localtime=False)
    text = _CHANGELOG.format(version=version, maintainer=maintainer, date=date)
    (tree / "debian" / "changelog").write_text(text)
    command = ["dpkg-buildpackage", "--build=binary", "--no-sign"]
    with open(folder / "log", "w", encoding="utf-8") as log:
        environment |= _environment()
        if subprocess.call(command, cwd=tree, stdout=log, stderr=log, env=environment):
            sys.stderr.write("".join((folder / "log").read_text().splitlines(True)[-60:]))
            raise subprocess.CalledProcessError(1, [*command, f"(all of its words: {folder / 'log'})"])
    return sorted(folder.glob("*.deb"))


def lint(packages):
    subprocess.run(["lintian", "--fail-on", "error,warning", *packages], check=True)


def _copy_tree(tree):
    """What is in the repository or may be; all but what was built, where there is none."""
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


def _date():
    """Of the source: packages of the same source are equal."""
    if os.environ.get("SOURCE_DATE_EPOCH"):
        return int(os.environ["SOURCE_DATE_EPOCH"])
    command = ["git", "log", "-1", "--format=%ct"]
    said = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    return int(said.stdout or (REPOSITORY / "meson.build").stat().st_mtime)


def _environment():
    """Without words of the caller's about compilers and Python."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR")
    return {name: value for name, value in os.environ.items() if name in kept}
