"""Interpreters that are forks of one that has imported the module (`warm: fork`)."""

import contextlib
import os
import random
import signal
import sys
import tempfile
import threading
import time
import unittest
from pathlib import Path
from unittest import mock

import rig
import test_python_stage as staged
from test_python_stage import FUNCTIONS, stage

import tundish

MADE_HERE = """
import os, time
import numpy as np
here = os.getpid()
class Large:
    def __init__(self):
        self.values, self.by = np.arange(2000), os.getpid()
    def __len__(self):
        return len(self.values)
    def __getitem__(self, index):
        time.sleep(0.001)
        return {"value": int(self.values[index]), "imported": here, "made": self.by, "process": os.getpid()}
"""
LARGE = 'python_dataset: {make: "large:Large", warm: fork, workers: 2, spec: {value: {dtype: int64}, imported: {dtype: int64}, made: {dtype: int64}, process: {dtype: int64}}}'  # fmt: skip


def all_of(server):
    """The numbers of all processes below one."""
    found = [server]
    parents = staged.processes()
    for each in found:
        found += [pid for pid, parent, _ in parents if parent == each]
    return found[1:]


@unittest.skipUnless(staged.numpy, "needs numpy")
class Warm(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))
        names = {"TUNDISH_PYTHON": sys.executable, "TUNDISH_BUILD": str(rig.BUILD), "PYTHONPATH": rig.PACKAGE}
        self.enterContext(mock.patch.dict(os.environ, names))

    def found(self, *stages, **parameters):
        """All values, or the sentence of the error."""
        (self.folder / "pipeline.yaml").write_text(rig.pipeline(*stages, **parameters))
        (self.folder / "functions.py").write_text(FUNCTIONS)
        (self.folder / "died").unlink(missing_ok=True)
        try:
            batches = tundish.peek(self.folder / "pipeline.yaml", 100)
            return repr([[list(column) for _, column in batch.items()] for batch in batches])
        except tundish.Error as error:
            return str(error)

    def test_values_faults_and_bad_rows_are_those_of_interpreters_that_are_started(self):
        skip = "{epochs: 1, on_error: skip}"
        for call, options, deliver in (
            ("draw", {"output": "{x: {dtype: float64, shape: [2, 3]}, careless: {dtype: float64}}", "seed": 3}, "{epochs: 1}"),
            ("three_is_bad", {}, "{epochs: 1}"),
            ("dies_once", {}, "{epochs: 1}"),
            ("dies", {}, "{epochs: 1}"),
            ("dies", {}, skip),
            ("hangs", {"timeout": "300ms"}, skip),
            ("hangs", {"timeout": "300ms"}, "{epochs: 1}"),
        ):  # fmt: skip
            started, forked = (
                self.found("range: {stop: 6}", stage(call, warm=warm, **options), "batch: 3", deliver=deliver)
                for warm in ("start", "fork")
            )
            self.assertEqual(forked, started, (call, deliver))

    def test_the_object_is_made_once_by_who_makes_no_item(self):
        text = rig.pipeline(LARGE, "batch: 10")
        with rig.serve(text, files={"large.py": MADE_HERE.encode()}) as server, server.open("train") as reader:
            rows = [[each.tolist() for each in batch.values()] for batch in reader]
        values, imported, made, process = ([n for row in rows for n in row[k]] for k in range(4))
        self.assertEqual(values, list(range(2000)))
        self.assertEqual((len(set(imported)), set(made)), (1, set(imported)))
        self.assertFalse(set(imported) & set(process))

    def test_no_row_is_lost_when_forks_and_the_forked_are_killed(self):
        text = rig.pipeline("range: {stop: 1500}", stage("slow", workers=2, warm="fork"), "batch: 10")
        with rig.serve(text, files={"functions.py": FUNCTIONS.encode()}) as server:
            done, killed, draw = threading.Event(), [], random.Random(1)

            def kill():
                while not done.wait(0.2):
                    pids = [pid for pid in all_of(server.process.pid) if is_python(pid)]
                    with contextlib.suppress(ProcessLookupError, IndexError):
                        killed.append(draw.choice(pids))
                        os.kill(killed[-1], signal.SIGKILL)

            killer = threading.Thread(target=kill)
            with server.open("train") as reader:
                killer.start()
                found = []
                try:
                    for batch in reader:
                        found += batch["y"].tolist()
                except tundish.DataError as error:
                    self.assertIn("was ended by signal 9", str(error))  # twice at one row
                finally:
                    done.set()
                    killer.join()
            self.assertEqual(found, list(range(len(found))))
            self.assertTrue(killed)

    def test_none_outlives_a_server(self):
        for end in (signal.SIGKILL, signal.SIGTERM):
            text = rig.pipeline("range: {stop: 100000}", stage("slow", workers=2, warm="fork"), "batch: 10")
            with rig.serve(text, files={"functions.py": FUNCTIONS.encode()}) as server:
                with server.open("train") as reader:
                    for _ in range(5):
                        reader.next()
                ours = all_of(server.process.pid)
                self.assertGreaterEqual(sum(map(is_python, ours)), 2)
                server.process.send_signal(end)
                until = time.monotonic() + rig.DEADLINE_S
                while any(map(staged.is_there, ours)):
                    self.assertLess(time.monotonic(), until, "an interpreter is left")
                    time.sleep(0.01)

    def test_a_module_that_starts_threads_is_not_forked(self):
        text = "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n"
        (self.folder / "threads.py").write_text(text + "def f(row): return {'y': row['value']}\n")
        said = self.found("range: {stop: 2}", "python: {call: 'threads:f', warm: fork, output: {y: {dtype: int64}}}")
        self.assertIn("threads:f has started 1 threads, which forks would not have: write warm: start", said)


def is_python(pid):
    with contextlib.suppress(OSError):
        return b"tundish import worker" in Path(f"/proc/{pid}/cmdline").read_bytes()
    return False


if __name__ == "__main__":
    unittest.main()
