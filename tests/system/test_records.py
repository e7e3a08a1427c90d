"""Records of files, read straight into the batches that trainers see."""

import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from rig import Rig, batches  # noqa: E402
from small_files import tfrecords  # noqa: E402

STAGES = ["tfrecord: [a.tfrecord, b.tfrecord]", "batch: 7"]


def sum_of(data):
    """As rows_reader.c tells texts apart."""
    total = len(data)
    for byte in data[::97]:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return total * 31 + data[-1] if data else total


def record(number, size):
    return bytes((number * 7 + i * i) & 255 for i in range(size))


def write(path, records):
    path.write_bytes(tfrecords(records))


class Records(Rig):
    def given(self, sizes):
        records = [record(i, size) for i, size in enumerate(sizes)]
        write(self.path / "a.tfrecord", records[:9])
        write(self.path / "b.tfrecord", records[9:])
        return records

    def served(self, stages, replicas=1):
        file = self.pipeline(stages, distribute=f"{{replicas: {replicas}}}")
        self.serve(file, "--root", str(self.path))
        readers = [self.read(replica=r) for r in range(replicas)]
        return [self.lines(reader) for reader in readers]

    def test_long_and_short_arrive_byte_for_byte(self):
        for kind, sizes in {
            "long": [20000 + 37 * i for i in range(24)],
            "short": [3 * i for i in range(24)],
            "mixed": [0 if i % 3 == 0 else 40000 + i for i in range(24)],
        }.items():
            with self.subTest(kind):
                expected = [sum_of(data) for data in self.given(sizes)]
                (lines,) = self.served(STAGES)
                self.assertEqual([v for _, _, vs in batches(lines) for v in vs], expected)
                self.end_all()

    def test_are_dealt_to_replicas_like_rows(self):
        expected = [sum_of(data) for data in self.given([20000 + i for i in range(22)])]
        one, two = (batches(lines) for lines in self.served(STAGES, replicas=2))
        found = [v for step in zip(one, two) for _, _, values in step for v in values]
        self.assertEqual(found, expected)
        self.assertEqual([len(values) for _, _, values in two], [3, 3, 3, 0])

    def test_keep_their_place_behind_a_shuffle_and_a_rename(self):
        expected = [sum_of(data) for data in self.given([20000 + i for i in range(22)])]
        stages = [
            "list_files: {file_pattern: '*.tfrecord', shuffle: false}",
            "interleave: {dataset: [tfrecord], cycle_length: 2}",
            "rename: {value: record}",
            "shuffle: {buffer_size: 5}",
            "rename: {record: value}",
            "batch: 4",
        ]
        (lines,) = self.served(stages)
        self.assertEqual(
            sorted(v for _, _, vs in batches(lines) for v in vs), sorted(expected)
        )

    def test_with_a_wrong_checksum_end_the_stream_at_their_step(self):
        self.given([20000] * 22)
        with open(self.path / "b.tfrecord", "r+b") as file:
            file.seek(2 * 20016 + 500)
            file.write(b"\xff\x00\xff")
        (lines,) = self.served(STAGES)
        self.assertEqual(len(batches(lines)), 1)
        self.assertIn("b.tfrecord: corrupted record at", lines[-1])


if __name__ == "__main__":
    unittest.main()
