"""The pages of the manual: what the tables have is in them, and every link leads somewhere."""

import json
import os
import re
import subprocess
import tempfile
import unittest
from pathlib import Path

from rig import DEADLINE_S, TUNDISH

ROOT = Path(__file__).resolve().parents[2]


class Manual(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(prefix="tundish-manual-")
        cls.addClassCleanup(cls.folder.cleanup)
        pages = Path(cls.folder.name) / "pages"
        environment = {**os.environ, "BUILD": str(Path(TUNDISH).parents[1])}
        subprocess.run([ROOT / "scripts/manual", "--pages", pages], check=True, env=environment, timeout=DEADLINE_S)
        cls.pages = {path.relative_to(pages).as_posix(): path.read_text() for path in pages.rglob("*.md")}
        cls.files = {path.relative_to(pages).as_posix() for path in pages.rglob("*") if path.is_file()}

    def test_every_link_leads_to_a_page_and_a_heading(self):
        lost = []
        for name, text in self.pages.items():
            for target in re.findall(r"\]\((?!https?:)([^)\s]+)\)", without_code(text)):
                path, _, heading = target.partition("#")
                page = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if page not in self.files or heading and heading not in headings(self.pages[page]):
                    lost.append(f"{name}: {target}")
        self.assertEqual(lost, [])
        self.assertGreater(len(self.pages), 130)

    def test_every_page_is_in_a_list_of_pages(self):
        listed = {"index.md"}
        for name, text in self.pages.items():
            for block in re.findall(r"(?ms)^```\{toctree\}\n(.*?)^```", text):
                names = [line for line in block.splitlines() if line and not line.startswith(":")]
                listed |= {os.path.normpath(os.path.join(os.path.dirname(name), f"{word}.md")) for word in names}
        self.assertEqual(listed, set(self.pages))

    def test_the_reference_has_all_of_the_tables(self):
        tables = json.loads(subprocess.check_output([TUNDISH, "help", "--json"], text=True))
        for stage in tables["stages"]:
            inside = stage["group"] in ("Pipeline file", "Features")
            page = self.pages["reference/pipeline.md" if inside else f"reference/stages/{stage['name']}.md"]
            for parameter in stage["parameters"]:
                self.assertIn(f"| `{parameter['name']}` |", page)
        for entry in tables["expressions"]["entries"]:
            self.assertIn(entry["example"].replace("|", "\\|"), self.pages["reference/expressions.md"])
        for command in tables["commands"]:
            self.assertIn(f"## tundish {command['name']}\n", self.pages["reference/commands.md"])

    def test_the_reference_has_the_metrics_the_calls_and_the_classes(self):
        for name in ("tundish_stream_rows_total", "tundish_stream_slot_wait_seconds", "tundish_server_threads"):
            self.assertIn(f"| `{name}` |", self.pages["reference/metrics.md"])
        for name in ("tundish_open", "tundish_next", "tundish_status", "tundish_place_token"):
            self.assertIn(name, self.pages["reference/tundish.h.md"])
        for name in ("tundish.open", "tundish.serve", "tundish.Reader", "tundish.torch.DataLoader",
                     "tundish.data.Dataset", "tundish.rows.RowWriter"):  # fmt: skip
            self.assertIn(f"### {name}\n", self.pages["reference/python.md"])

    def test_stages_in_the_texts_have_the_parameters_that_they_show(self):
        tables = json.loads(subprocess.check_output([TUNDISH, "help", "--json"], text=True))
        known = {stage["name"]: {parameter["name"] for parameter in stage["parameters"]} for stage in tables["stages"]}
        whole = {"map", "values", "from_tensors", "from_tensor_slices", "rename", "stream", "remote"}
        wrong, seen = [], 0
        for path in (*sorted((ROOT / "docs").rglob("*.md")), ROOT / "README.md"):
            for name, inside in mappings(path.read_text()):
                if name in known and name not in whole and "..." not in inside:
                    seen += 1
                    wrong += [f"{path.name}: {name}: {key}" for key in keys(inside) if key not in known[name]]
        self.assertGreater(seen, 80)
        self.assertEqual(wrong, [])

    def test_every_variable_of_the_environment_is_listed(self):
        listed = set(re.findall(r"`(TUNDISH_\w+)`", (ROOT / "docs/environment.md").read_text()))
        used = set()
        for folder, pattern in (("server", "*.c"), ("sdk", "*.c"), ("sdk/python/tundish", "*.py"), ("admin", "*.c")):
            for path in (ROOT / folder).rglob(pattern):
                used |= set(re.findall(r'(?:getenv\(|environ(?:\.get\(|\[|\.pop\())"(TUNDISH_\w+)"', path.read_text()))
        for path in (ROOT / "scripts/launch").glob("*.py"):
            used |= set(re.findall(r'environ(?:\.get\(|\[|\.pop\()"(TUNDISH_\w+)"', path.read_text()))
        self.assertGreater(len(used), 8)
        self.assertEqual(used - listed, set())


def mappings(text):
    """(name, what stands in the braces) of each `name: {...}`, those inside others too."""
    for found in re.finditer(r"(\w+): \{", text):
        depth, at = 1, found.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        yield found[1], text[found.end() : at - 1]


def keys(inside):
    """The keys of a mapping in one line, without those of mappings and lists in it."""
    flat = re.sub(r"\"[^\"]*\"", "", inside)
    while (shorter := re.sub(r"\{[^{}]*\}|\[[^\[\]]*\]", "", flat)) != flat:
        flat = shorter
    return re.findall(r"(?:^|,)\s*(\w+):", flat)


def without_code(text):
    return re.sub(r"`[^`\n]*`", "", re.sub(r"(?ms)^ *```.*?^ *```$", "", text))


def headings(text):
    titles = re.findall(r"(?m)^#+ +(.+)$", re.sub(r"(?ms)^ *```.*?^ *```$", "", text))
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}


if __name__ == "__main__":
    unittest.main()
