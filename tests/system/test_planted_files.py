"""Folders that other users may write to, and files that they have put there: none is believed."""

import gzip
import os
import subprocess
import unittest

from rig import DEADLINE_S, TUNDISH, Rig

STRANGER = 12345
ROWS = "csv: {filenames: rows.csv, record_defaults: [0], column_names: [x]}"


@unittest.skipIf(os.geteuid() != 0, "only root can give files away")
class PlantedFiles(Rig):
    def setUp(self):
        super().setUp()
        self.open = self.path / "open"
        self.open.mkdir()
        self.open.chmod(0o1777)
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(64)))

    def run_tundish(self, *words):
        return subprocess.run(
            [TUNDISH, *words], env=self.environment, capture_output=True, text=True,
            timeout=DEADLINE_S)

    def gives_away(self, folder):
        for path in [folder, *folder.rglob("*")]:
            os.chown(path, STRANGER, STRANGER)

    def refuses(self, done, *words):
        self.assertNotEqual(done.returncode, 0, done.stdout)
        for word in words:
            self.assertIn(word, done.stdout + done.stderr)

    def test_a_cache_file(self):
        file = self.pipeline([ROWS, f"cache: {self.open}/kept", "batch: 8"])
        self.assertEqual(self.run_tundish("peek", file, "--epochs", "2").returncode, 0)
        kept = self.open / "kept"
        self.assertTrue(kept.exists())
        self.assertEqual(self.run_tundish("peek", file).returncode, 0)
        os.chown(kept, STRANGER, STRANGER)
        kept.chmod(0o644)
        self.refuses(self.run_tundish("peek", file), "kept", "another user")
        self.open.chmod(0o755)
        self.assertEqual(self.run_tundish("peek", file).returncode, 0)

    def test_a_kept_place(self):
        file = self.pipeline([ROWS, "batch: 8"], deliver="{epochs: 2}")
        server = self.serve(file, "--state", str(self.open))
        reader = self.read_paced()
        reader.take()
        self.wait_until(lambda: (self.open / "train.place").exists())
        server.kill()
        server.wait()
        reader.process.kill()
        os.chown(self.open / "train.place", STRANGER, STRANGER)
        self.refuses(self.run_tundish("serve", file, "--state", str(self.open)), "train.place",
                     str(STRANGER))

    def test_learned_statistics(self):
        file = self.pipeline([ROWS, "scale_to_0_1: {columns: x}", "batch: 8"])
        folder = self.open / "learned"
        self.assertEqual(self.run_tundish("analyze", file, "--analysis", str(folder)).returncode, 0)
        self.assertEqual(self.run_tundish("peek", file, "--analysis", str(folder)).returncode, 0)
        self.gives_away(folder)
        self.refuses(self.run_tundish("peek", file, "--analysis", str(folder)), "learned",
                     str(STRANGER))
        self.refuses(self.run_tundish("analyze", file, "--analysis", str(folder)), "learned",
                     str(STRANGER))
        self.open.chmod(0o755)
        self.assertEqual(self.run_tundish("peek", file, "--analysis", str(folder)).returncode, 0)


class UnfitCacheFolder(Rig):
    """It is refused before a trainer may come, by streams that need it; others do without."""

    def setUp(self):
        super().setUp()
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(64)))
        with gzip.open(self.path / "rows.gz", "wb") as file:
            file.write(b"1\n2\n3\n")

    def plan(self, mode, *stages):
        cache = self.path / "cache"
        cache.mkdir(exist_ok=True)
        cache.chmod(mode)
        file = self.pipeline([*stages, "batch: 2"])
        return file, subprocess.run(
            [TUNDISH, "plan", file], env=self.environment, capture_output=True, text=True,
            timeout=DEADLINE_S)

    def test_streams_that_keep_something_there(self):
        keeping = {
            "names": ["text_line: {filenames: rows.gz, compression_type: GZIP}"],
            "a pattern": ["list_files: {file_pattern: '*.gz', shuffle: false}",
                          "interleave: {dataset: [text_line: {compression_type: GZIP}], "
                          "cycle_length: 1}"],
            "a program": ["program: {command: [cat, /dev/null], spec: {x: {dtype: uint8, "
                          "shape: []}}}"],
        }
        for name, stages in keeping.items():
            with self.subTest(name):
                file, planned = self.plan(0o777, *stages)
                self.assertEqual(planned.returncode, 3)
                self.assertIn("cache folder", planned.stderr)
                served = subprocess.run(
                    [TUNDISH, "serve", file], env=self.environment, capture_output=True,
                    text=True, timeout=DEADLINE_S)
                self.assertNotEqual(served.returncode, 0)
                self.assertIn("go-w", served.stderr)
                self.assertNotIn("ready", served.stderr)
                self.assertEqual(self.plan(0o755, *stages)[1].returncode, 0)

    def test_streams_that_keep_nothing(self):
        self.assertEqual(self.plan(0o777, ROWS)[1].returncode, 0)


if __name__ == "__main__":
    unittest.main()
