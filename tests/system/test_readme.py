"""What the texts show is what works: pipeline files are planned, programs compiled and fed."""

import os
import re
import subprocess
import unittest
from pathlib import Path

from rig import DEADLINE_S, TUNDISH, Rig

ROOT = Path(__file__).resolve().parents[2]
LIBRARY = os.environ["TUNDISH_LIBRARY"]
EXAMPLES = Path(LIBRARY).parent / "examples"


def blocks(language, text="README.md"):
    return re.findall(rf"```{language}\n(.*?)```", (ROOT / text).read_text(), re.DOTALL)


class Shown(Rig):
    def compiled(self, source, name, libraries=()):
        """A program that a text shows, compiled as strictly as a user might."""
        (self.path / f"{name}.c").write_text(source)
        words = ["cc", "-Wall", "-Wextra", "-Werror", str(self.path / f"{name}.c"), "-o", str(self.path / name)]
        for path in (*libraries, Path(LIBRARY)):
            words += ["-L", str(path.parent), f"-Wl,-rpath,{path.parent}"]
            words.append(f"-l{path.name.partition('.')[0].removeprefix('lib')}")
        subprocess.run([*words, "-I", str(ROOT / "sdk/include")], check=True)
        return str(self.path / name)

    def said(self, program):
        """What it prints until it ends well."""
        process = self.start([program])
        out, _ = process.communicate(timeout=DEADLINE_S)
        self.assertEqual(process.returncode, 0, out)
        return out.splitlines()


class Readme(Shown):
    def planned(self, text):
        """What `tundish plan` says of a file."""
        file = self.path / "pipeline.yaml"
        file.write_text(text)
        out = subprocess.run([TUNDISH, "plan", str(file)], env=self.environment, capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout

    def test_its_pipeline_file_is_planned(self):
        photos = self.path / "photos" / "cats"
        photos.mkdir(parents=True)
        (photos / "1.jpg").touch()
        self.assertRegex(self.planned(blocks("yaml")[0]), r"image +float32\[-1,224,224,3\]")

    def test_the_pipeline_file_of_the_concepts_is_planned(self):
        (self.path / "vocab").mkdir()
        for column in range(1, 27):
            (self.path / "vocab" / f"C{column}.txt").write_text("a\nb\n")
        (self.path / "train-0.tfrecord").touch()
        self.assertIn("C26", self.planned(blocks("yaml", "docs/concepts.md")[0]))

    def test_its_trainer_compiles_and_trains(self):
        trainer = self.compiled(blocks("c")[0], "trainer")
        self.serve(self.pipeline(["range: 100", "batch: 10"]))
        self.assertEqual(self.start([trainer]).wait(timeout=DEADLINE_S), 0)

    def test_its_trainer_on_a_gpu_compiles_and_trains(self):
        build = Path(LIBRARY).parents[1]
        library, stand_in = build / "sdk" / "cuda" / "libtundish_cuda.so", build / "tests" / "cuda"
        if not library.exists():
            self.skipTest("this build has no libtundish_cuda: it needs nvcc or clang")
        trainer = self.compiled(blocks("c", "docs/gpu.md")[0], "trainer", [library])
        self.serve(self.pipeline(["range: 100", "batch: 10"]))
        process = self.start([trainer], LD_LIBRARY_PATH=str(stand_in))
        self.assertEqual(process.wait(timeout=DEADLINE_S), 0)
        without = subprocess.run([trainer], env={**self.environment, "LD_LIBRARY_PATH": str(stand_in),
                                                 "FAKE_CUDA_INIT": "100"},
                                 capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(without.returncode, 1)
        self.assertIn("there is no GPU", without.stderr)

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
        listed = re.findall(r"^\| `tundish (\w+)", (ROOT / "docs/commands.md").read_text(), re.MULTILINE)
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


class SdkReadme(Shown):
    """The programs of sdk/README.md, in the order in which they stand there."""

    PROGRAMS = ("trainer", "resumes", "in_turn", "columns")

    def setUp(self):
        super().setUp()
        shown = blocks("c", "sdk/README.md")
        self.assertEqual(len(shown), len(self.PROGRAMS))
        self.shown = dict(zip(self.PROGRAMS, shown))

    def test_the_trainer_reads_its_labels(self):
        self.serve(self.pipeline(["from_tensor_slices: {label: {values: [1, 2, 3]}}", "batch: 2"]))
        self.assertEqual(self.said(self.compiled(self.shown["trainer"], "trainer")),
                         ["step 0: 2 labels", "step 1: 1 labels"])

    def test_the_one_that_resumes_goes_on_after_what_it_saved(self):
        source = self.shown["resumes"].replace('"checkpoint', f'"{self.path}/checkpoint')
        program = self.compiled(source, "resumes")
        file = self.pipeline(["range: 13", "batch: 1"], deliver="{epochs: 2}")
        server = self.serve(file)
        self.assertEqual(self.said(program), ["26 steps, then END_OF_STREAM"])
        server.terminate()
        server.wait(timeout=DEADLINE_S)
        self.serve(file)
        self.assertEqual(self.said(program), ["1 steps, then END_OF_STREAM"])

    def test_one_thread_reads_two_replicas(self):
        self.serve(self.pipeline(["range: 10", "batch: 4"], "{replicas: 2}"))
        self.assertEqual(self.said(self.compiled(self.shown["in_turn"], "in_turn")), ["3 steps, then END"])

    def test_every_kind_of_column_is_printed(self):
        columns = ['text: {values: ["a b", "c", "", "d e f"]}', "number: {values: [5, 0, 7, 0], dtype: int64}"]
        self.serve(self.pipeline(["from_tensor_slices: {%s}" % ", ".join(columns),
                                  "string_split: {columns: text, output: words}", "ragged_batch: 2",
                                  "to_sparse: {columns: number}"]))
        self.assertEqual(self.said(self.compiled(self.shown["columns"], "columns")), [
            "text: a b c", "number: @0 5", "words: [ a b ] [ c ]",
            "text:  d e f", "number: @0 7", "words: [ ] [ d e f ]",
        ])  # fmt: skip


if __name__ == "__main__":
    unittest.main()
