"""Reads and writes that are short and interrupted, as network file systems give them, change nothing."""

import gzip
import os
import shutil
import struct
import subprocess
import unittest

from rig import DEADLINE_S, TUNDISH, Rig

SHIM = os.environ["TUNDISH_SHORT_CALLS"]
ROWS = 3000
CSV = "csv: {filenames: rows.csv, record_defaults: [0, ''], column_names: [x, word]}"


def npy(values):
    head = f"{{'descr': '<i8', 'fortran_order': False, 'shape': ({len(values)},), }}"
    head = head.ljust(117) + "\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head.encode() + \
        struct.pack(f"<{len(values)}q", *values)


class ShortCalls(Rig):
    def setUp(self):
        super().setUp()
        rows = "".join(f"{i},word {i * 7919 % 997}\n" for i in range(ROWS))
        (self.path / "rows.csv").write_text(rows)
        # More than is compared whole where a place is resumed.
        (self.path / "long.txt").write_text("".join(f"{i:0100}\n" for i in range(4000)))
        (self.path / "words.txt").write_text("".join(f"word {i}\n" for i in range(997)))
        (self.path / "rows.npy").write_bytes(npy(range(ROWS)))
        with gzip.open(self.path / "rows.gz", "wb") as file:
            file.write(rows.encode())

    def run_tundish(self, *words, short=False):
        environment = dict(self.environment, LD_PRELOAD=SHIM) if short else self.environment
        done = subprocess.run([TUNDISH, *words], env=environment, capture_output=True, text=True,
                              stdin=subprocess.DEVNULL, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def forget(self):
        for name in ("cache", "kept", "analysis"):
            path = self.path / name
            shutil.rmtree(path) if path.is_dir() else path.unlink(missing_ok=True)

    def compare(self, *stages):
        file = self.pipeline([*stages, "shuffle: {buffer_size: 300, seed: 3}", "batch: 50"])
        words = ("peek", "--json", "--steps", "100000", "--epochs", "2", file)
        self.forget()
        expected = self.run_tundish(*words)
        self.assertEqual(self.run_tundish(*words, short=True), expected) # what was kept is read
        self.forget()
        self.assertEqual(self.run_tundish(*words, short=True), expected) # what is kept is written
        self.assertEqual(self.run_tundish(*words), expected)

    def test_sources(self):
        self.compare(CSV)
        self.compare("text_line: {filenames: long.txt}")
        self.compare("text_line: {filenames: rows.gz, compression_type: GZIP}")
        self.compare("from_tensor_slices: {x: {npy: rows.npy}}")
        self.compare("list_files: {file_pattern: '*.txt', shuffle: false}", "read_file: {columns: value}",
                     "string_length: {columns: value}")
        self.compare("program: {command: [head, -c, '4000', rows.csv], spec: {x: {dtype: uint8, "
                     "shape: []}}}")

    def test_what_is_kept(self):
        self.compare(CSV, "cache: kept")
        self.compare(CSV, "string_lookup: {columns: word, vocabulary: words.txt}")

    def test_what_is_learned(self):
        file = self.pipeline([CSV, "compute_and_apply_vocabulary: {columns: word}",
                              "scale_to_0_1: {columns: x}", "batch: 50"])
        words = ("peek", "--json", "--steps", "100000", file)
        self.run_tundish("analyze", file)
        expected = self.run_tundish(*words)
        self.assertEqual(self.run_tundish(*words, short=True), expected)
        self.forget()
        self.run_tundish("analyze", file, short=True)
        self.assertEqual(self.run_tundish(*words), expected)

    def test_a_kept_place_is_of_the_same_files(self):
        file = self.pipeline(["text_line: {filenames: long.txt}", "batch: 40"])
        state = self.path / "state"
        state.mkdir()
        shim = ["env", f"LD_PRELOAD={SHIM}"]
        before = None
        # Saved by one and taken by the other, in both ways. Ready: all of them say so.
        for starter in ((), shim, shim, ()):
            server = self.serve(file, "--state", str(state), before=starter)
            reader = self.read_paced()
            reader.take(5)
            reader.process.kill()
            self.wait_until(lambda: (state / "train.place").exists() and
                            (state / "train.place").read_bytes() != before)
            before = (state / "train.place").read_bytes()
            server.kill()
            server.wait()


if __name__ == "__main__":
    unittest.main()
