"""What scripts/package says while it builds."""

import contextlib
import io
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "scripts"))

from packing import building  # noqa: E402


class Told(io.StringIO):
    """Makes a file when that was written, for which the build waits."""

    def __init__(self, text, file):
        super().__init__()
        self.text, self.file = text, file

    def write(self, text):
        if self.text in text:
            self.file.touch()
        return super().write(text)


class Building(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        self.log = self.folder / "log"

    def run_script(self, script):
        said, wrong = Told("3/9", self.folder / "told"), io.StringIO()
        with (
            mock.patch.object(building, "_EVERY_S", 0.05),
            contextlib.redirect_stdout(said),
            contextlib.redirect_stderr(wrong),
        ):
            try:
                building.run(["sh", "-c", script], self.log, cwd=self.folder)
            except subprocess.CalledProcessError as error:
                return said.getvalue(), wrong.getvalue(), error
        return said.getvalue(), wrong.getvalue(), None

    def test_the_log_is_named_at_once_and_steps_are_told(self):
        wait = "while [ ! -e told ]; do sleep 0.05; done"
        said, wrong, error = self.run_script(f"echo [1/9] a; echo [3/9] b; {wait}; echo done")
        lines = said.splitlines()
        self.assertEqual(lines[0], f"package: building, which takes minutes; log: {self.log}")
        self.assertIn("package: step 3/9", lines)
        self.assertEqual((wrong, error, self.log.read_text()), ("", None, "[1/9] a\n[3/9] b\ndone\n"))

    def test_of_a_build_that_fails_the_last_lines_are_shown(self):
        _, wrong, error = self.run_script("for i in $(seq 100); do echo line $i; done; exit 3")
        self.assertEqual(wrong.splitlines()[0::59], ["line 41", "line 100"])
        self.assertIn(str(self.log), str(error))


if __name__ == "__main__":
    unittest.main()
