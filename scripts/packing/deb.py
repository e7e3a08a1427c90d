"""Debian packages, of what debian/ says, for the release of Debian that makes them."""

import email.utils
import os
import re
import shutil
import subprocess

from . import building, source

WORK = source.REPOSITORY / "build-deb"
DIST = source.REPOSITORY / "dist"
DEBUG = DIST / "debug"

_TOOLS = ("dpkg-buildpackage", "dh", "dh_python3", "lintian")
_CHANGELOG = """\
tundish ({version}-0tundish1) unstable; urgency=medium

  * Made from the source of Tundish {version}.

 -- {maintainer}  {date}
"""


def make():
    """dist/: packages for Debian (dist/debug: what debuggers need), which need `scripts/package --deps` once; lintian finds no fault"""
    needs_tools()
    packages = build(WORK)
    lint(packages)
    DIST.mkdir(exist_ok=True)
    for old in (*DIST.glob("*.deb"), *DEBUG.glob("*.deb")):
        old.unlink()
    for package in packages:
        # Apart: `apt install ./dist/*.deb` is for what runs.
        folder = DEBUG if "-dbgsym_" in package.name else DIST
        folder.mkdir(exist_ok=True)
        shutil.copy(package, folder)
        print(f"{folder.relative_to(source.REPOSITORY)}/{package.name}: {package.stat().st_size / 1e6:.2f} MB")


def needs_tools():
    source.needs(*_TOOLS)


def build(folder, **environment):
    """Build in a fresh copy of the tree in this folder, and return the packages."""
    shutil.rmtree(folder, ignore_errors=True)
    tree = folder / "tundish"
    source.copy_to(tree)
    maintainer = re.search(r"Maintainer: (.+)", (tree / "debian" / "control").read_text())[1]
    date = email.utils.formatdate(source.date(), localtime=False)
    text = _CHANGELOG.format(version=source.version(), maintainer=maintainer, date=date)
    (tree / "debian" / "changelog").write_text(text)
    command = ["dpkg-buildpackage", "--build=binary", "--no-sign"]
    building.run(command, folder / "log", cwd=tree, env=environment | _environment())
    return sorted(folder.glob("*.deb"))


def lint(packages):
    subprocess.run(["lintian", "--fail-on", "error,warning", *packages], check=True)


def _environment():
    """Without words of the caller's about compilers and Python. Meson finds ccache by itself."""
    kept = ("PATH", "HOME", "LANG", "TMPDIR", "CCACHE_DIR")
    return {name: value for name, value in os.environ.items() if name in kept}
