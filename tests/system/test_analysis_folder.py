"""The folder that is learned into: one at a time, nothing half done, nothing changed."""

import fcntl
import os
import signal
import subprocess
import time
import unittest

from rig import DEADLINE_S, TUNDISH, Rig

STAGES = [
    "csv: {filenames: rows.csv, record_defaults: [0.0, ''], column_names: [x, word]}",
    "compute_and_apply_vocabulary: {columns: word, vocab_filename: words}",
    "scale_to_0_1: {columns: x}",
    "batch: 8",
]


class Learner(Rig):
    def write_rows(self):
        (self.path / "rows.csv").write_text("".join(f"{i},w{i % 9}\n" for i in range(200)))

    def analyze(self, file):
        process = subprocess.Popen(
            [TUNDISH, "analyze", file], env=self.environment, stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        )
        self.processes.append(process)
        return process

    def said(self, process):
        text = process.stderr.read()
        process.wait(timeout=DEADLINE_S)
        process.stderr.close()
        return text

    def files(self):
        return sorted(path.name for path in (self.path / "analysis/pipeline.yaml").iterdir())

    def learn(self, file):
        process = self.analyze(file)
        said = self.said(process)
        self.assertEqual(process.returncode, 0, said)
        return said

    def refusal(self, file):
        done = subprocess.run(
            [TUNDISH, "peek", file], env=self.environment, capture_output=True, text=True
        )
        self.assertNotEqual(done.returncode, 0)
        return done.stderr


class AnalysisFolder(Learner):
    def test_an_interrupted_one_leaves_nothing_half_done(self):
        started = self.path / "started"
        endless = f"touch {started}; exec yes 'AAAAAAAA'"
        file = self.pipeline(
            [
                f'program: {{command: [sh, -c, "{endless}"], spec: {{x: {{dtype: uint8, shape: []}}}}}}',
                "scale_to_0_1: {columns: x}",
            ]
        )
        # Also where the tests are run by nohup.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            process = self.analyze(file)
            deadline = time.monotonic() + DEADLINE_S
            while not started.exists():
                self.assertLess(time.monotonic(), deadline)
                time.sleep(0.01)
            process.send_signal(number)
            said = self.said(process)
            self.assertEqual(process.returncode, -number, said)
            self.assertIn(f"interrupted by {number.name}", said)
            self.assertEqual(self.files(), [])
            self.assertIn("nothing was learned yet", self.refusal(file))
            started.unlink()

    def test_a_killed_ones_leftovers_go(self):
        self.write_rows()
        file = self.pipeline(STAGES)
        folder = self.path / "analysis/pipeline.yaml"
        folder.mkdir(parents=True)
        for name in ("words.123.building", "mine.building", "x.min.4x.building"):
            (folder / name).write_text("half")
        self.learn(file)
        self.assertEqual(
            self.files(),
            ["mine.building", "origin", "words", "x.max", "x.min", "x.min.4x.building"],
        )

    def test_a_second_one_waits(self):
        self.write_rows()
        file = self.pipeline(STAGES)
        folder = self.path / "analysis/pipeline.yaml"
        folder.mkdir(parents=True)
        held = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(held, fcntl.LOCK_EX)
        process = self.analyze(file)
        self.assertIn("waiting for another process", process.stderr.readline())
        self.assertEqual(self.files(), [])
        os.close(held)
        self.said(process)
        self.assertEqual(process.returncode, 0)
        self.assertIn("origin", self.files())

    def test_refuses_what_is_not_as_it_was_written(self):
        self.write_rows()
        file = self.pipeline(STAGES)
        self.learn(file)
        for name, change in {
            "words": lambda text: text[: text.index("\n", len(text) // 2) + 1],
            "x.max": lambda text: text.replace("199", "198"),
        }.items():
            path = self.path / "analysis/pipeline.yaml" / name
            good = path.read_text()
            path.write_text(change(good))
            self.assertNotEqual(path.read_text(), good)
            self.assertRegex(self.refusal(file), f"{name} is not as it was learned; run .tundish analyze")
            path.unlink()
            self.assertRegex(self.refusal(file), f"{name}: No such file .*run .tundish analyze")
            path.write_text(good)
        self.assertIn("pass 1: 200 rows", self.learn(file))


class SeveralFiles(Learner):
    """Pipeline files of one folder, which learn from data of their own."""

    def write(self, name, rows):
        stages = [stage.replace("rows.csv", f"{name}.csv") for stage in STAGES]
        (self.path / f"{name}.csv").write_text(rows)
        file = self.path / f"{name}.yaml"
        os.rename(self.pipeline(stages), file)
        return str(file)

    def both(self):
        return [self.write(name, "".join(f"{i},{name}{i % 9}\n" for i in range(100)))
                for name in ("a", "b")]

    def run_tundish(self, *words):
        return subprocess.run([TUNDISH, *words], env=self.environment, capture_output=True,
                              text=True, stdin=subprocess.DEVNULL, timeout=DEADLINE_S)

    def transform(self, file):
        return self.run_tundish("transform", file)

    def test_each_keeps_its_own(self):
        one, other = self.both()
        self.learn(one)
        self.learn(other)
        for file in (one, other):
            self.assertEqual(self.run_tundish("peek", file).returncode, 0)
            self.assertEqual(self.transform(file).returncode, 0)

    def test_what_lay_in_the_shared_folder_is_found(self):
        one, other = self.both()
        shared = str(self.path / "analysis")
        self.assertEqual(self.run_tundish("analyze", one, "--analysis", shared).returncode, 0)
        self.assertEqual(self.run_tundish("peek", one).returncode, 0)
        self.assertEqual(self.transform(one).returncode, 0)
        self.assertIn("nothing was learned yet", self.refusal(other))
        refused = self.transform(other)
        self.assertNotEqual(refused.returncode, 0)
        self.assertIn("not named here", refused.stderr)

    def test_the_only_file_takes_it_wherever_the_data_were(self):
        file = self.write("a", "".join(f"{i},a{i % 9}\n" for i in range(100)))
        shared = str(self.path / "analysis")
        self.assertEqual(self.run_tundish("analyze", file, "--analysis", shared).returncode, 0)
        text = (self.path / "a.yaml").read_text()
        (self.path / "a.yaml").write_text(text.replace("a.csv", "elsewhere/a.csv"))
        self.assertEqual(self.transform(file).returncode, 0)

    def test_rows_that_were_cached_with_others_are_refused(self):
        source = "{csv: {filenames: %s.csv, record_defaults: [0.0], column_names: [x]}}"
        file = self.path / "c.yaml"
        file.write_text(
            f"learn_from: known\nstreams:\n"
            f"  train: {{dataset: [{source % 'rows'}, {{scale_to_0_1: {{columns: x}}}}, {{cache: made}}, {{batch: 2}}]}}\n"
            f"  known: {{dataset: [{source % 'known'}, {{scale_to_0_1: {{columns: x}}}}, {{batch: 2}}]}}\n"
        )
        (self.path / "rows.csv").write_text("0\n1\n")
        for most, words in (1, "x"), (2, "another pipeline.* statistics.*; remove the file"):
            (self.path / "known.csv").write_text(f"0\n{most}\n")
            self.learn(str(file))
            for _ in range(2):
                peeked = self.run_tundish("peek", str(file), "--stream", "train")
                self.assertRegex(peeked.stderr + peeked.stdout, words)
                self.assertEqual(peeked.returncode != 0, most == 2, peeked.stderr)

    def test_results_of_its_own_come_first(self):
        file, _ = self.both()
        shared = str(self.path / "analysis")
        self.assertEqual(self.run_tundish("analyze", file, "--analysis", shared).returncode, 0)
        (self.path / "a.csv").write_text("1,new\n")
        self.assertIn("a.csv had", self.refusal(file))
        self.learn(file)
        self.assertEqual(self.run_tundish("peek", file).returncode, 0)


if __name__ == "__main__":
    unittest.main()
