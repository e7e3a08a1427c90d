"""The command: exit statuses, what goes where, bad programs."""

import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rig


LONG = """
import numpy as np
import tensorflow as tf

def make():
    return tf.data.Dataset.from_tensor_slices(np.arange(800)).batch(100)
"""


@unittest.skipUnless(rig.HAS_TENSORFLOW, "needs tensorflow")
class Command(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-port-")))

    def run_tundish(self, *words):
        environment = dict(
            os.environ,
            TUNDISH_PYTHON=sys.executable,
            PYTHONPATH=str(rig.BUILD / "sdk" / "python"),
        )
        return subprocess.run(
            [str(rig.BUILD / "server" / "tundish"), *words],
            cwd=self.folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=600,
        )

    def run_port(self, *words):
        return self.run_tundish("port", *words)

    def test_a_program_that_prints_leaves_the_output_to_the_pipeline_file(self):
        done = self.run_port(f"{rig.PROGRAMS}/failing.py:prints", "--check", "5")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertTrue(done.stdout.startswith("streams:\n  train:\n"), done.stdout)
        self.assertIn("2 batches of 1 column are the same, to the bit", done.stderr)

    def test_all_that_is_not_carried_over_is_listed_and_no_file_written(self):
        done = self.run_port(f"{rig.PROGRAMS}/refused.py:functions", "--no-python", "-o", "out.yaml")
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertRegex(done.stdout, r"refused.py:13  tf.py_function: .*\n.*refused.py:14  tf.numpy_function")
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_files_beside_a_pipeline_file_in_another_folder_are_found_from_the_current_one(self):
        (self.folder / "input.py").write_text(LONG)
        (self.folder / "to").mkdir()
        done = self.run_port("input.py:make", "-o", "to/out.yaml", "--check", "9")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("8 batches of 1 column are the same, to the bit", done.stderr)
        self.assertEqual(sorted(path.suffix for path in (self.folder / "to").iterdir()), [".npy", ".yaml"])
        seen = self.run_tundish("peek", "to/out.yaml", "--root", ".", "--steps", "1")
        self.assertEqual(seen.returncode, 0, seen.stderr)

    def test_a_file_that_cannot_be_written_is_no_fault_of_the_command(self):
        for output, reason in (("none/out.yaml", "No such file or directory"), ("/dev/full", "No space left on device")):
            done = self.run_port(f"{rig.PROGRAMS}/failing.py:prints", "-o", output)
            self.assertEqual((done.returncode, done.stdout), (2, ""))
            self.assertEqual(done.stderr.splitlines()[-1], f"tundish port: cannot write {output}: {reason}")
            self.assertNotIn("fault of tundish port", done.stderr)

    def test_a_program_that_raises_is_named_with_its_line(self):
        done = self.run_port(f"{rig.PROGRAMS}/failing.py:raises")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertRegex(done.stderr, r"failing.py:6: ValueError: no data today")

    def test_a_fault_of_the_command_is_not_taken_for_the_programs(self):
        done = self.run_port(f"{rig.PROGRAMS}/failing.py:runs_without")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"(?s)failing.py:\d+: ValueError: somebody stands.*a fault of tundish port")

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
