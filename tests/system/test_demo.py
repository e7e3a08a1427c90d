"""scripts/demo with a store and with Parquet, in the build that is tested."""

import contextlib
import os
import pty
import re
import socket
import subprocess
import sys
import unittest
import urllib.request
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

    def test_on_a_terminal_the_dashboard_stays_until_enter_is_pressed(self):
        with socket.socket() as tried:
            if tried.connect_ex(("127.0.0.1", 8465)) == 0:
                self.skipTest("something listens at the dashboard's port")
        ours, its = pty.openpty()
        environment = dict(os.environ, BUILD=os.environ["TUNDISH_BUILD"], PYTHON=sys.executable)
        demo = subprocess.Popen([DEMO, "--rows", "20000"], env=environment, stdin=its, stdout=its, stderr=its)
        os.close(its)
        said, page = b"", b""
        with contextlib.suppress(OSError):  # of a terminal that nobody has open
            while part := os.read(ours, 1 << 16):
                said += part
                if not page and b"Enter ends it" in said:
                    self.assertNotIn(b"stopping", said)
                    page = urllib.request.urlopen("http://127.0.0.1:8465/").read()
                    os.write(ours, b"\n")
        os.close(ours)
        self.assertEqual(demo.wait(), 0, said)
        self.assertIn(b"</html>", page)
        self.assertIn(b"demo: 3 epochs of 20000 rows", said)

    @unittest.skipUnless(has_pyarrow(), "pyarrow is not installed")
    def test_of_parquet_trains(self):
        self.demo("--parquet")


if __name__ == "__main__":
    unittest.main()
