"""The package's types, as mypy --strict sees them from a program."""

import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import rig

PROGRAM = """
import asyncio
from collections.abc import Mapping
from typing import Any

import tundish

def train(batch: Mapping[str, Any]) -> int:
    return len(batch["x"])

async def later(reader: tundish.Reader) -> list[int]:
    return [batch.step async for batch in reader]

with tundish.open("train", replica=0, on_hold="error", timeout=5) as reader:
    for batch in reader:
        steps: int = train(batch) + batch.epoch
        raw: tundish.Array = batch.array("x")
        shape: tuple[int, ...] = raw.shape
        view: memoryview = memoryview(raw)
    polled: tundish.Batch | None = reader.poll()
    place: str = reader.place
    state: dict[str, Any] = reader.state_dict()
    reader.load_state_dict(state)
    widths: dict[str, tuple[int | None, ...]] = {n: c.shape for n, c in reader.spec.items()}
    slots: int = reader.info.slot_count
    asyncio.run(later(reader))
try:
    reader.next(timeout=1.5)
except tundish.Timeout as error:
    said: str = error.status + error.remedy
"""
WRONG = """
import tundish

reader = tundish.open(3)
reader.info.slots
batch: int = reader.next()
"""


@unittest.skipUnless(importlib.util.find_spec("mypy"), "needs mypy")
class Types(unittest.TestCase):
    def check(self, program):
        with tempfile.TemporaryDirectory() as folder:
            (Path(folder) / "program.py").write_text(program)
            command = [sys.executable, "-m", "mypy", "--strict", "--follow-imports=silent"]
            command += ["--cache-dir", f"{folder}/cache", "program.py"]
            environment = dict(os.environ, MYPYPATH=rig.PACKAGE)
            environment.pop("PYTHONPATH", None)
            return subprocess.run(
                command, cwd=folder, env=environment, capture_output=True, text=True
            ).stdout

    def test_a_program_that_uses_the_package_passes(self):
        self.assertIn("Success", self.check(PROGRAM))

    def test_a_wrong_one_does_not(self):
        self.assertIn("Found 3 errors", self.check(WRONG))


class Help(unittest.TestCase):
    def test_the_page_of_the_package_names_all_that_it_has(self):
        import tundish

        page = tundish.__doc__
        for name in ("open", "Reader", "Batch", *tundish._LAZY, *tundish._MODULES):
            self.assertRegex(page, rf"(?m)\b{name}\b")


if __name__ == "__main__":
    unittest.main()
