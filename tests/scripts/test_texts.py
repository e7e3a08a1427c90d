"""What the texts cite is in the tree."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from texts import ROOT, complaints_of, texts  # noqa: E402

TEXTS = ("README.md", "CONTRIBUTING.md", "server/README.md", "sdk/README.md", "tests/README.md")


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

    def test_a_name(self):
        self.assertEqual(missing("`tundish_next()` gives a `tundish_batch *`."), [])
        self.assertEqual(missing("`content_NAME` and `tnd_` are the beginnings of names."), [])
        self.assertEqual(missing("`quite_another_NAME`, `qz_`"), ["quite_another_NAME", "qz_"])
        self.assertEqual(missing("`tundish_next_but_one()`, `E_NOTHING`"), ["tundish_next_but_one", "E_NOTHING"])

    def test_an_option(self):
        self.assertEqual(missing("`tundish serve --state DIR`, `--token-file`"), [])
        self.assertEqual(missing("`tundish serve --no-such-thing`"), ["--no-such-thing"])

    def test_a_diagram(self):
        self.assertEqual(missing("```\n order/ -> session/ (lane_reserve)\n```\n"), [])
        self.assertEqual(missing("```\n ordre/x -> (lane_reserved_it)\n```\n"), ["ordre/x", "lane_reserved_it"])

    def test_a_command(self):
        self.assertEqual(missing("```sh\nscripts/demo --tsv  # all\ntundish plan x --json\n```\n"), [])
        self.assertEqual(
            missing("```sh\nscripts/dmeo\nno-such-program x\ntundish plans x\ntundish plan x --jsn\n```\n"),
            ["scripts/dmeo", "no-such-program", "tundish plans", "--jsn"],
        )


if __name__ == "__main__":
    unittest.main()
