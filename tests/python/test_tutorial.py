"""docs/tutorial.md, walked literally: its files, its commands, and that the resumed run is the same one."""

import importlib.util
import os
import re
import runpy
import shlex
import subprocess
import sys
import tempfile
import traceback
import unittest
from pathlib import Path

import rig

TEXT = (rig.REPOSITORY / "docs" / "tutorial.md").read_text()
FILES = {"make_photos.py": "python", "photos.yaml": "yaml", "train.py": "python"}


class Tutorial(unittest.TestCase):
    def setUp(self):
        if importlib.util.find_spec("torch") is None:
            self.skipTest("needs torch: it is not installed")
        folder = tempfile.TemporaryDirectory(prefix="tundish-tutorial-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        shown = {kind: re.findall(rf"```{kind}\n(.*?)```", TEXT, re.DOTALL) for kind in ("python", "yaml")}
        for name, kind in FILES.items():
            (self.path / name).write_text(shown[kind].pop(0))
        self.assertEqual([*shown.values()], [[], []])
        os.environ["OMP_NUM_THREADS"] = "1"  # so that a fork finds no threads of torch
        importlib.import_module("torch._dynamo")  # which its optimizers want

    def said(self, line):
        """What a command prints. Programs in Python run in forks: torch is slow to import."""
        program, *words = shlex.split(line, comments=True)
        out = self.path / "out"
        with open(out, "w", encoding="utf-8") as file:
            if program == "python":
                status = self.run_fork(words, file)
            else:
                command = [rig.TUNDISH, *words] if program == "tundish" else [program, *words]
                environment = {**os.environ, "TUNDISH_CACHE": str(self.path)}
                status = subprocess.run(command, cwd=self.path, env=environment, stdout=file, stderr=file,
                                        timeout=rig.DEADLINE_S).returncode  # fmt: skip
        # Only the run that dies as it is told to may end badly.
        self.assertEqual(status, -9 if words == ["train.py", "13"] else 0, f"{line}\n{out.read_text()}")
        return out.read_text()

    def run_fork(self, words, file):
        child = os.fork()
        if child == 0:
            os.dup2(file.fileno(), 1)
            os.dup2(file.fileno(), 2)
            os.chdir(self.path)
            os.environ.update(TUNDISH_BUILD=str(rig.BUILD), TUNDISH_CACHE=str(self.path))
            sys.argv = words
            status = 1
            try:
                runpy.run_path(words[0], run_name="__main__")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def test_it_leads_where_it_says(self):
        commands = "".join(re.findall(r"```sh\n(.*?)```", TEXT, re.DOTALL)).splitlines()
        said = [self.said(command) for command in commands]
        by = dict(zip(commands, said))
        plan, peek = (next(out for line, out in by.items() if line.startswith(f"tundish {word}"))
                      for word in ("plan", "peek"))  # fmt: skip
        self.assertRegex(plan, r"image +float32\[-1,3,32,32\]\n +label +int64\[-1\]")
        self.assertIn("image            float32[16,3,32,32]", peek)
        first, killed, resumed = (out.splitlines() for line, out in zip(commands, said) if "train.py" in line)
        self.assertEqual(len(first), 31)
        self.assertEqual(first[-1], "right in 100% of the validation pictures")
        self.assertTrue(resumed[0].startswith("step 14: "))
        self.assertEqual(killed + resumed, first)
        self.assertEqual(len(re.findall(r"photos/(?:circle|square)/\d+\.png", said[-1])), 16)


if __name__ == "__main__":
    unittest.main()
