"""on_error: skip and files that are damaged: each ends where its rows end, and the next one goes on."""

import gzip
import json
import random
import subprocess
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from rig import TUNDISH, Rig, batches, place, stop  # noqa: E402
from small_files import tar, tfrecords  # noqa: E402

SKIP = "{on_error: skip, epochs: 1}"
NUMBER = "string_to_number: {columns: value, out_type: int64}"
WHOLE = [list(range(40)), list(range(40, 80)), list(range(80, 120))]


def texts(numbers):
    return [b"%d" % number for number in numbers]


class DamagedFiles(Rig):
    def write(self, name, data, cut=None):
        (self.path / name).write_bytes(data[:cut])

    def write_tfrecords(self):
        """Three files; the second one ends within its record number 25."""
        for name, numbers in zip("abc", WHOLE):
            self.write(f"{name}.tfrecord", tfrecords(texts(numbers)), -5 - 14 * 18 if name == "b" else None)
        return WHOLE[0] + WHOLE[1][:25] + WHOLE[2]

    def rows(self, stages, *options, deliver=SKIP, distribute="{replicas: 1}"):
        """All values in order, and what was said."""
        file = self.pipeline(stages, deliver=deliver, distribute=distribute)
        done = subprocess.run([TUNDISH, "peek", file, "--json", *options], env=self.environment,
                              capture_output=True, text=True)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        values = [v for line in lines for v in line.get("columns", {}).get("value", {}).get("values", [])]
        ends = {str(line["end"]) for line in lines if "end" in line}
        return values, ends, done.stderr

    def assert_rows(self, stages, expected, *options, said="b.tfrecord: truncated record at", **more):
        values, ends, log = self.rows(stages, *options, **more)
        self.assertEqual(values, expected, log)
        self.assertEqual(ends, {"end"})
        self.assertIn(said, log)
        self.assertIn(" 1 so far", log)

    def said_of(self, *stages):
        done = subprocess.run([TUNDISH, "peek", self.pipeline(stages)], env=self.environment,
                              capture_output=True, text=True)
        self.assertEqual(done.returncode, 1)
        return done.stdout

    def test_a_bad_row_is_named_by_file_and_line(self):
        """Whether its stage stands before the batch or after it, and whatever its column is called."""
        self.write("rows.txt", b"1\n2\n\n\nx\n")
        for batches in (["batch: 9"], ["batch: 2", "rebatch: 9"], ["batch: 3", "unbatch", "batch: 9"]):
            stages = ["text_line: rows.txt", 'filter: "value != \'\'"', *batches]
            said = self.said_of(*stages, NUMBER)
            self.assertIn("rows.txt, line 5: ", said)
            self.assertIn(f"(string_to_number, line {5 + len(stages)} of", said)
            self.assertIn("rows.txt, line 5: ", self.said_of(*stages[:2], NUMBER, *batches))
        self.write("rows.csv", b'a\n"1\n1"\n2\n1,2\n')
        csv = "csv: {filenames: rows.csv, header: true, column_names: [value], record_defaults: "
        self.assertIn("Field 0 ('value') in rows.csv, line 2 is not a valid int64: 1\n1 (csv, line 5 of",
                      self.said_of(csv + "[int64]}", "batch: 9"))
        self.assertIn("in rows.csv, line 5: name a column for each field",
                      self.said_of(csv + "[string]}", "batch: 9"))

    def test_a_file_that_is_no_image_is_named(self):
        for name in ("one.png", "two.png"):
            self.write(name, name.encode())
        self.write("names.txt", b"one.png,two.png\n")
        decode = "{channels: 3, expand_animations: false, columns: "
        stages = ["text_line: names.txt",
                  "decode_csv: {record_defaults: [string, string], column_names: [value, other]}",
                  "read_file: {columns: [value, other], output: [first, second]}"]
        for column, name in (("first", "one.png"), ("second", "two.png")):
            said = self.said_of(*stages, f"decode_image: {decode}{column}}}", "batch: 1")
            self.assertIn(f"names.txt, line 1: {name}: decode_image: the bytes are not an image", said)
        said = self.said_of(*stages[:2], "batch: 1", "read_file: {columns: other}",
                            "decode_base64: {columns: other}")
        self.assertIn("names.txt, line 1: two.png: decode_base64", said)

    def test_what_is_misspelled_is_answered_with_the_nearest_word(self):
        file = self.pipeline(["parquet: {filenames: 'part-*.parquet'}", "batch: 1"])
        for command, said in (
            (["sreve"], "unknown command 'sreve'; did you mean serve?"),
            (["zzzzzz"], "unknown command 'zzzzzz'; see 'tundish help'"),
            (["serve", "--steam", "train"], "did you mean --stream?"),
            (["plan", file], "only list_files takes patterns"),
        ):
            done = subprocess.run([TUNDISH, *command], env=self.environment, capture_output=True, text=True)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)

    def test_a_dead_server_has_no_trace(self):
        server = self.serve(self.pipeline(["range: 8", "batch: 2"]))
        server.kill()
        server.wait()
        done = subprocess.run([TUNDISH, "trace", "--seconds", "1"], env=self.environment,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (3, ""))
        self.assertIn("the server is gone", done.stderr)

    def test_a_vocabulary_that_is_missing_is_named_with_its_folder(self):
        (self.path / "vocabularies").mkdir()
        self.write("vocabularies/city.txt", b"Rome\n")
        file = self.pipeline(["from_tensor_slices: {value: [a]}",
                              "string_lookup: {vocabulary: vocabularies/cty.txt}", "batch: 1"])
        done = subprocess.run([TUNDISH, "plan", file], env=self.environment, capture_output=True, text=True)
        self.assertIn(f"cty.txt does not exist (in {self.path}/vocabularies; the nearest name there is "
                      "'city.txt')", done.stderr)

    def test_the_next_file_goes_on(self):
        expected = self.write_tfrecords()
        names = "tfrecord: [a.tfrecord, b.tfrecord, c.tfrecord]"
        self.assert_rows([names, NUMBER, "batch: 7"], expected)
        self.assert_rows([names, NUMBER, "repeat: 2", "batch: 7"], expected * 2)
        self.assert_rows([names, NUMBER, "batch: 7"], expected * 3, "--epochs", "3",
                         deliver="{on_error: skip, epochs: 3}")
        values, _, _ = self.rows([names, NUMBER, "shuffle: 30", "batch: 7"])
        self.assertEqual(sorted(values), expected)
        self.assert_rows([names, NUMBER, "skip: 50", "take: 20", "batch: 7"], expected[50:70])

    def test_stop_still_stops(self):
        self.write_tfrecords()
        values, ends, _ = self.rows(["tfrecord: [b.tfrecord, c.tfrecord]", NUMBER, "batch: 5"],
                                    deliver="{epochs: 1}")
        self.assertEqual(values, WHOLE[1][:25])
        self.assertIn("truncated record", ends.pop())

    def test_the_limit_counts_it(self):
        self.write_tfrecords()
        stages = ["tfrecord: [b.tfrecord, c.tfrecord]", NUMBER, "batch: 5"]
        _, ends, _ = self.rows(stages, deliver="{on_error: 'skip:0', epochs: 1}")
        self.assertIn("more than on_error: skip:0 allows", ends.pop())
        _, ends, _ = self.rows(stages, deliver="{on_error: 'skip:1', epochs: 1}")
        self.assertEqual(ends, {"end"})

    def test_interleaved_and_sharded(self):
        expected = self.write_tfrecords()
        stages = [
            "list_files: {file_pattern: '*.tfrecord', shuffle: false}",
            "interleave: {dataset: [tfrecord], cycle_length: 2, block_length: 3}",
            NUMBER,
            "batch: 1",
        ]
        values, ends, _ = self.rows(stages)
        self.assertEqual((sorted(values), ends), (expected, {"end"}))
        for policy in ("FILE", "DATA"):
            values, ends, _ = self.rows(stages, "--num-workers", "2",
                                        distribute=f"{{auto_shard: {policy}, replicas: 1}}")
            self.assertEqual((sorted(values), ends), (expected, {"end"}))

    def test_a_place_in_or_after_it_is_taken_up(self):
        expected = self.write_tfrecords()
        file = self.pipeline(["tfrecord: [a.tfrecord, b.tfrecord, c.tfrecord]", NUMBER, "batch: 5"],
                             deliver=SKIP)
        for steps in (10, 13, 16):  # before its end, at it, after it
            server = self.serve(file)
            lines = self.lines(self.read("--batches", str(steps)))
            stop(server)
            server = self.serve(file)
            rest = batches(self.lines(self.read("--place", place(lines))))
            self.assertEqual([v for _, _, values in rest for v in values], expected[5 * steps:])
            stop(server)
        self.assertIn("1 so far; the last: b.tfrecord: truncated record", self.log())

    def test_packed_text(self):
        noise = random.Random(1)
        rows = [noise.randrange(10**15) for _ in range(20000)]
        self.write("b.gz", gzip.compress(b"".join(b"%d\n" % row for row in rows)), 60000)
        self.write("c.gz", gzip.compress(b"7\n8\n"))
        stages = ["text_line: {filenames: [b.gz, c.gz], compression_type: GZIP}", NUMBER, "batch: 100"]
        values, ends, log = self.rows(stages)
        self.assertEqual((ends, values[-2:]), ({"end"}, [7, 8]))
        self.assertGreater(len(values), 1000)
        self.assertEqual(values[:-3], rows[: len(values) - 3])
        self.assertIn("b.gz: ", log)

    def test_archives(self):
        samples = [[(f"{n}.txt", b"%d" % n) for n in numbers] for numbers in WHOLE[:2]]
        self.write("b.tar", tar(samples[0]), 512 * (2 * 30 + 1) + 1)
        self.write("c.tar", tar(samples[1]))
        stages = ["webdataset: {filenames: [b.tar, c.tar], columns: {value: txt}}",
                  "string_to_number: {columns: value, out_type: int64}", "batch: 7"]
        values, ends, log = self.rows(stages)
        self.assertEqual((values, ends), (WHOLE[0][:30] + WHOLE[1], {"end"}))
        self.assertIn("b.tar", log)

    def test_records_of_one_length(self):
        self.write("b.bin", b"01020")
        self.write("c.bin", b"0304")
        stages = ["fixed_length_record: {filenames: [b.bin, c.bin], record_bytes: 2}", NUMBER, "batch: 7"]
        values, ends, log = self.rows(stages)
        self.assertEqual((values, ends), ([3, 4], {"end"}))
        self.assertIn("b.bin", log)

    def test_a_missing_file_still_ends_the_stream(self):
        self.write_tfrecords()
        _, ends, _ = self.rows(["tfrecord: [gone, c.tfrecord]", NUMBER, "batch: 5"])
        self.assertIn("gone: cannot be opened", ends.pop())


if __name__ == "__main__":
    unittest.main()
