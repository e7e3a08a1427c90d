"""The recorder, as far as it goes without TensorFlow. tests/python/test_recorder.py has the rest."""

import json
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from recorder import layout, program  # noqa: E402

RECORD = Path(__file__).resolve().parents[1] / "record"
CASES = RECORD.parent / "cases"


class Command(unittest.TestCase):
    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "order").mkdir()

    def record(self, *names):
        """With an interpreter that only says what it would run, and fails for names with `bad`."""
        python = self.folder / "python"
        python.write_text('#!/bin/sh\necho "$3"\ncase $3 in *bad*) exit 1 ;; esac\n')
        python.chmod(0o755)
        command = [sys.executable, "-B", RECORD, "--cases", self.folder, *names]
        environment = dict(os.environ, PYTHON=str(python))
        return subprocess.run(command, capture_output=True, text=True, env=environment)

    def put(self, name):
        (self.folder / name).touch()

    def test_what_is_missing_is_named(self):
        done = self.record("order/a")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertIn("order/a.yaml is not there", done.stderr)
        self.put("order/a.yaml")
        self.assertIn("order/a.py is not there", self.record("order/a").stderr)

    def test_each_case_runs_by_itself(self):
        for name in ("order/a.yaml", "order/a.py", "order/b.yaml", "order/b.py"):
            self.put(name)
        done = self.record("order/a", "order/b.yaml")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual([Path(line).name for line in done.stdout.split()], ["a.yaml", "b.yaml"])

    def test_one_that_fails_is_the_last(self):
        for name in ("bad", "b"):
            self.put(f"order/{name}.yaml")
            self.put(f"order/{name}.py")
        done = self.record("order/bad", "order/b")
        self.assertEqual(done.returncode, 1)
        self.assertIn("bad was not recorded", done.stderr)
        self.assertEqual([Path(line).name for line in done.stdout.split()], ["bad.yaml"])


class Program(unittest.TestCase):
    def load(self, text):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "a-case.py")
            path.write_text(text)
            return program.load(path)

    def test_it_says_what_the_case_is_about(self):
        loaded = self.load('"""Two\nlines."""\nEPOCHS = 2\ndef dataset():\n    a = 1\n    return a + 1\n')
        self.assertEqual((loaded.about, loaded.call), ("Two lines.", "a = 1; a + 1"))
        self.assertEqual((loaded.epochs, loaded.workers, loaded.max_steps), (2, 1, None))
        self.assertEqual(loaded.make(0), 2)

    def test_workers_have_their_own(self):
        self.assertEqual(self.load('"""a"""\nWORKERS = 2\ndef dataset(worker):\n    return worker\n').make(1), 1)

    def test_one_that_says_too_little_is_refused(self):
        for text, complaint in (
            ("def dataset(): pass", "docstring"),
            ('"""a"""', "dataset()"),
            ('"""a"""\nEPOCH = 2\ndef dataset(): pass', "EPOCH is not one of"),
        ):
            with self.assertRaisesRegex(program.BadProgram, complaint.replace("(", r"\(").replace(")", r"\)")):
                self.load(text)


class Layout(unittest.TestCase):
    def test_it_is_the_layout_of_the_cases(self):
        for name in ("content/rescaling_float", "order/zip-of-itself-fixed", "analyze/adapt_discretization"):
            text = (CASES / f"{name}.json").read_text()
            record = json.loads(text)
            self.assertEqual(json.loads(layout.text(record)), record)
            self.assertEqual(layout.text(record), text, name)


if __name__ == "__main__":
    unittest.main()
