"""Every stage's example in `tundish help` makes batches."""

import importlib.util
import json
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rig

sys.path.insert(0, str(rig.REPOSITORY / "scripts"))
from writing import example_files  # noqa: E402


class Examples(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        tables = json.loads(subprocess.check_output([rig.TUNDISH, "help", "--json"], text=True))
        has_numpy = importlib.util.find_spec("numpy") is not None
        cls.stages = [stage for stage in tables["stages"] if has_numpy or not stage["name"].startswith("python")]

    def test_each_has_one_that_shows_it(self):
        for stage in self.stages:
            section = stage["group"] == "Pipeline file" and stage["name"] == "stream"
            self.assertIn("train" if section else stage["name"], stage["example"])

    def test_each_makes_batches(self):
        with tempfile.TemporaryDirectory(prefix="tundish-examples-") as folder:
            path = Path(folder)
            example_files.write(path, rig.BUILD)
            made = example_files.batches(rig.TUNDISH, self.stages, path)
        for name, (batch, said) in made.items():
            with self.subTest(name):
                self.assertIsNotNone(batch, said)
                self.assertIn(" step 0\n", batch)
                self.assertRegex(batch, r"\n  \w+ +[a-z]+\d*\[", said)


if __name__ == "__main__":
    unittest.main()
