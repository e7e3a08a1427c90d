"""The command: exit statuses, what goes where, bad programs."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rig


@unittest.skipUnless(rig.HAS_TENSORFLOW, "needs tensorflow")
class Command(unittest.TestCase):
    def run_port(self, *words):
        environment = dict(
            os.environ,
            TUNDISH_PYTHON=sys.executable,
            PYTHONPATH=str(rig.BUILD / "sdk" / "python"),
        )
        with tempfile.TemporaryDirectory(prefix="tundish-port-") as folder:
            done = subprocess.run(
                [str(rig.BUILD / "server" / "tundish"), "port", *words],
                cwd=folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=600,
            )
            self.files = {path.name: path.read_text() for path in Path(folder).iterdir() if path.is_file()}
        return done

    def test_a_program_that_prints_leaves_the_output_to_the_pipeline_file(self):
        done = self.run_port(f"{rig.PROGRAMS}/failing.py:prints", "--check", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("streams:\n  train:\n"), done.stdout)
        self.assertIn("2 batches of 1 columns are the same, to the bit", done.stderr)

    def test_all_that_is_not_carried_over_is_listed_and_no_file_written(self):
        done = self.run_port(f"{rig.PROGRAMS}/refused.py:functions", "-o", "out.yaml")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"refused.py:13  tf.py_function: .*\n.*refused.py:14  tf.numpy_function")
        self.assertEqual(self.files, {})

    def test_a_program_that_raises_is_named_with_its_line(self):
        done = self.run_port(f"{rig.PROGRAMS}/failing.py:raises")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"failing.py:6: ValueError: no data today")

    def test_without_a_function_the_usage_is_told(self):
        self.assertEqual(self.run_port().returncode, 2)

    def test_a_python_without_the_package_is_told(self):
        environment = {"TUNDISH_PYTHON": sys.executable, "PATH": os.environ["PATH"]}
        command = [str(rig.BUILD / "server" / "tundish"), "port", "x.py:y"]
        done = subprocess.run(command, env=environment, cwd="/", capture_output=True, text=True, timeout=600)
        self.assertEqual(done.returncode, 2)
        self.assertIn("TUNDISH_PYTHON", done.stderr)


class Versions(unittest.TestCase):
    def refusal(self, **versions):
        from tundish.port import versions as tried

        return tried.refusal(versions.get)

    def test_only_what_was_tried_is_taken(self):
        self.assertIsNone(self.refusal(tensorflow="2.21.3", keras="3.15.1"))
        self.assertIn("2.19.0", self.refusal(tensorflow="2.19.0", keras="3.15.1"))
        self.assertIn("3.10.0", self.refusal(tensorflow="2.21.0", keras="3.10.0"))
        self.assertIn("not installed", self.refusal(keras="3.15.1"))


if __name__ == "__main__":
    unittest.main()
