"""What the texts cite is in the tree, and their tables are whole."""

import re
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from texts import ROOT, complaints_of, texts  # noqa: E402

TEXTS = ("README.md", "CONTRIBUTING.md", "admin/README.md", "docs/concepts.md", "sdk/README.md", "server/README.md",
         "tests/README.md")


def missing(text, name="server/README.md"):
    return [line.split(": ", 1)[1].removesuffix(" is not in the tree") for line in complaints_of(name, text)]


class Texts(unittest.TestCase):
    def test_each_part_has_its_text(self):
        self.assertEqual([name for name in TEXTS if name not in texts()], [])

    def test_all_that_they_cite_is_there(self):
        complaints = [line for name in texts() for line in complaints_of(name, (ROOT / name).read_text())]
        self.assertEqual(complaints, [], "\n" + "\n".join(complaints))


class Citations(unittest.TestCase):
    """A citation of something that is not there is found, whatever it is."""

    def test_a_path(self):
        self.assertEqual(missing("See `session/session_work.c`, `order/`, `arena.c`, `order/order_NAME.c`."), [])
        self.assertEqual(missing("See `session/nothing.c`."), ["session/nothing.c"])
        self.assertEqual(missing("See `nothing_like_it.c`."), ["nothing_like_it.c"])
        self.assertEqual(missing("See `plan/order_NAME.c`."), ["plan/order_NAME.c"])

    def test_a_link(self):
        self.assertEqual(missing("See [the SDK](../sdk/) and [a page](https://example.org/none)."), [])
        self.assertEqual(missing("See [the SDK](../none/README.md)."), ["../none/README.md"])

    def test_a_heading(self):
        self.assertEqual(missing("See [columns](../sdk/README.md#on-a-gpu)."), [])
        self.assertEqual(missing("See [columns](../sdk/README.md#nowhere)."), ["../sdk/README.md#nowhere"])

    def test_a_name(self):
        self.assertEqual(missing("`tundish_next()` gives a `tundish_batch *`."), [])
        self.assertEqual(missing("`content_NAME` and `tnd_` are the beginnings of names."), [])
        self.assertEqual(missing("`quite_another_NAME`, `qz_`"), ["quite_another_NAME", "qz_"])
        self.assertEqual(missing("`tundish_next_but_one()`, `E_NOTHING`"), ["tundish_next_but_one", "E_NOTHING"])

    def test_an_option(self):
        self.assertEqual(missing("`tundish serve --state DIR`, `--token-file`"), [])
        self.assertEqual(missing("`tundish serve --no-such-thing`"), ["--no-such-thing"])

    def test_a_word_of_others(self):
        table = "| there | here |\n|---|---|\n| `quite_another()` | `%s` |\n"
        self.assertEqual(missing(table % "tundish_next"), [])
        self.assertEqual(missing(table % "tundish_next_but_one"), ["tundish_next_but_one"])

    def test_a_diagram(self):
        self.assertEqual(missing("```\n order/ -> session/ (lane_reserve)\n```\n"), [])
        self.assertEqual(missing("```\n ordre/x -> (lane_reserved_it)\n```\n"), ["ordre/x", "lane_reserved_it"])

    def test_a_command(self):
        self.assertEqual(missing("```sh\nscripts/demo --tsv  # all\ntundish plan x --json\n```\n"), [])
        self.assertEqual(
            missing("```sh\nscripts/dmeo\nqz-program x\ntundish plans x\ntundish plan x --jsn\n```\n"),
            ["scripts/dmeo", "qz-program", "tundish plans", "--jsn"],
        )


class Pictures(unittest.TestCase):
    def test_they_are_what_their_texts_draw(self):
        command = [sys.executable, "-B", ROOT / "docs/pictures/draw.py", "--check"]
        done = subprocess.run(command, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_each_is_shown_on_dark_paper_too(self):
        for name in texts():
            for picture in re.findall(r"<picture>(.*?)</picture>", (ROOT / name).read_text(), re.DOTALL):
                shown = re.findall(r'(?:srcset|src)="([^"]+)"', picture)
                self.assertEqual([path for path in shown if not ((ROOT / name).parent / path).exists()], [], name)
                self.assertEqual(shown[0].replace("-dark.", "-light."), shown[1], name)


class Figures(unittest.TestCase):
    """Figures that sell are figures that were measured."""

    def test_they_are_those_of_the_records(self):
        recorded = (ROOT / "tests/bench/RESULTS.md").read_text()
        for name, least in (("README.md", 12), ("docs/performance.md", 24)):
            tables = re.findall(r"(?m)^\| (?!what).*\d.*\|$", (ROOT / name).read_text())
            figures = [figure for row in tables for cell in row.split("|")[2:]
                       for figure in re.findall(r"\d[\d,.]*\d", cell) if not re.search("[a-z] × ", cell)]
            self.assertGreaterEqual(len(figures), least)
            self.assertEqual([figure for figure in figures if figure not in recorded], [], name)


class Recipes(unittest.TestCase):
    """A newcomer's tasks are short to follow. What they cite is there: see Texts."""

    def test_each_has_eight_steps_at_most_and_says_where(self):
        recipes = (ROOT / "CONTRIBUTING.md").read_text().split("\n## Recipes\n")[1].split("\n## ")[0]
        parts = re.split(r"(?m)^\*\*(.+?)\*\*", recipes)[1:]
        titles = ["A content stage", "A source, or a compression.", "A metric.", "What follows when a trainer dies.",
                  "A convenience for Python."]
        self.assertEqual(parts[::2], titles)
        for title, text in zip(parts[::2], parts[1::2]):
            lines = [line for line in text.splitlines() if line.strip()]
            self.assertLessEqual(len(lines), 8, title)
            self.assertGreater(len(re.findall(r"`[\w./-]+/[\w./-]+`", text)), 3, title)


class Tables(unittest.TestCase):
    """A table that lists all of something lists all of it."""

    def column(self, name, title):
        """The first column of the table that `title` heads."""
        found = re.search(rf"^\| {title} \|.*\n\|[-|]+\n((?:\|.*\n)+)", (ROOT / name).read_text(), re.MULTILINE)
        return [line.split("|")[1].strip() for line in found.group(1).splitlines()]

    def cited(self, name, title):
        return [span for line in self.column(name, title) for span in re.findall(r"`([^`]+)`", line)]

    def source(self, name, pattern):
        return re.findall(pattern, (ROOT / name).read_text())

    def test_the_page_has_these_sections(self):
        titles = self.source("admin/page/index.html", r'<h2 id="\w+-title">([^<]+?)\s*<')
        self.assertEqual(self.column("admin/README.md", "section"), titles)

    def test_every_alert_has_its_page(self):
        alerts = re.findall(r"- alert: (\w+)", (ROOT / "admin/monitoring/alerts.yml").read_text())
        pages = re.split(r"(?m)^### (\w+)\n", (ROOT / "admin/runbook.md").read_text())[1:]
        self.assertEqual(pages[::2], alerts)
        for name, page in zip(pages[::2], pages[1::2]):
            self.assertEqual(re.findall(r"(?m)^- \*\*(\w+)\.\*\*", page), ["Symptom", "Look", "Change"], name)

    def test_these_are_the_levels(self):
        levels = next(found for header in sorted((ROOT / "sdk/watch").glob("*.h"))
                      for found in re.findall(r"enum watch_level \{([^}]+)\}", header.read_text()))
        words = re.findall(r"^    WATCH_([A-Z]+)", levels, re.MULTILINE)
        self.assertEqual([word.upper() for word in self.column("admin/README.md", "level")], words)

    def test_these_are_the_paths_that_admin_answers(self):
        text = (ROOT / "admin/README.md").read_text()
        routes = self.source("admin/routes.c", r'\{ "(/[^"]+)", ROUTE_(?!PAGE)')
        self.assertGreater(len(routes), 10)
        self.assertEqual([path for path in routes if f"`{path}`" not in text], [])

    def test_every_folder_of_tests_is_described(self):
        folders = {path.name for path in (ROOT / "tests").iterdir() if path.is_dir() and path.name != "__pycache__"}
        self.assertEqual({name.rstrip("/") for name in self.cited("tests/README.md", "folder")}, folders)

    def test_every_status_of_the_sdk_is_explained(self):
        (enum,) = self.source("sdk/include/tundish/tundish.h", r"(?s)enum tundish_status \{(.*?)\n\}")
        statuses = re.findall(r"\n    TUNDISH_(\w+) = -?\d+,? +/\*", enum)
        self.assertIn("E_PEER_LOST", statuses)
        explained = self.cited("sdk/README.md", "status")
        self.assertEqual([name for name in statuses if name not in explained and "_" in name], [])

    def test_the_lives_have_all_states(self):
        for header, begin in (("session/step.h", "STEP"), ("deliver/lane_private.h", "SLOT")):
            body = self.source(f"server/{header}", rf"enum {begin.lower()}_state \{{([^}}]+)\}}")[0]
            text = (ROOT / "server/README.md").read_text()
            life = text[text.index(f"## The life of a {begin.lower()}"):].split("\n## ")[0]
            states = set(re.findall(rf"^    {begin}_([A-Z]+)", body, re.MULTILINE))
            self.assertGreater(len(states), 4)
            self.assertEqual(states - set(re.findall(r"[A-Z]+", life)), set())

    def test_every_folder_of_the_server_is_in_the_flow(self):
        flow = re.search(r"## Flow\n\n```\n(.*?)```", (ROOT / "server/README.md").read_text(), re.DOTALL)[1]
        folders = {path.name for path in (ROOT / "server").iterdir() if path.is_dir()}
        self.assertEqual(folders - set(re.findall(r"(\w+)/", flow)), set())

    def test_every_folder_within_has_its_line_and_a_header_to_begin_with(self):
        server = ROOT / "server"
        rows = re.findall(r"^\| `(\w+/\w+)/` \|.*\| `(\S+)` \|$", (server / "README.md").read_text(), re.MULTILINE)
        within = {str(path.relative_to(server)) for path in server.glob("*/*/") if any(path.glob("*.c"))}
        self.assertEqual({folder for folder, _ in rows} ^ within, set())
        for folder, header in rows:
            self.assertTrue((server / folder / header).exists() or (server / header).exists(), header)


if __name__ == "__main__":
    unittest.main()
