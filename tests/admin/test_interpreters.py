"""Python of the user's own: the figures of its interpreters, and that it is named when it is the limit."""

import json
import os
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
import schema  # noqa: E402
from rig_status import StatusRig  # noqa: E402

TUNDISH = os.environ["TUNDISH_PROGRAM"]
FUNCTIONS = """
import os, time
def slow(row):
    time.sleep(0.004)
    if row["value"] == 40 and not os.path.exists("died"):
        open("died", "w").close()
        os.kill(os.getpid(), 9)
    return {"y": row["value"]}
"""


class Interpreters(StatusRig):
    def setUp(self):
        super().setUp()
        numpy = ["-c", "import numpy"]
        pythons = [python for python in (sys.executable, "/usr/bin/python3")
                   if Path(python).exists() and subprocess.run([python, *numpy], stderr=subprocess.DEVNULL).returncode == 0]
        if not pythons:
            self.skipTest("needs a Python with numpy")
        package = str(Path(TUNDISH).parents[1] / "sdk" / "python")
        self.environment.update(TUNDISH_PYTHON=pythons[0], PYTHONPATH=package)
        (self.path / "own.py").write_text(FUNCTIONS)
        self.serve(self.pipeline(
            ["range: {stop: 1000}", "repeat", "python: {call: 'own:slow', workers: 1, output: {y: {dtype: int64}}}",
             "batch: 8"], deliver="{epochs: null}"))
        self.train()

    def test_their_work_is_counted(self):
        self.admin()
        report = self.wait_until(lambda report: report["interpreters"] and report["interpreters"][0]["rows"] > 100)
        one = report["interpreters"][0]
        self.assertEqual([one["call"], one["limit"], one["workers"], one["restarts"]], ["own:slow", 1, 1, 1])
        self.assertGreaterEqual(one["busy_seconds"], 0.004 * one["rows"])
        self.assertGreater(one["cpu_seconds"], 0)
        self.assertGreater(one["memory_bytes"], 1 << 20)
        description = json.loads(self.ask("/api/v1/openapi.json")[2])
        self.assertEqual(schema.misfits(report, description["components"]["schemas"]["Report"], description), [])
        self.assertIn('tundish_python_rows_total{', self.ask("/metrics")[2])

    def test_they_are_named_where_trainers_wait_for_them(self):
        self.tells("python own:slow takes ", level="waiting", cause="stage", culprit="own:slow")
        words = self.prints("waiting", "python own:slow takes ")
        self.assertRegex(" ".join(words.split()), r"python own:slow: \d+% of 1 worker, [\d.]+ ms a row, ")


if __name__ == "__main__":
    unittest.main()
