"""Wheels: `tundish` for programs that train, and `tundish-server` with what serves them.

They are apart since a machine that trains may read from a server of another package, and so that the
programs, which do not depend on Python's version, are not installed for their own sake. The transform
library is part of `tundish`: with ICU's data left out it takes a few megabytes with all that it needs.
Open MPI is not part of either, since it must be the cluster's: for several nodes install Tundish from
its source, beside Open MPI.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from . import building, libraries

REPOSITORY = Path(__file__).resolve().parents[2]
HERE = Path(__file__).parent
BUILD = REPOSITORY / "build-wheel"  # as deep as build/, so that ccache knows its files
WORK = BUILD / "packing"
DIST = REPOSITORY / "dist"
SETUP = ("-Dmpi=disabled", "-Dchartjs=Chart.min.js")
CHART = Path("/usr/share/javascript/chart.js/Chart.min.js")


def make():
    """dist/: wheels of tundish and tundish-server, which need no compiler and no library"""
    python, environment = _tools(), _environment()
    raw, tree = _fresh("raw"), _fresh("tundish")
    _build(python, environment, raw)
    _run(python, "-m", "wheel", "unpack", "--dest", tree, *raw.glob("*.whl"))
    package = next(tree.iterdir())
    server = _server(environment, package)
    for folder in (package, server):
        _finish(python, environment, folder)
    _add_numpy(python)
    for path in sorted(DIST.iterdir()):
        print(f"{path.relative_to(REPOSITORY)}: {path.stat().st_size / 1e6:.1f} MB")
    _try()


def _tools():
    """The interpreter of a virtual environment with what makes wheels."""
    folder, requirements = WORK / "tools", HERE / "requirements.txt"
    made_of = folder / "made-of.txt"
    python = folder / "bin" / "python"
    wanted = f"{sys.version}\n{requirements.read_text()}"
    if not made_of.exists() or made_of.read_text() != wanted:
        shutil.rmtree(folder, ignore_errors=True)
        venv.create(folder, symlinks=True, with_pip=True)
        _run(python, "-m", "pip", "install", "--quiet", "--no-deps", "--requirement", requirements)
        made_of.write_text(wanted)
    return python


def _environment():
    """In which the libraries that are bundled are the small ones."""
    small = _fresh("libraries")
    libraries.without_icu_data(small)
    libraries.without_xml(small)
    return {
        **{name: value for name, value in os.environ.items() if name != "PYTHONPATH"},
        "PATH": f"{WORK / 'tools' / 'bin'}:{os.environ['PATH']}",
        "PKG_CONFIG_PATH": str(small),
        "AUDITWHEEL_LD_LIBRARY_PATH": str(small),
        "LD_LIBRARY_PATH": str(small),
    }


def _build(python, environment, raw):
    """The wheel of the binding; the programs lie in the build folder then."""
    settings = [f"setup-args={option}" for option in SETUP]
    settings += [f"build-dir={BUILD}", "install-args=--tags=runtime,python-runtime"]
    words = [word for setting in settings for word in ("-C", setting)]
    options = ["--verbose", "--no-deps", "--no-build-isolation", "--wheel-dir", raw]
    command = [python, "-m", "pip", "wheel", *options, *words, REPOSITORY]
    building.run(command, WORK / "log", env=environment)


def _server(environment, package):
    """The tree of the wheel with the programs, made from what the same build installs."""
    stage, tree = _fresh("stage"), _fresh("tundish-server")
    _run("meson", "install", "-C", BUILD, "--no-rebuild", "--quiet", "--tags", "bin,man",
         "--destdir", stage, env=environment)  # fmt: skip
    version = package.name.removeprefix("tundish-")
    module, info = tree / "tundish_server", tree / f"tundish_server-{version}.dist-info"
    shutil.copytree(next(stage.rglob("bin/tundish")).parent, module / "bin")
    shutil.copy(HERE / "tundish_server.py", module / "__init__.py")
    shutil.copy(CHART, module / "bin")
    data = tree / f"tundish_server-{version}.data" / "data" / "share"
    shutil.copytree(next(stage.rglob("share/man")), data / "man")
    info.mkdir()
    (info / "METADATA").write_text(
        f"Metadata-Version: 2.4\nName: tundish-server\nVersion: {version}\n"
        "Summary: The feed server of Tundish, its launcher and its admin\nRequires-Python: >= 3.11\n"
        "License-Expression: Apache-2.0\nLicense-File: LICENSE\n"
    )
    (info / "WHEEL").write_text(
        "Wheel-Version: 1.0\nGenerator: scripts/package\nRoot-Is-Purelib: false\n"
        f"Tag: py3-none-linux_{os.uname().machine}\n"
    )
    names = sorted(path.name for path in module.glob("bin/tundish*"))
    scripts = "".join(f"{name} = tundish_server:run\n" for name in names)
    (info / "entry_points.txt").write_text(f"[console_scripts]\n{scripts}")
    (info / "licenses").mkdir()
    shutil.copy(REPOSITORY / "LICENSE", info / "licenses")
    return tree


def _finish(python, environment, tree):
    """Pack a tree, with the libraries that it needs and their licences, into dist/."""
    files = [path for path in tree.rglob("*") if path.is_file()]
    programs = [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]
    info = next(tree.glob("*.dist-info"))
    libraries.add_licences(programs, info / "licenses")
    packed = _fresh("packed")
    _run(python, "-m", "wheel", "pack", "--dest-dir", packed, tree)
    _run(python, "-m", "auditwheel", "repair", "--strip", "--only-plat", "-w", packed / "repaired",
         *packed.glob("*.whl"), env=environment)  # fmt: skip
    DIST.mkdir(exist_ok=True)
    for old in DIST.glob(f"{info.name.split('-')[0]}-*.whl"):
        old.unlink()
    for path in (packed / "repaired").iterdir():
        shutil.move(path, DIST)


def _add_numpy(python):
    """So that dist/ holds all that `tundish` needs; without a network it holds the rest."""
    options = ["--verbose", "--no-deps", "--only-binary", ":all:", "--dest", DIST]
    status = subprocess.call([python, "-m", "pip", "download", *options, "numpy"])
    if status:
        print("package: dist/ is without NumPy, which tundish needs", file=sys.stderr)


def _try():
    """Install from dist/ alone and train for some seconds, out of sight of the tree and of compilers."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, symlinks=True, with_pip=True)
        python = Path(folder, "bin", "python")
        bare = {"PATH": f"{folder}/bin", "HOME": folder, "TMPDIR": folder}
        options = ["--quiet", "--no-index", "--find-links", DIST]
        _run(python, "-m", "pip", "install", *options, "tundish[server]", cwd=folder, env=bare)
        for program in ("tundish", "tundish-launch", "tundish-admin"):
            _run(f"{folder}/bin/{program}", "--help", cwd=folder, env=bare, stdout=subprocess.DEVNULL)
        _run(python, "-m", "tundish.demo", "--seconds", "3", cwd=folder, env=bare)


def _fresh(name):
    folder = WORK / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def _run(*command, **options):
    subprocess.run(command, check=True, cwd=options.pop("cwd", REPOSITORY), **options)
