"""A part of the server that is slow is named, and not named when the trainer is slower still."""

import os
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_status import SLOW_STEP, StatusRig  # noqa: E402

FOREVER = "{epochs: null}"
MORE_THREADS = (
    "Use more threads (serve --threads) if the node has idle cores; otherwise make that stage cheaper, "
    "or use helpers (tundish-launch --helpers) or more nodes."
)


def slices(**columns):
    """A source of four rows, all alike."""
    four = ", ".join(f"{name}: [{', '.join([value] * 4)}]" for name, value in columns.items())
    return [f"from_tensor_slices: {{{four}}}", "repeat"]


class Slow(StatusRig):
    """One thread makes batches for a trainer that does nothing else but take them; then for one
    whose steps take longer than any batch."""

    def check(self, stages, cause, culprit, sentence, before=(), **wanted):
        file = self.pipeline(stages, deliver=FOREVER)
        self.serve(file, "--threads", "1", before=before)
        trainer = self.train()
        verdict = self.tells(sentence, level="waiting", cause=cause, culprit=culprit, **wanted)
        self.assertIn("replica 0 on node ", verdict["sentence"])
        self.prints("waiting", sentence)
        self.instead(trainer, *SLOW_STEP)
        self.tells("the trainers are the bottleneck", level="fine", cause="trainer")
        return verdict

    def test_parsing(self):
        # So long that nothing beside its parsing counts.
        line = '"' + ",".join(["123456789"] * 20000) + '"'
        self.check([*slices(line=line), "decode_csv: {record_defaults: [int64],"
                    " column_names: [value], select_cols: [19999]}", "batch: 16"],
                   "stage", "decode_csv", "of its time: decode_csv takes ")

    def test_a_regular_expression(self):
        text = '"' + "abcabdab " * 500 + '"'
        self.check([*slices(value="1", text=text), 'regex_replace: {columns: text,'
                    ' pattern: "(a|b)+[cd](a|b)+[^a-f]", rewrite: "-"}', "batch: 16"],
                   "stage", "regex_replace", "of its time: regex_replace takes ")

    def test_lookups(self):
        (self.path / "words.txt").write_text("".join(f"word {i}\n" for i in range(100000)))
        words = "[" + ", ".join(f'"word {i * 7919 % 100000}"' for i in range(3000)) + "]"
        self.check([*slices(words=words), "string_lookup: {columns: words, vocabulary: words.txt}",
                    "batch: 16"],
                   "stage", "string_lookup", "of its time: string_lookup takes ")

    def test_reading_with_the_processor(self):
        """Of lines of 300 kB one number is wanted."""
        line = ",".join("123456789" for _ in range(30000))
        (self.path / "wide.csv").write_text("".join(f"{i},{line}\n" for i in range(20)))
        verdict = self.check(["csv: {filenames: wide.csv, record_defaults: [int64],"
                              " column_names: [value], select_cols: [0]}", "repeat", "batch: 16"],
                             "source", "csv", "of its time: reading with csv takes ", advice=MORE_THREADS)
        self.assertNotIn("storage", verdict["sentence"])

    def test_a_program(self):
        (self.path / "rows.py").write_text(
            "import os, struct, sys, time\n"
            "for i in range(10000000):\n"
            "    sys.stdout.buffer.write(struct.pack('<q', i))\n"
            "    sys.stdout.buffer.flush()\n"
            "    while os.path.exists('hangs'):\n"
            "        time.sleep(0.1)\n"
            "    time.sleep(0.1 * os.path.exists('slow'))\n")
        program = f"program: {{command: [sh, -c, cd {self.path}; exec {sys.executable} -B rows.py]," \
            " spec: {value: {dtype: int64, shape: []}}}"
        self.serve(self.pipeline([program, "batch: 64"]))
        self.train("--delay-ms", "20")
        self.tells(level="fine", cause="trainer")
        (self.path / "slow").touch()
        for state in ("slow", "hangs"):
            (self.path / state).touch()
            self.tells("of its time: a program writes its rows too slowly", level="waiting",
                       cause="source", culprit="program")
            (self.path / state).unlink()
            self.tells(level="fine", cause="trainer")


class Storage(StatusRig):
    """The same job, while its storage is quick, slow, and quick again."""

    def serve_files(self, count, rows, source):
        folder = self.path / "files"
        folder.mkdir()
        for i in range(count):
            (folder / f"part-{i}.csv").write_text("".join(f"{row:099}\n" for row in range(rows)))
        file = self.pipeline([*source, "repeat", "batch: 16"], deliver=FOREVER)
        preloaded = [f"LD_PRELOAD={os.environ['TUNDISH_SLOW_READS']}", f"SLOW_READS_IN={folder}",
                     f"SLOW_READS_MS={self.path}/ms"]
        self.serve(file, "--threads", "2", before=["env", *preloaded])

    def check(self, ms, **wanted):
        self.train("--delay-ms", "20")
        self.tells(level="fine", cause="trainer")
        (self.path / "ms").write_text(str(ms))
        verdict = self.tells(level="waiting", **wanted)
        self.assertIn("storage", verdict["advice"])
        (self.path / "ms").unlink()
        self.tells(level="fine", cause="trainer")

    def test_that_is_slow(self):
        self.serve_files(4, 2000, [
            "csv: {filenames: [files/part-0.csv, files/part-1.csv, files/part-2.csv,"
            " files/part-3.csv], record_defaults: [int64], column_names: [value]}"])
        self.check(200, cause="source", culprit="csv", sentence="the server waits for its storage")

    def test_that_does_not_answer(self):
        self.serve_files(1, 2000, [
            "csv: {filenames: files/part-0.csv, record_defaults: [int64], column_names: [value]}"])
        self.check(1000000, cause="source", culprit="csv",
                   sentence="one call of reading with csv has not ended")


if __name__ == "__main__":
    unittest.main()
