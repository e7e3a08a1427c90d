"""What README shows is what works: its pipeline file is planned, its trainer compiled and fed."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from rig import DEADLINE_S, TUNDISH, Rig

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = os.environ["TUNDISH_LIBRARY"]
EXAMPLES = Path(LIBRARY).parent / "examples"


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)


class Readme(Rig):
    def test_its_pipeline_file_is_planned(self):
        (self.path / "vocab").mkdir()
        for column in range(1, 27):
            (self.path / "vocab" / f"C{column}.txt").write_text("a\nb\n")
        (self.path / "train-0.tfrecord").touch()
        file = self.path / "pipeline.yaml"
        file.write_text(blocks("yaml")[0])
        out = subprocess.run(
            [TUNDISH, "plan", str(file)], env=self.environment, capture_output=True, text=True
        )
        self.assertEqual(out.returncode, 0, out.stderr)
        self.assertIn("C26", out.stdout)

    def test_its_trainer_compiles_and_trains(self):
        source = self.path / "trainer.c"
        source.write_text(blocks("c")[0])
        trainer = str(self.path / "trainer")
        folder = os.path.dirname(LIBRARY)
        subprocess.run(
            ["cc", str(source), "-I", str(ROOT / "sdk/include"), "-L", folder, "-ltundish"]
            + [f"-Wl,-rpath,{folder}", "-o", trainer],
            check=True,
        )
        self.serve(self.pipeline(["range: 100", "batch: 10"]))
        self.assertEqual(self.start([trainer]).wait(timeout=DEADLINE_S), 0)

    def test_an_example_without_a_server_says_how_to_start_one(self):
        trainer = subprocess.Popen([EXAMPLES / "train"], env=self.environment,
                                   stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(trainer.stderr.close)
        self.addCleanup(trainer.wait)
        self.addCleanup(trainer.kill)
        line = trainer.stderr.readline()
        self.assertRegex(line, "no server listens at .* tundish serve FILE.*; waiting")

    def test_what_is_not_there_is_another_status_than_what_is_wrong(self):
        wrong = self.path / "wrong.yaml"
        wrong.write_text("streams: {}\n")
        missing = str(self.path / "missing")
        for command in ("plan", "peek", "analyze", "index", "vocab", "serve"):
            out = subprocess.run([TUNDISH, command, missing], env=self.environment,
                                 capture_output=True, text=True)
            self.assertEqual(out.returncode, 3, command)
            self.assertIn(missing, out.stderr)
        for command in ("plan", "peek"):
            out = subprocess.run([TUNDISH, command, str(wrong)], env=self.environment,
                                 capture_output=True, text=True)
            self.assertEqual(out.returncode, 1, command)
        for command in ("status", "stop", "trace", "top"):
            out = subprocess.run([TUNDISH, command], env=self.environment, capture_output=True,
                                 text=True)
            self.assertEqual(out.returncode, 3, command)
            self.assertIn("no server", out.stderr)

    def test_its_commands_are_there(self):
        listed = re.findall(r"^\| `tundish (\w+)", (ROOT / "README.md").read_text(), re.MULTILINE)
        out = subprocess.run([TUNDISH, "help", "--commands"], capture_output=True, text=True)
        self.assertEqual(sorted(listed), sorted(out.stdout.split()))

    def test_a_command_is_explained_wherever_help_is_asked_for(self):
        for command in ("peek", "serve", "transform"):
            first = subprocess.run([TUNDISH, command, "--help"], capture_output=True, text=True)
            late = subprocess.run([TUNDISH, command, "file.yaml", "--help"], capture_output=True,
                                  text=True)
            self.assertEqual(late.returncode, 0, late.stderr)
            self.assertIn(f"tundish {command}", first.stdout)
            self.assertEqual(late.stdout, first.stdout)


if __name__ == "__main__":
    unittest.main()
