"""tundish.keras: what fit takes on each backend, each row once, whatever Keras does before it trains."""

import importlib.util
import os
import subprocess
import sys
import unittest
from pathlib import Path

import rig

CASES = Path(__file__).with_name("keras_cases.py")


class Backends(unittest.TestCase):
    """Keras has one backend in a process, so each has a process of its own."""

    def run_with(self, backend):
        for module in ("keras", backend):
            if importlib.util.find_spec(module) is None:
                self.skipTest(f"needs {module}: it is not installed")
        done = subprocess.run([sys.executable, CASES], env=dict(os.environ, KERAS_BACKEND=backend),
                              capture_output=True, text=True, timeout=rig.DEADLINE_S)  # fmt: skip
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"Ran 1\d tests")

    def test_torch(self):
        self.run_with("torch")

    def test_jax(self):
        self.run_with("jax")

    def test_tensorflow(self):
        self.run_with("tensorflow")


if __name__ == "__main__":
    unittest.main()
