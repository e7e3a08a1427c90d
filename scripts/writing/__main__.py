"""Write the pages of the manual and have Sphinx make a site of them."""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from . import c_headers, example_files, pages, python_api, reference

ROOT = Path(__file__).resolve().parents[2]
SKIPPED = 77  # as for Meson
HEADERS = (
    "tundish.h",
    "tundish_tensor.h",
    "tundish_device.h",
    "tundish_cuda.h",
    "tundish_op.h",
    "tundish_source.h",
    "tundish_transform.h",
)


def main():
    parser = argparse.ArgumentParser(prog="scripts/manual", description="Make the manual for browsers.")
    parser.add_argument("--out", type=Path, help="the folder of the site (default: BUILD/manual/html)")
    parser.add_argument("--pages", type=Path, help="only write the pages, as Markdown, into this folder")
    options = parser.parse_args()
    build = Path(os.environ.get("BUILD", ROOT / "build")).resolve()
    program = build / "server" / "tundish"
    if not program.exists():
        sys.exit(f"manual: {program} is missing: run scripts/build first, or set BUILD")
    source = options.pages or build / "manual" / "pages"
    write_pages(source, program, with_batches=options.pages is None)
    return 0 if options.pages else run_sphinx(source, options.out or build / "manual" / "html")


def write_pages(folder, program, with_batches):
    """All pages, into a folder that has nothing else; maybe with the batches that examples make."""
    shutil.rmtree(folder, ignore_errors=True)
    tables = reference.tables_of(program)
    if with_batches:
        add_batches(program, tables["stages"])
    written = pages.texts(ROOT)
    written |= reference.pages(ROOT, tables)
    written |= {f"reference/{name}.md": c_headers.page(ROOT / "sdk/include/tundish" / name) for name in HEADERS}
    written["reference/python.md"] = python_api.page(ROOT / "sdk/python/tundish")
    written["conf.py"] = pages.configuration(tables["version"])
    for name, text in written.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    shutil.copytree(ROOT / "docs/pictures", folder / "docs/pictures", ignore=shutil.ignore_patterns("*.py", "*.txt"))


def add_batches(program, stages):
    """Put beside each example what `tundish peek` prints of it; a Python without NumPy makes none of some."""
    with tempfile.TemporaryDirectory(prefix="tundish-manual-") as folder:
        example_files.write(Path(folder), program.parents[1])
        for name, (said, _) in example_files.batches(program, stages, Path(folder)).items():
            stage = next(stage for stage in stages if stage["name"] == name)
            stage["batch"] = said


def run_sphinx(source, out):
    try:
        python = environment(source.parent / "venv")
    except subprocess.CalledProcessError:
        print("manual: Sphinx could not be installed from PyPI", file=sys.stderr)
        return SKIPPED
    shutil.rmtree(out, ignore_errors=True)
    command = [python, "-m", "sphinx", "-q", "-W", "--keep-going", "-j", "auto", "-b", "html"]
    status = subprocess.run([*command, "-d", source.parent / "doctrees", source, out], check=False).returncode
    if status == 0:
        print(f"manual: {out / 'index.html'}")
    return status


def environment(folder):
    """The Python of a virtual environment that has what requirements.txt lists, made if need be."""
    wanted = (Path(__file__).parent / "requirements.txt").read_text()
    stamp = folder / "requirements.txt"
    if not stamp.exists() or stamp.read_text() != wanted:
        print("manual: installing Sphinx and its theme: about 20 MB, a quarter of a minute")
        venv.create(folder, clear=True, with_pip=True)
        pip = [folder / "bin/python", "-m", "pip", "install", "-q", "--disable-pip-version-check", "--no-deps"]
        subprocess.run([*pip, "-r", Path(__file__).parent / "requirements.txt"], check=True)
        stamp.write_text(wanted)
    return folder / "bin/python"


if __name__ == "__main__":
    sys.exit(main())
