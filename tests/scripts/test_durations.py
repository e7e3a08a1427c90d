"""What scripts/test says of the time that is left."""

import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from testing import durations  # noqa: E402


class Durations(unittest.TestCase):
    def setUp(self):
        self.file = Path(self.enterContext(tempfile.TemporaryDirectory())) / "new" / "seconds.json"

    def test_those_of_the_last_run_are_added_up(self):
        self.assertEqual(durations.known(self.file), {})
        for name, seconds in (("unit", 10), ("system", 600), ("unit", 300)):
            durations.note(name, seconds, self.file)
        known = durations.known(self.file)
        self.assertEqual(known, {"unit": 300, "system": 600})
        self.assertEqual(durations.left(["unit", "system"], known), ", about 15 minutes left")
        self.assertEqual(durations.left(["unit", "fuzz"], known), ", more than 5 minutes left")
        self.assertEqual(durations.left(["fuzz"], known), "")

    def test_a_damaged_file_is_none(self):
        self.file.parent.mkdir()
        for text in ("", "[1]", '{"unit": "x"}', '{"unit": null}'):
            self.file.write_text(text)
            self.assertEqual(durations.known(self.file), {})


if __name__ == "__main__":
    unittest.main()
