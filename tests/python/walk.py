"""Walking a page of the manual: its files are written, its commands run, and what they print is kept.

Programs in Python run in forks of the test, for torch is slow to import.
"""

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

MANUAL = rig.REPOSITORY / "docs"


def files_of(text):
    """{name: text} of the blocks that begin with a comment that names a file."""
    blocks = re.findall(r"```(?:python|yaml)\n# ([\w.]+)\n(.*?)```", text, re.DOTALL)
    return dict(blocks)


def commands_of(text):
    return "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL)).splitlines()


class Walk(unittest.TestCase):
    def setUp(self):
        for name in ("numpy", "torch"):
            if importlib.util.find_spec(name) is None:
                self.skipTest(f"needs {name}: it is not installed")
        folder = tempfile.TemporaryDirectory(prefix="tundish-manual-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        os.environ["OMP_NUM_THREADS"] = "1"  # so that a fork finds no threads of torch
        importlib.import_module("torch._dynamo")  # which its optimizers want

    def write(self, files):
        for name, text in files.items():
            (self.path / name).write_text(text)

    def said(self, line, status=0):
        """What a command prints; it must end with this status."""
        program, *words = shlex.split(line, comments=True)
        out = self.path / "out"
        with open(out, "w", encoding="utf-8") as file:
            if program == "python":
                ended = self._fork(words, file)
            else:
                command = [rig.TUNDISH, *words] if program == "tundish" else [program, *words]
                environment = {**os.environ, "TUNDISH_CACHE": str(self.path)}
                ended = subprocess.run(command, cwd=self.path, env=environment, stdout=file, stderr=file,
                                       timeout=rig.DEADLINE_S).returncode  # fmt: skip
        self.assertEqual(ended, status, f"{line}\n{out.read_text()}")
        return out.read_text()

    def _fork(self, words, file):
        child = os.fork()
        if child == 0:
            status = 1
            try:
                os.dup2(file.fileno(), 1)
                os.dup2(file.fileno(), 2)
                os.chdir(self.path)
                os.environ.update(TUNDISH_BUILD=str(rig.BUILD), TUNDISH_CACHE=str(self.path))
                sys.argv = words
                sys.path.insert(0, str(self.path))
                runpy.run_path(words[0], run_name="__main__")
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                sys.stdout.flush()
                sys.stderr.flush()
                os._exit(status)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
