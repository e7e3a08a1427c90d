"""scripts/demo with a store and with Parquet, in the build that is tested."""

import os
import re
import subprocess
import sys
import unittest
from pathlib import Path

DEMO = Path(__file__).parents[2] / "scripts/demo"


def has_pyarrow():
    return subprocess.run([sys.executable, "-c", "import pyarrow"], capture_output=True).returncode == 0


class Demo(unittest.TestCase):
    def demo(self, *options):
        environment = dict(os.environ, BUILD=os.environ["TUNDISH_BUILD"], PYTHON=sys.executable)
        out = subprocess.run([DEMO, "--rows", "20000", *options], env=environment, capture_output=True,
                             text=True)
        self.assertEqual(out.returncode, 0, out.stdout + out.stderr)
        return out.stdout

    def test_of_a_store_counts_every_row_once_though_the_server_is_killed(self):
        text = self.demo("--remote")
        self.assertIn("started again", text)
        self.assertIn("demo: 60000 rows seen, which is right", text)

    def test_ends_with_what_it_showed(self):
        text = self.demo()
        self.assertEqual(len(re.findall(r"replica \d: 30000 rows in all", text)), 2)
        *_, said, look = text.splitlines()
        first, later = map(float, re.fullmatch(r"demo: 3 epochs of 20000 rows, each row once in each; loss (\d\.\d+) to "
                                               r"(\d\.\d+)\.", said).groups())  # fmt: skip
        self.assertIn("scripts/demo --keep, then http://127.0.0.1:8465", look)
        self.assertLess(later, first)

    @unittest.skipUnless(has_pyarrow(), "pyarrow is not installed")
    def test_of_parquet_trains(self):
        self.demo("--parquet")


if __name__ == "__main__":
    unittest.main()
