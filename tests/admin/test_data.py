"""Data that are bad, or have become worse, are told; the same data whole are not."""

import re
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from rig_status import StatusRig  # noqa: E402
from rig import stop  # noqa: E402
from small_files import tfrecords  # noqa: E402

FOREVER = "{epochs: null}"
SKIPPING = "{epochs: null, on_error: skip}"
QUICK_STEP = ("--delay-ms", "20")


def lines(texts, then=()):
    quoted = ", ".join(f'"{text}"' for text in texts)
    return [f"from_tensor_slices: {{line: [{quoted}]}}", "repeat",
            "decode_csv: {record_defaults: [int64], column_names: [value]}", *then, "batch: 16"]


class Data(StatusRig):
    def test_a_corrupt_record_ends_the_stream_with_its_place(self):
        records = tfrecords([b"%099d" % i for i in range(1000)])
        bad = bytearray(records)
        bad[500 * (99 + 16) + 40] ^= 1
        (self.path / "part-0.tfrecord").write_bytes(records)
        (self.path / "part-1.tfrecord").write_bytes(bad)
        for part, told in ((0, {"level": "fine"}), (1, {"level": "failed", "cause": "error"})):
            stages = [f"tfrecord: {{filenames: part-{part}.tfrecord}}", "repeat", "batch: 16"]
            server = self.serve(self.pipeline(stages, deliver=FOREVER))
            trainer = self.train(*QUICK_STEP)
            verdict = self.tells(**told)
            if part == 1:
                self.assertIn("part-1.tfrecord", verdict["sentence"])
                self.assertIn("corrupted record at 575", verdict["sentence"])
                self.prints("failed", "stream 'train' on node ")
            trainer.kill()
            stop(server)

    def test_half_of_the_rows_that_are_bad(self):
        half = "50% of the rows of stream 'train' are bad and left out"
        for texts, sentence, told in (
                (["1", "2", "3", "4"], "", {"level": "fine"}),
                (["1", "x", "3", "y"], half, {"level": "warning", "cause": "data"})):
            server = self.serve(self.pipeline(lines(texts), deliver=SKIPPING))
            trainer = self.train(*QUICK_STEP)
            self.tells(sentence, **told)  # a look between a row and its batch may see 49 or 51%
            if sentence:
                self.assertIn("not a valid int64: ", self.prints("warning", "50% of the rows"))
            trainer.kill()
            stop(server)

    def test_words_that_the_vocabulary_no_longer_has(self):
        """The share of unknown words rises from 3 to 60 percent, and from 60 to 60."""
        (self.path / "words.txt").write_text("known\n")
        batches, rows = 600, 50
        for before, told in ((3, {"level": "warning", "cause": "data"}), (60, {"level": "fine"})):
            words = [f"{'unknown' if i % 100 < share else 'known'}\n"
                     for share in (before, 60) for i in range(batches * rows)]
            (self.path / "texts.txt").write_text("".join(words))
            stages = ["text_line: texts.txt", "string_lookup: {vocabulary: words.txt}",
                      f"batch: {rows}"]
            server = self.serve(self.pipeline(stages))
            # It dies, as far as the server knows: the next one goes on where it stood.
            self.lines(self.read("--batches", str(batches), "--no-close"))
            trainer = self.train("--delay-ms", "30")
            verdict = self.tells(**told)
            if before == 3:
                self.assertRegex(verdict["sentence"], r"(5\d|6\d)% of the values looked up in"
                                 r" vocabulary 'words.txt' are not in it, \d+% before")
            trainer.kill()
            stop(server)

    def test_a_column_that_has_become_nan(self):
        """A tenth of the numbers is NaN, then nine of ten; of texts and lists the lengths are shown."""
        batches, rows = 600, 50
        lines = [f"{'nan' if i % 10 < share else i},{'x' * (i % 7)}\n" for share in (1, 9) for i in range(batches * rows)]
        (self.path / "prices.csv").write_text("".join(lines))
        stages = ["text_line: prices.csv", 'decode_csv: {record_defaults: [float32, ""], column_names: [price, name]}',
                  f"batch: {rows}"]
        self.serve(self.pipeline(stages))
        # It reads for a while, so that some looks fall into it.
        self.lines(self.read("--batches", str(batches), "--delay-ms", "5", "--no-close"))
        trainer = self.train("--delay-ms", "30")
        verdict = self.tells(level="warning", cause="data")
        self.assertRegex(verdict["sentence"], r"(8\d|9\d)% of the values in column 'price' are NaN, \d+% before")
        columns = {one["column"]: one for one in self.look()["streams"][0]["columns"]}
        self.assertLess(0, columns["price"]["nan"])
        self.assertEqual(columns["price"]["infinite"], 0)
        self.assertEqual(columns["price"]["rows"], 0)
        self.assertEqual((columns["name"]["shortest"], columns["name"]["longest"], columns["name"]["nan"]), (0, 6, 0))
        self.assertEqual(columns["name"]["rows"], columns["name"]["values"])
        self.prints("warning", "price")
        trainer.kill()

    def test_bad_rows_are_logged_once_a_second_with_how_many_they_are(self):
        began = time.monotonic()
        server = self.serve(self.pipeline(lines(["1", "x"]), deliver=SKIPPING))
        self.train()
        while self.log().count("left out") < 4:
            time.sleep(0.1)
        stop(server)
        took_s = time.monotonic() - began
        told = re.findall(r"skip: stream train: (\d+) bad rows? left out, (\d+) so far", self.log())
        self.assertLess(len(told), took_s + 3)  # the first comes at once, the last at the end
        so_far = 0
        for fresh, all_of_them in told:
            so_far += int(fresh)
            self.assertEqual(so_far, int(all_of_them))
        self.assertGreater(so_far, 1000)


if __name__ == "__main__":
    unittest.main()
