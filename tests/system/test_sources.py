"""Sources behind which there is more than a file of records: tars, folders, programs, caches."""

import io
import os
import subprocess
import tarfile
import unittest
from pathlib import Path

from rig import DEADLINE_S, TUNDISH, Rig, batches, place, stop

PYTHON_FOLDER = Path(TUNDISH).resolve().parents[1] / "sdk" / "python"  # of the build

TAR = [
    "webdataset: {filenames: [a.tar, b.tar.gz, c.tar, d.tar.xz], columns: [cls]}",
    "string_to_number: {columns: cls, out_type: int64}",
    "rename: {cls: value}",
    "select: value",
    "shuffle: {buffer_size: 50, seed: 3}",
    "batch: 8",
]

# Rows 0 .. 199, with what the helper can write beside them.
PROGRAM = """
import sys
from tundish.rows import RowWriter

spec = {"value": "int64", "name": ("string", []), "grid": ("float32", [None, 2])}
with RowWriter(spec, buffer_bytes=100) as rows:
    print("this must not be a row")
    for i in range(200):
        rows.write(value=i, name=f"row {i}", grid=[[j, i] for j in range(i % 3)])
"""
PROGRAM_STAGES = [
    "program: {command: [python3, rows.py], spec: {value: {dtype: int64}, name: {dtype: string}, "
    "grid: {dtype: float32, shape: [null, 2]}}}",
    "shuffle: {buffer_size: 30, seed: 3}",
]

COUNT = os.environ.get("TUNDISH_SOURCE_COUNT", "")


def write_tars(folder):
    """100 samples in four archives of different makes."""
    makes = [
        ("a.tar", "w", tarfile.PAX_FORMAT),
        ("b.tar.gz", "w:gz", tarfile.GNU_FORMAT),
        ("c.tar", "w", tarfile.USTAR_FORMAT),
        ("d.tar.xz", "w:xz", tarfile.PAX_FORMAT),
    ]
    for start, (name, mode, make) in enumerate(makes):
        with tarfile.open(folder / name, mode, format=make) as tar:
            for i in range(25 * start, 25 * start + 25):
                for extension, data in (("jpg", bytes(i * 100)), ("cls", b"%d" % i)):
                    member = tarfile.TarInfo(f"{i:05}.{extension}")
                    member.size = len(data)
                    member.mtime = 1.25
                    tar.addfile(member, io.BytesIO(data))


class Sources(Rig):
    def setUp(self):
        super().setUp()
        self.environment["PYTHONPATH"] = str(PYTHON_FOLDER)

    def values(self, slices):
        return [value for _, _, values in slices for value in values]

    def assert_resumes(self, file):
        """From a place in the middle, on another server, what an undisturbed run gives."""
        expected = self.peek(file)[0]
        server = self.serve(file)
        token = place(self.lines(self.read("--batches", "7")))
        stop(server)
        self.serve(file)
        self.assertEqual(batches(self.lines(self.read("--place", token))), expected[7:])

    def test_tars_are_served_and_resumed(self):
        write_tars(self.path)
        file = self.pipeline(TAR)
        self.assertEqual(sorted(self.values(self.peek(file)[0])), list(range(100)))
        self.assert_resumes(file)

    def test_tars_are_sharded_by_file_and_by_row(self):
        write_tars(self.path)
        for policy in ("FILE", "DATA"):
            file = self.pipeline(TAR, distribute=f"{{replicas: 1, auto_shard: {policy}}}")
            parts = [
                self.values(self.peek(file, "--worker", str(worker), "--num-workers", "2")[0])
                for worker in range(2)
            ]
            self.assertEqual(sorted(parts[0] + parts[1]), list(range(100)))
            if policy == "FILE":
                self.assertEqual({value // 25 for value in parts[1]}, {1, 3})

    def test_the_rows_of_a_program_are_served_and_resumed(self):
        (self.path / "rows.py").write_text(PROGRAM)
        file = self.pipeline([*PROGRAM_STAGES, "ragged_batch: 8"])
        self.assertEqual(sorted(self.values(self.peek(file)[0])), list(range(200)))
        self.assert_resumes(file)

    def write_rejecting_program(self):
        loop = "    for i in range(200):\n"
        reject = "        if i % 20 == 7:\n            rows.reject(f'sample {i} is torn')\n            continue\n"
        (self.path / "rows.py").write_text(PROGRAM.replace(loop, loop + reject))

    def test_a_rejected_row_of_a_program_is_left_out(self):
        self.write_rejecting_program()
        file = self.pipeline([*PROGRAM_STAGES, "ragged_batch: 8"], deliver="{epochs: 1, on_error: skip}")
        self.assertEqual(sorted(self.values(self.peek(file)[0])), [i for i in range(200) if i % 20 != 7])
        self.assert_resumes(file)

    def test_a_rejected_row_of_a_program_is_an_error_of_its_step(self):
        self.write_rejecting_program()
        self.serve(self.pipeline([PROGRAM_STAGES[0], "drop: grid", "batch: 1"]))
        lines = self.lines(self.read())
        self.assertEqual(len(batches(lines)), 7)
        self.assertIn("row 7: sample 7 is torn", lines[-1])

    def test_the_rows_of_a_program_are_sharded(self):
        (self.path / "rows.py").write_text(PROGRAM)
        file = self.pipeline([*PROGRAM_STAGES, "drop: grid", "batch: 8"])
        parts = [
            self.values(self.peek(file, "--worker", str(worker), "--num-workers", "2")[0])
            for worker in range(2)
        ]
        self.assertEqual(sorted(parts[0] + parts[1]), list(range(200)))

    def test_the_rows_of_an_arrow_stream_are_served_sharded_and_resumed(self):
        source = f"arrow_stream: {{library: '{COUNT}', arguments: 250, columns: [number]}}"
        stages = ["rename: {number: value}", "shuffle: {buffer_size: 30, seed: 3}", "batch: 8"]
        file = self.pipeline([source, *stages])
        self.assertEqual(sorted(self.values(self.peek(file)[0])), list(range(250)))
        plan = subprocess.run([TUNDISH, "plan", file], capture_output=True, check=True, text=True).stdout
        self.assertIn("1 of 2 columns of its stream are taken", plan)
        parts = [
            self.values(self.peek(file, "--worker", str(worker), "--num-workers", "2")[0])
            for worker in range(2)
        ]
        self.assertEqual(sorted(parts[0] + parts[1]), list(range(250)))
        self.assert_resumes(file)

    def test_what_is_wrong_with_an_arrow_stream_is_told(self):
        refusals = {
            f"library: '{COUNT}', arguments: many": "arguments is the number of rows",
            f"library: '{COUNT}', arguments: 1, columns: [size]": '"size"',
            f"library: '{COUNT}', arguments: 1, columns: {{name: {{default_value: 1}}}}": "default_value",
            "library: ./absent.so": "absent.so",
            f"library: '{os.environ['TUNDISH_OP_CLAMP']}'": "does not export tundish_source_open",
        }
        for parameters, words in refusals.items():
            file = self.pipeline([f"arrow_stream: {{{parameters}}}", "batch: 8"])
            ran = subprocess.run([TUNDISH, "plan", file], capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertNotEqual(ran.returncode, 0)
            self.assertIn(words, ran.stderr)

    def test_a_cache_in_a_file_is_served_and_resumed(self):
        (self.path / "rows.py").write_text(PROGRAM)
        stages = [*PROGRAM_STAGES, "cache: {filename: rows.cache}", "drop: grid", "batch: 8"]
        file = self.pipeline([*stages, "repeat: 2"])
        first = self.peek(file)[0]
        self.assertTrue((self.path / "rows.cache").exists())
        (self.path / "rows.py").write_text("raise SystemExit('not again')")
        self.assertEqual(self.peek(file)[0], first)
        self.assert_resumes(file)

    def test_two_servers_may_make_one_cache(self):
        (self.path / "rows.py").write_text(PROGRAM)
        stages = [*PROGRAM_STAGES, "cache: {filename: rows.cache}", "drop: grid", "batch: 8"]
        file = self.pipeline(stages)
        other = dict(self.environment, TUNDISH_SERVER=str(self.path / "other"))
        self.serve(file)
        self.environment, own = other, self.environment
        self.serve(file)
        self.environment = own
        readers = [self.read(), self.start([os.environ["TUNDISH_READER"]], **other)]
        given = [batches(self.lines(reader)) for reader in readers]
        self.assertEqual(given[0], given[1])
        self.assertEqual(sorted(self.values(given[0])), list(range(200)))
        self.wait_until(lambda: not any("cache." in name for name in os.listdir(self.path)))

    def hanging_program(self, before):
        """A pipeline whose program hangs, and the name that it and its child go by."""
        word = f"tundish-test-{os.getpid()}"
        script = f"{before}; (exec -a {word} sleep 1000) & exec -a {word} sleep 1001"
        stages = [
            f'program: {{command: [bash, -c, "{script}"], spec: {{value: {{dtype: int64}}}}}}',
            "batch: 1",
        ]
        return self.pipeline(stages), word

    def test_a_program_dies_with_its_server(self):
        file, word = self.hanging_program("printf abcdefgh")
        server = self.serve(file)
        self.wait_until(lambda: len(running(word)) == 2)
        server.kill()
        self.wait_until(lambda: running(word) == [])

    def test_a_server_whose_program_hangs_stops_when_told(self):
        file, word = self.hanging_program("true")
        server = self.start([os.environ["TUNDISH_PROGRAM"], "serve", file])
        self.wait_until(lambda: len(running(word)) == 2)
        server.terminate()
        self.assertEqual(server.wait(timeout=DEADLINE_S), 0)
        self.wait_until(lambda: running(word) == [])

    def test_a_program_that_fails_ends_its_stream_with_what_it_said(self):
        (self.path / "rows.py").write_text(PROGRAM.replace("range(200)", "[0, 1, 'no number']"))
        self.serve(self.pipeline([*PROGRAM_STAGES, "drop: grid", "batch: 2"]))
        self.assertIn("TypeError", self.lines(self.read())[-1])


def running(word):
    """Processes by that name."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(word.encode()):
                found.append(int(entry.name))
        except OSError:
            pass  # it is gone
    return found


if __name__ == "__main__":
    unittest.main()
