"""The one file that is installed says and does as the modules that it is made of."""

import ast
import stat
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from program import LAUNCH, SCRIPTS

JOIN = SCRIPTS / "join-modules"


class Joined(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)

    def write(self, **modules):
        (self.folder / "package").mkdir()
        for name, text in modules.items():
            (self.folder / "package" / f"{name}.py").write_text(f'"""A module."""\n\n{text}\n')
        program = self.folder / "program"
        program.write_text("from package.main import main\n\nif True:\n    print(main())\n")
        return program

    def join(self, program, file="joined"):
        return subprocess.run([JOIN, program, self.folder / file], capture_output=True, text=True)

    def said_by(self, text):
        return subprocess.check_output([sys.executable, "-B", "-c", text], text=True, cwd="/")

    def test_launcher_has_every_function_and_prints_the_same_help(self):
        joined = self.folder / "tundish-launch"
        self.assertEqual(self.join(LAUNCH, joined).returncode, 0)
        self.assertEqual(stat.S_IMODE(joined.stat().st_mode), 0o755)
        has = {node.name for node in ast.parse(joined.read_text()).body if hasattr(node, "name")}
        wants = {node.name for path in (SCRIPTS / "launch").glob("*.py")
                 for node in ast.parse(path.read_text()).body if hasattr(node, "name")}
        self.assertEqual(has, wants)
        self.assertGreater(len(has), 100)
        said = [subprocess.check_output([sys.executable, "-B", program, "--help"], text=True, cwd="/")
                for program in (joined, LAUNCH)]
        self.assertEqual(*said)
        self.assertIn("--replicas", said[0])

    def test_modules_follow_those_that_they_import(self):
        done = self.join(self.write(
            main="import os\n\nfrom .zebra import (\n    last,\n)\n\nHERE = os.curdir\n"
                 "\n\ndef main():\n    return HERE, TWICE\n\n\nTWICE = last * 2",
            zebra="import os\n\nlast = len(os.curdir)",
        ))
        self.assertEqual(done.returncode, 0, done.stderr)
        joined = (self.folder / "joined").read_text()
        self.assertEqual(joined.count("import os\n"), 1)
        self.assertEqual(self.said_by(joined), "('.', 2)\n")

    def test_two_modules_with_one_name_are_refused(self):
        for text in ("def once():\n    pass", "once = 1", "other, once = 1, 2"):
            with self.subTest(text=text), tempfile.TemporaryDirectory() as folder:
                self.folder = Path(folder)
                done = self.join(self.write(main=f"from .zebra import once\n\n{text}", zebra="once = 1"))
                self.assertEqual(done.returncode, 1)
                self.assertIn("zebra.py and main.py both define once", done.stderr)


if __name__ == "__main__":
    unittest.main()
