"""What a shell offers after a part of a command line."""

import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

SCRIPTS = Path(__file__).resolve().parents[2] / "scripts"
STAND_IN = """#!/bin/sh
case "$*" in
"help --commands") echo peek; echo plan; echo serve ;;
"help --list") echo expressions; echo shuffle ;;
"peek --help") echo "  --steps N  --stream NAME" ;;
*) echo "  --replicas N" ;;
esac
"""
BASH = """source {script}
compopt() {{ :; }}
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
if [ "$1" = tundish ]; then _tundish; else _tundish_program; fi
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
# What compadd is given is what begins right: it leaves out the rest.
ZSH = """compadd() {{ shift; print -rl -- ${{(M)@:#${{words[CURRENT]}}*}} }}
_files() {{ :; }}
words=("$@") CURRENT=$#
source {script}
"""
PIPELINE = "seed: 1\nstreams:\n  train:\n    dataset: [{range: 3}]\n  valid: {dataset: [{range: 3}]}\nremote: {}\n"


class Completion(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix="tundish-completion-")
        self.addCleanup(folder.cleanup)
        self.path = Path(folder.name)
        for name in ("tundish", "tundish-launch"):
            (self.path / name).write_text(STAND_IN)
            (self.path / name).chmod(0o755)
        (self.path / "clicks.yaml").write_text(PIPELINE)

    def offered(self, shell, script, *words):
        environment = {**os.environ, "PATH": f"{self.path}{os.pathsep}{os.environ['PATH']}"}
        command = [shell, "-c", script.format(script=SCRIPTS / f"tundish.{shell}-completion"), shell, *words]
        done = subprocess.run(command, cwd=self.path, env=environment, capture_output=True, text=True, check=True)
        return done.stdout.split()

    def check(self, shell, script):
        for words, expected in (
            (("tundish", "p"), ["peek", "plan"]),
            (("tundish", "help", "exp"), ["expressions"]),
            (("tundish", "peek", "--st"), ["--steps", "--stream"]),
            (("tundish", "peek", "clicks.yaml", "--stream", ""), ["train", "valid"]),
            (("tundish-launch", "clicks.yaml", "--stream", "v"), ["valid"]),
            (("tundish-launch", "--re"), ["--replicas"]),
            (("tundish", "peek", "cl"), []),
        ):
            with self.subTest(words=words):
                self.assertEqual(self.offered(shell, script, *words), expected)

    def test_bash(self):
        self.check("bash", BASH)

    def test_zsh(self):
        if shutil.which("zsh") is None:
            self.skipTest("needs zsh: it is not installed")
        self.check("zsh", ZSH)

    def test_fish_reads_its_file(self):
        if shutil.which("fish") is None:
            self.skipTest("needs fish: it is not installed")
        subprocess.run(["fish", "--no-execute", SCRIPTS / "tundish.fish"], check=True)


if __name__ == "__main__":
    unittest.main()
