"""What a trainer has read is what `tundish explain` names: by a place, by a step, after deaths.

Every row of the files holds its number, which the trainer prints; the bytes that explain names hold the
same number.
"""

import gzip
import json
import random
import subprocess
import sys
import unittest
import zlib
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from rig import TUNDISH, Rig, batches, place, stop  # noqa: E402
from small_files import example, tar, tfrecords  # noqa: E402

PARTS = 4
NUMBER = "string_to_number: {out_type: int64, columns: value}"
TEXT = [
    'list_files: {file_pattern: "part-*.txt"}',
    "interleave: {dataset: [text_line], cycle_length: 3}",
]
CSV = "record_defaults: [int64, string], column_names: [value, word]"
EXAMPLE = "parse_example: {features: {value: {type: FixedLen, dtype: int64, shape: []}}}"


class Explain(Rig):
    """Numbers from 1 on, told apart by their length too, in files of all kinds."""

    def setUp(self):
        super().setUp()
        for part in range(PARTS):
            numbers = numbers_of(part)
            lines = "".join(f"{n}\n" for n in numbers).encode()
            rows = "".join(f'{n},"a\n{n}"\n' for n in numbers).encode()
            (self.path / f"part-{part}.txt").write_bytes(lines)
            (self.path / f"part-{part}.txt.gz").write_bytes(gzip.compress(lines))
            (self.path / f"part-{part}.csv").write_bytes(b"value,word\n" + rows)
            (self.path / f"part-{part}.bin").write_bytes(b"".join(b"%08d" % n for n in numbers))
            data = tfrecords([example({"value": [n]}) for n in numbers])
            (self.path / f"part-{part}.tfrecord").write_bytes(data)
            (self.path / f"part-{part}.zz").write_bytes(zlib.compress(data))
            (self.path / f"part-{part}.tar.gz").write_bytes(gzip.compress(tar(samples_of(numbers))))

    def parts(self, ending):
        return f"[{', '.join(f'part-{part}.{ending}' for part in range(PARTS))}]"

    # --- what explain says ------------------------------------------------------------------

    def said(self, file, *options):
        return subprocess.run([TUNDISH, "explain", file, *map(str, options)], env=self.environment,
                              capture_output=True, text=True)

    def explain(self, file, *options):
        out = self.said(file, "--json", *options)
        self.assertEqual(out.returncode, 0, out.stderr)
        return json.loads(out.stdout)

    def number_at(self, source):
        """The number that the bytes named hold."""
        data = (self.path / source["file"]).read_bytes()
        if source["compression"] == "ZLIB":
            data = zlib.decompress(data)
        elif source["compression"]:
            data = gzip.decompress(data)
        data = data[source["offset"]:][:source["length"]]
        self.assertEqual(len(data), source["length"])
        if b"ustar" in data:
            number = int(data[:5])
        elif source["stage"] == "tfrecord":
            number = number_of_example(data)
        else:
            number = int(data.split(b",")[0])
        part = int(source["file"].split("-")[1][0])
        self.assertEqual(number, 1000 * part + 1 + source["record"])
        return number

    def rows_of(self, explained):
        """The numbers of the sources of each row."""
        self.assertEqual(len(explained["rows"]), explained["row_count"])
        return [[self.number_at(source) for source in row["sources"] if source["offset"] is not None]
                for row in explained["rows"]]

    def assert_named(self, file, batch, *options):
        """The batch that a trainer printed, by its epoch and step, each row of one source."""
        epoch, step, values = batch
        explained = self.explain(file, *options, "--epoch", epoch, "--step", step)
        self.assertEqual((explained["epoch"], explained["step"]), (epoch, step))
        self.assertEqual([[value] for value in values], self.rows_of(explained), (epoch, step))

    # --- pipelines --------------------------------------------------------------------------

    def stages(self):
        """Of all kinds, whose rows have one source each."""
        batch = "batch: 7"
        return {
            "text": [*TEXT, "shuffle: 20", NUMBER, batch],
            "gzip": [f'text_line: {{filenames: {self.parts("txt.gz")}, compression_type: GZIP}}',
                     "shuffle: 30", NUMBER, batch],
            "csv": [f'csv: {{filenames: {self.parts("csv")}, header: true, {CSV}}}',
                    "shuffle: {buffer_size: 15, seed: 3}", "select: value", batch],
            "fixed": [f'fixed_length_record: {{filenames: {self.parts("bin")}, record_bytes: 8}}',
                      NUMBER, "permute: {}", batch],
            "tfrecord": [f'tfrecord: {{filenames: {self.parts("tfrecord")}, num_parallel_reads: 2}}',
                         "shuffle: 9", "repeat: 2", EXAMPLE, batch],
            "zlib": [f'tfrecord: {{filenames: {self.parts("zz")}, compression_type: ZLIB}}', EXAMPLE,
                     'filter: "value % 3 != 0"', "shuffle: 9", batch],
            "webdataset": [f'webdataset: {{filenames: {self.parts("tar.gz")}, columns: {{value: n}}}}',
                           "shuffle: 50", "select: value", NUMBER, batch],
            "sampled": [
                "sample_from_datasets: {datasets: [[{text_line: part-0.txt}, {shuffle: 9}], "
                "[{text_line: part-1.txt}, repeat]], weights: [0.3, 0.7]}", "take: 90", NUMBER, batch],
            "grouped": [*TEXT, NUMBER, "shuffle: 10",
                        'group_by_window: {key: "value % 4", window_size: 6, reduce: batch}'],
            "bucketed": [
                *TEXT, NUMBER, 'map: {value: value, l: "[value, value][:1 + value % 2]"}',
                "bucket_by_sequence_length: {column: l, bucket_boundaries: [2], "
                "bucket_batch_sizes: [4, 6]}", "select: value"],
            "cached": [*TEXT, "shuffle: 12", "cache", "shuffle: 30", NUMBER, batch],
            "rebatched": [*TEXT, "shuffle: 20", "padded_batch: 5", "unbatch", NUMBER, "batch: 11",
                          "rebatch: 4"],
        }  # fmt: skip

    def test_names_the_rows_that_a_trainer_read_of_every_kind(self):
        for name, stages in self.stages().items():
            with self.subTest(name):
                file = self.pipeline(stages, deliver="{epochs: 2}", seed="")
                server = self.serve(file)
                lines = self.lines(self.read("--places", "--batches", "25"))
                stop(server)
                read, token = batches(lines), [line.split()[1] for line in lines
                                               if line.startswith("place ")]
                for index in random.Random(name).sample(range(len(read)), 4):
                    self.assert_named(file, read[index], "--place", token[index])

    def test_a_place_names_the_batch_that_follows_a_resume(self):
        file = self.pipeline(self.stages()["text"], deliver="{epochs: 3}", seed="")
        for count in (3, 30):
            server = self.serve(file)
            first = self.lines(self.read("--batches", str(count)))
            stop(server, 9)
            token = place(first)
            self.serve(file)
            resumed = batches(self.lines(self.read("--place", token, "--batches", "6")))
            stop(self.processes[-2])
            explained = self.explain(file, "--place", token)
            self.assertEqual((explained["epoch"], explained["step"]), resumed[0][:2])
            self.assertEqual(self.rows_of(explained), [[value] for value in resumed[0][2]])
            # Steps before the place and after the deaths are of the same run.
            for batch in (*batches(first)[::3], *resumed[1:]):
                self.assert_named(file, batch, "--place", token)

    def test_epochs_that_were_cut_short_are_named_by_their_own_places(self):
        """How many elements an epoch took decides the numbers of the next one."""
        file = self.pipeline([*TEXT, "shuffle: 25", NUMBER, "enumerate", "batch: 7"],
                             deliver="{epochs: 3}", seed="")
        server = self.serve(file)
        lines = self.lines(self.read("--places", "--restart-after", "4", "--batches", "30"))
        stop(server)
        places = [line.split()[1] for line in lines if line.startswith("place ")]
        later = [(batch, token) for batch, token in zip(batches(lines), places) if batch[0] == 1]
        self.assertGreater(len(later), 3)
        for batch, token in later[::2]:
            self.assert_named(file, batch, "--place", token)

    def test_names_the_rows_of_each_replica(self):
        stages = self.stages()["text"]
        for rebatch in ("split", "carry"):
            file = self.pipeline(stages, f"{{replicas: 3, rebatch: {rebatch}}}", seed="")
            server = self.serve(file)
            got = self.all_lines([self.read("--batches", "14", replica=r) for r in range(3)])
            stop(server)
            for replica, lines in enumerate(got):
                for batch in batches(lines)[1::4]:
                    self.assert_named(file, batch, "--place", place(lines), "--replica", replica)

    def test_replicas_that_the_server_was_told_are_told_again(self):
        file = self.pipeline(self.stages()["text"], seed="")
        server = self.serve(file, "--replicas", "2")
        one, two = self.all_lines([self.read("--batches", "9", replica=r) for r in range(2)])
        stop(server)
        self.assert_named(file, batches(two)[8], "--place", place(one), "--replicas", 2, "--replica", 1)

    def test_names_all_rows_that_a_row_is_made_of(self):
        numbers = [n for part in range(PARTS) for n in numbers_of(part)]
        reader = f"text_line: {self.parts('txt')}"
        file = self.pipeline([reader, NUMBER, "window: {size: 3, shift: 2}", "batch: 4"])
        self.assertEqual(self.rows_of(self.explain(file, "--step", 1)),
                         [numbers[i:i + 3] for i in range(8, 16, 2)])
        file = self.pipeline([reader, NUMBER, "padded_batch: 3", "batch: 2"])
        self.assertEqual(self.rows_of(self.explain(file, "--step", 2)), [numbers[12:15], numbers[15:18]])
        zipped = f"zip: {{datasets: [[{{{reader}}}], [{{text_line: part-2.txt}}, " \
            "{rename: {value: other}}, {skip: 5}]]}"
        file = self.pipeline([zipped, "batch: 2"])
        self.assertEqual(self.rows_of(self.explain(file, "--step", 3)), [[7, 2012], [8, 2013]])

    def test_rows_without_files_say_what_they_are(self):
        file = self.pipeline(["range: [10, 50]", "shuffle: 9", "batch: 5"])
        rows = self.explain(file, "--step", 2, "--show")["rows"]
        for row in rows:
            self.assertEqual([row["sources"][0]["value"]], row["columns"]["value"]["values"])
        file = self.pipeline(["from_tensor_slices: {value: [5, 6, 7]}", "batch: 2"])
        source = self.explain(file, "--step", 1)["rows"][0]["sources"][0]
        self.assertEqual(source["element"], 2)
        self.assertIn("pipeline file", source["note"])
        (self.path / "rows").write_text("import struct, sys\n"
                                        "sys.stdout.buffer.write(struct.pack('<9q', *range(9)))\n")
        file = self.pipeline(
            ["program: {command: [python3, rows], spec: {value: {dtype: int64}}}", "batch: 2"])
        source = self.explain(file, "--step", 1)["rows"][1]["sources"][0]
        self.assertEqual((source["offset"], source["length"], source["record"]), (24, 8, None))
        self.assertIn("program", source["note"])

    def test_rows_of_a_cache_in_a_file_say_which_element_they_are(self):
        file = self.pipeline([*TEXT, NUMBER, "cache: kept", "batch: 4"], deliver="{epochs: 2}")
        self.peek(file)
        rows = self.explain(file, "--epoch", 1, "--step", 2, "--show")["rows"]
        self.assertEqual([row["sources"][0]["element"] for row in rows], [8, 9, 10, 11])
        self.assertEqual({row["sources"][0]["file"] for row in rows}, {"kept.0-of-1"})
        self.assertIn("does not keep", rows[0]["sources"][0]["note"])
        peeked = self.peek(file, "--epochs", "2")[0]
        of_step = next(values for epoch, step, values in peeked if (epoch, step) == (1, 2))
        self.assertEqual([row["columns"]["value"]["values"][0] for row in rows], of_step)

    def test_a_directory_names_whole_files(self):
        for name in ("cat/1.jpg", "dog/2.jpg", "dog/3.jpg"):
            (self.path / "pictures" / name).parent.mkdir(parents=True, exist_ok=True)
            (self.path / "pictures" / name).write_text(name)
        file = self.pipeline(["directory: {directory: pictures, shuffle: true}", "batch: 3"])
        rows = self.explain(file, "--show")["rows"]
        for row in rows:
            self.assertEqual(row["sources"][0]["file"], row["columns"]["path"]["values"][0])
            self.assertEqual(row["sources"][0]["label"], row["columns"]["label"]["values"][0])

    def test_a_name_with_a_newline_forges_no_row(self):
        (self.path / "a\nrow 7\n\x1b[31m.txt").write_text("1\n")
        file = self.pipeline(["list_files: {file_pattern: \"a*.txt\"}",
                              "interleave: {dataset: [text_line], cycle_length: 1}", "batch: 3"])
        out = self.said(file).stdout
        self.assertIn("a\\x0arow 7\\x0a\\x1b[31m.txt, record 0", out)
        self.assertEqual(sum(line.startswith("row ") for line in out.splitlines()), 1)

    # --- draws ------------------------------------------------------------------------------

    def drawn(self, stages, *options):
        explained = self.explain(self.pipeline(stages, seed=""), "--show", *options)
        for row in explained["rows"]:
            marks = [mark for mark in row["marks"] if "drawn" in mark]
            yield marks[-1], row["columns"]["value"]["values"]

    def test_tells_what_random_stages_drew(self):
        image = ["range: 40", "shuffle: {buffer_size: 30, seed: 2}",
                 'map: {value: "[[[cast(value, float32) + 1000.0], [0.0]]]"}']
        flip = "random_flip: {seed: 1, mode: horizontal}"
        bright = "random_brightness: {factor: 0.2, value_range: [-5000, 5000], seed: 3}"
        for before, after in (([], ["batch: 8"]), (["batch: 8"], [])):
            flips = list(self.drawn([*image, *before, flip, *after], "--step", 2))
            for mark, values in flips:
                self.assertEqual(mark["drawn"]["horizontal"], values[0] < values[1])
            self.assertEqual({mark["drawn"]["horizontal"] for mark, _ in flips}, {0, 1})
            for mark, values in self.drawn([*image, *before, bright, *after], "--step", 2):
                self.assertEqual(mark["drawn"]["delta"], values[1])
            turn = "random_rotation: {factor: 0.1, seed: 4}"
            for mark, _ in self.drawn([*image, *before, turn, *after]):
                self.assertLess(abs(mark["drawn"]["degrees"]), 36)
        ordinals = [mark["ordinal"] for mark, _ in self.drawn([*image, flip, "batch: 8"], "--step", 2)]
        self.assertEqual(ordinals, list(range(16, 24)))

    def test_draws_of_a_later_epoch_go_on_from_those_before(self):
        stages = ["range: 10", 'map: {value: "[[[cast(value, float32)], [-1.0]]]"}',
                  "random_flip: {mode: horizontal}", 'map: {value: "cast(value[0, 0, 0], int64)"}',
                  "batch: 5"]
        file = self.pipeline(stages, deliver="{epochs: 3}", seed="")
        server = self.serve(file)
        lines = self.lines(self.read("--batches", "5"))
        stop(server)
        for epoch, step, values in batches(lines):
            rows = self.explain(file, "--place", place(lines), "--epoch", epoch, "--step", step)["rows"]
            for row, value in zip(rows, values):
                number = row["sources"][0]["value"]
                self.assertEqual(row["marks"][-1]["ordinal"], 10 * epoch + number)
                self.assertEqual(row["marks"][-1]["drawn"]["horizontal"], int(value == -1))

    # --- what is refused, and bad rows ------------------------------------------------------

    def test_files_that_changed_are_refused_as_by_a_resume(self):
        file = self.pipeline(self.stages()["text"], seed="")
        server = self.serve(file)
        token = place(self.lines(self.read("--batches", "2")))
        stop(server)
        (self.path / "part-2.txt").write_text("7\n" * 40)
        out = self.said(file, "--place", token)
        self.assertEqual(out.returncode, 1)
        self.assertIn("part-2.txt changed", out.stderr)
        (self.path / "part-2.txt").unlink()
        self.assertIn("4 files, and there are 3", self.said(file, "--place", token).stderr)

    def test_places_of_other_pipelines_and_damaged_ones_are_refused(self):
        file = self.pipeline(self.stages()["text"], seed="")
        server = self.serve(file)
        token = place(self.lines(self.read("--batches", "2")))
        stop(server)
        chooser = random.Random(1)
        for _ in range(40):
            at = chooser.randrange(5, len(token) - 1)
            digit = chooser.choice([digit for digit in "AZaz09-_" if digit != token[at]])
            cut = chooser.choice([token[:at], token[:at] + digit + token[at + 1:]])
            out = self.said(file, "--place", cut)
            self.assertEqual(out.returncode, 1, cut)
            self.assertIn("place", out.stderr)
        other = self.pipeline([*self.stages()["text"][:-1], "batch: 8"], seed="")
        self.assertIn("another pipeline", self.said(other, "--place", token).stderr)

    def test_a_bad_row_is_named_and_the_step_said_to_fail(self):
        (self.path / "bad.txt").write_text("1\n2\nx\n4\n5\n6\n")
        stages = ["text_line: bad.txt", NUMBER, "batch: 4"]
        file = self.pipeline(stages)
        out = self.said(file, "--json", "--show")
        self.assertEqual(out.returncode, 1)
        explained = json.loads(out.stdout)
        self.assertIn("bad.txt, line 3", explained["error"])
        self.assertEqual([row["sources"][0]["record"] for row in explained["rows"]], [0, 1, 2, 3])
        self.assertEqual(explained["rows"][2]["sources"][0]["bytes"], "x")
        file = self.pipeline(stages, deliver="{epochs: 1, on_error: skip}")
        rows = self.explain(file, "--show")["rows"]
        self.assertEqual([row["sources"][0]["record"] for row in rows], [0, 1, 3])
        self.assertEqual([row["columns"]["value"]["values"] for row in rows], [[1], [2], [4]])

    def test_records_before_damage_are_still_numbered(self):
        data = (self.path / "part-0.tfrecord").read_bytes()
        (self.path / "cut.tfrecord").write_bytes(data[:len(data) // 2])
        file = self.pipeline(["tfrecord: cut.tfrecord", EXAMPLE, "batch: 3"])
        rows = self.explain(file, "--step", 1)["rows"]
        self.assertEqual([row["sources"][0]["record"] for row in rows], [3, 4, 5])

    def test_a_queue_is_explained_as_far_as_it_goes(self):
        file = self.pipeline(self.stages()["text"], "{delivery: queue}", seed="")
        server = self.serve(file)
        lines = self.lines(self.read("--batches", "5"))
        stop(server)
        for batch in batches(lines):
            self.assert_named(file, batch, "--place", place(lines))
        self.assertIn("queue", self.explain(file, "--place", place(lines))["notes"][0])


def numbers_of(part):
    return list(range(1000 * part + 1, 1000 * part + 41 - 3 * part))


def samples_of(numbers):
    return [(f"{number:05}.n", str(number).encode()) for number in numbers]


def number_of_example(data):
    """Of one list of one number: at the end stand its length in bytes and the varint."""
    size = 1 if data[-3:-1] == b"\x0a\x01" else 2
    return sum((byte & 127) << 7 * i for i, byte in enumerate(data[-size:]))


if __name__ == "__main__":
    unittest.main()
