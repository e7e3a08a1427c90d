"""Line coverage of the server and the SDK for each folder: by the unit tests alone, and by everything."""

import json
import subprocess
from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor

from . import suites
from .tally import Tally

BUILD = suites.REPOSITORY / "build-coverage"
COUNTED = ("server/", "sdk/")
EXAMPLES = "sdk/examples/"


def measure():
    """Run the tests in a build that counts lines, print the table, and return the Tally."""
    broken = suites.build("coverage")
    if broken:
        return broken
    for counts in BUILD.rglob("*.gcda"):
        counts.unlink()
    total = Tally()
    total.add(suites.meson("coverage", "unit"))
    by_units = _lines()
    total.add(suites.meson("coverage", "system"))
    total.add(suites.conformance("coverage"))
    _print_table(by_units, _lines())
    return total


def _lines():
    """Whether each line ran: {file: {line: bool}}, headers included."""
    ran = defaultdict(lambda: defaultdict(bool))
    notes = [path for path in sorted(BUILD.rglob("*.gcno")) if "/tests/" not in str(path)]
    with ThreadPoolExecutor() as pool:
        for files in pool.map(_report, notes):
            for name, lines in files:
                for line, count in lines:
                    ran[name][line] |= count > 0
    return ran


def _report(note):
    """The counts of one object file: [(file, [(line, count)])]."""
    command = ["gcov", "--json-format", "--stdout", "--object-directory", note.parent, note]
    said = subprocess.run(command, cwd=BUILD, capture_output=True, text=True).stdout
    found = []
    for document in said.splitlines():
        for file in json.loads(document)["files"]:
            path = (BUILD / file["file"]).resolve()
            if path.is_relative_to(suites.REPOSITORY) and path.exists():
                name = path.relative_to(suites.REPOSITORY).as_posix()
                if name.startswith(COUNTED) and not name.startswith(EXAMPLES):
                    lines = [(line["line_number"], line["count"]) for line in file["lines"]]
                    found.append((name, lines))
    return found


def _print_table(by_units, by_all):
    folders = defaultdict(list)
    for name in by_all:
        folders["/".join(name.split("/")[:2]) if name.count("/") > 1 else name].append(name)
    print(f"\n{'folder':24} {'lines':>7} {'unit':>7} {'all':>7}")
    for folder, names in [*sorted(folders.items()), ("all of it", list(by_all))]:
        count = sum(len(by_all[name]) for name in names)
        print(f"{folder:24} {count:7} {_share(by_units, names, count)} {_share(by_all, names, count)}")


def _share(ran, names, count):
    return f"{100 * sum(sum(ran[name].values()) for name in names) / count:6.1f}%"
