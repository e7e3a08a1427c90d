"""Where the rows of a batch come from, told by the reader that read it."""

import os
import pickle
import struct
import sys
import tempfile
import unittest
import zlib
from pathlib import Path

import rig

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from small_files import example, tfrecords  # noqa: E402

import tundish  # noqa: E402
from tundish import explaining  # noqa: E402

NUMBERS = [list(range(100 * part, 100 * part + 37)) for part in range(3)]
FILES = {
    f"part-{part}.tfrecord": tfrecords([example({"value": [n]}) for n in numbers])
    for part, numbers in enumerate(NUMBERS)
}
STAGES = (
    'list_files: {file_pattern: "part-*.tfrecord"}',
    "interleave: {dataset: [tfrecord], cycle_length: 2}",
    "shuffle: 30",
    "parse_example: {features: {value: {type: FixedLen, dtype: int64, shape: []}}}",
    "batch: 8",
)
IN_CSV = (
    "csv: {filenames: rows.csv, record_defaults: [int64, float32], column_names: [value, x]}",
    "batch: 4",
)


class Explained(unittest.TestCase):
    def setUp(self):
        build = os.environ.get("TUNDISH_BUILD")
        os.environ["TUNDISH_BUILD"] = str(rig.BUILD.resolve())
        if build is None:
            self.addCleanup(os.environ.pop, "TUNDISH_BUILD")
        else:
            self.addCleanup(os.environ.__setitem__, "TUNDISH_BUILD", build)

    def unseeded(self, *stages, **options):
        """So that only the place says in which order the rows come."""
        return rig.pipeline(*stages, **options).replace("seed: 1\n", "", 1)

    def assert_named(self, server, rows, values):
        """The files hold the values at the bytes named."""
        self.assertEqual([row.row for row in rows], list(range(len(values))))
        for row, value in zip(rows, values):
            (source,) = row.sources
            self.assertEqual(source.path, os.path.realpath(server.path / source.file))
            data = Path(source.path).read_bytes()[source.offset : source.offset + source.length]
            self.assertEqual(data, example({"value": [value]}))
            self.assertEqual(NUMBERS[int(source.file[5])][source.record], value)


class Batches(Explained):
    def test_name_the_rows_that_the_reader_was_given(self):
        text = self.unseeded(*STAGES, deliver="{epochs: 3}")
        with rig.serve(text, files=FILES) as server, server.open("train") as reader:
            for _ in range(2):
                for batch in reader:
                    if batch.step % 5 == 3:
                        self.assert_named(server, batch.rows(), batch["value"].tolist())
            # A batch of an earlier epoch, given back long ago.
            for batch in reader:
                break
            rows = reader.explain(batch, row=5)
            self.assertEqual([row.row for row in rows], [5])
            self.assertEqual((rows.epoch, rows.step, rows.row_count), (2, 0, 8))

    def test_name_those_of_their_replica(self):
        text = self.unseeded(*STAGES, replicas=1)
        with rig.serve(text, "--replicas", "2", files=FILES) as server:
            with server.open(replica=0) as one, server.open(replica=1) as two:
                for _ in range(3):
                    pair = one.next(), two.next()
                for batch in pair:
                    rows = batch.rows()
                    self.assert_named(server, rows, batch["value"].tolist())
                    self.assertEqual(len(rows), 4)
                with self.assertRaisesRegex(tundish.MisuseError, "another reader"):
                    one.explain(pair[1])

    def test_are_named_after_the_server_has_gone_if_the_file_is(self):
        with rig.serve(self.unseeded(*STAGES), files=FILES) as server, server.open() as reader:
            batch = reader.next()
            server.kill()
            file = server.path / "pipeline.yaml"
            self.assert_named(server, reader.explain(batch, file=file), batch["value"].tolist())

    def test_of_changed_files_are_refused(self):
        with rig.serve(self.unseeded(*STAGES), files=FILES) as server, server.open() as reader:
            batch = reader.next()
            (server.path / "part-1.tfrecord").write_bytes(FILES["part-0.tfrecord"])
            with self.assertRaisesRegex(tundish.Error, "part-1.tfrecord changed"):
                batch.rows()

    def test_of_a_stream_that_has_failed_since_are_named(self):
        stages = ("text_line: rows.txt", "string_to_number: {out_type: int64}", "batch: 1")
        with rig.serve(rig.pipeline(*stages), files={"rows.txt": b"7\nx\n"}) as server, server.open() as reader:
            batch = reader.next()
            with self.assertRaises(tundish.DataError):
                reader.next()
            self.assertEqual([row.sources[0].offset for row in batch.rows()], [0])

    def test_of_an_evaluation_are_not_named(self):
        text = rig.pipeline(*STAGES, distribute="evaluation_shards: 2").replace("replicas: 1, ", "")
        with rig.serve(text, files=FILES) as server, server.open() as reader:
            with self.assertRaisesRegex(tundish.ArgumentError, "evaluation"):
                reader.next().rows()

    def test_of_a_queue_are_named(self):
        text = self.unseeded(*STAGES, distribute="delivery: queue")
        with rig.serve(text, files=FILES) as server, server.open() as one, server.open() as two:
            for reader in (one, two, one):
                batch = reader.next()
                rows = batch.rows()
                self.assert_named(server, rows, batch["value"].tolist())
                self.assertIn("queue", rows.notes[0])
                batch.release()


class Files(Explained):
    def folder(self, stages, files, **options):
        folder = tempfile.TemporaryDirectory(prefix="tundish-explain-")
        self.addCleanup(folder.cleanup)
        for name, data in files.items():
            Path(folder.name, name).write_bytes(data)
        file = Path(folder.name, "pipeline.yaml")
        file.write_text(rig.pipeline(*stages, **options))
        return file

    def test_show_the_bytes_of_records(self):
        file = self.folder(IN_CSV, {"rows.csv": b"1,0.5\n20,1\n3,2\n4,3\n5,4\n"})
        rows = tundish.explain(file, show=True)
        self.assertEqual([row.sources[0].raw for row in rows], [b"1,0.5", b"20,1", b"3,2", b"4,3"])
        self.assertEqual([row.sources[0].offset for row in rows], [0, 6, 11, 15])
        self.assertEqual({row.sources[0].line for row in rows}, {5})
        self.assertIsNone(rows.error)
        self.assertIsNone(tundish.explain(file)[0].sources[0].raw)
        self.assertEqual(pickle.loads(pickle.dumps(rows[1])), rows[1])

    def test_of_other_bytes_come_as_they_are(self):
        records = [struct.pack("<q", n - 5) + b"\xff\xfe" for n in range(9)]
        data = zlib.compress(b"".join(records))
        stages = (
            "fixed_length_record: {filenames: rows.bin, record_bytes: 10, compression_type: ZLIB}",
            "batch: 3",
        )
        rows = tundish.explain(self.folder(stages, {"rows.bin": data}), step=1, show=True)
        self.assertEqual([row.sources[0].raw for row in rows], records[3:6])
        self.assertEqual({row.sources[0].compression for row in rows}, {"ZLIB"})

    def test_of_bad_rows_are_named_with_the_error(self):
        file = self.folder(IN_CSV, {"rows.csv": b"1,0.5\n2,x\n3,2\n"})
        rows = tundish.explain(file, show=True)
        self.assertIn("rows.csv, line 2", rows.error)
        self.assertEqual(rows[1].sources[0].raw, b"2,x")

    def test_numbers_and_draws_are_told(self):
        stages = (
            "range: 6", 'map: {image: "[[[cast(value, float32)], [9.0]]]"}', "enumerate",
            "random_flip: {columns: image, mode: horizontal, seed: 3}", "batch: 6",
        )  # fmt: skip
        rows = tundish.explain(self.folder(stages, {}))
        (batch,) = tundish.peek(self.folder(stages, {}), steps=1)
        for n, row in enumerate(rows):
            self.assertEqual(row.sources[0].numbers, {"value": n})
            self.assertIsNone(row.sources[0].file)
            self.assertEqual(row.ordinals, {"random_flip": n})
            flipped = batch["image"][n, 0, 0, 0] == 9
            self.assertEqual(row.drawn["random_flip"]["horizontal"], flipped)
            self.assertEqual([mark.index for mark in row.marks if mark.stage == "enumerate"], [n])

    def test_mistakes_are_exceptions_with_a_remedy(self):
        file = self.folder(("range: 6", "batch: 2"), {})
        with self.assertRaisesRegex(tundish.PipelineError, "--epoch 1 --step 0"):
            tundish.explain(file, step=3)
        with self.assertRaisesRegex(tundish.PipelineError, "not a place's token"):
            tundish.explain(file, place="here")
        with self.assertRaisesRegex(tundish.ArgumentError, "a worker has 1"):
            tundish.explain(file, replica=3)
        with self.assertRaisesRegex(tundish.PipelineError, "2 rows"):
            tundish.explain(file, row=2)
        with self.assertRaises(tundish.SystemFault):
            tundish.explain(file.with_name("none.yaml"))
        rows = tundish.explain(text=file.read_text(), step=2)
        self.assertEqual(rows[1].sources[0].numbers, {"value": 5})

    def test_a_name_that_is_no_text_is_a_path_all_the_same(self):
        name = explaining._name({"base64": "YS7/"})
        self.assertEqual(os.fsencode(name), b"a.\xff")


if __name__ == "__main__":
    unittest.main()
