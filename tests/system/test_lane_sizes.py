"""Shared memory that lanes take, by counting it: what slots need, and never more than a limit."""

import json
import os
import random
import re
import subprocess
import unittest
from pathlib import Path

from rig import TUNDISH, Rig, batches, may_mount

PAGE = 4096
MIB = 1 << 20


def pages(size):
    return (size + PAGE - 1) // PAGE * PAGE


def lane_bytes(server):
    """Of all segments that the server has made for batches, named or not."""
    found = {}
    folder = f"/proc/{server.pid}/fd"
    for name in os.listdir(folder):
        try:
            if "tundish-" in (at := os.readlink(f"{folder}/{name}")) and (
                at.startswith("/dev/shm/") or "tundish-batches" in at
            ):
                status = os.stat(f"{folder}/{name}")
                found[status.st_dev, status.st_ino] = status.st_size
        except FileNotFoundError:
            pass
    return sum(found.values())


class LaneSizes(Rig):
    ROWS, SLOTS = 40000, 8
    KNOWN = [
        "range: 80000",
        'map: {value: "value % 7"}',
        "integer_lookup: {columns: value, vocabulary: [0, 1, 2, 3, 4, 5, 6], output: known}",
        'select: "known"',
        "batch: 40000",
    ]

    def taken(self, stages, compression, distribute="{replicas: 1}"):
        server = self.serve(
            self.pipeline(stages, distribute, f"{{epochs: 1, compression: {compression}}}"))
        taken = lane_bytes(server)
        server.terminate()
        server.wait()
        return taken

    def test_what_is_narrow_takes_what_narrow_columns_take(self):
        as_is, narrow = self.taken(self.KNOWN, "none"), self.taken(self.KNOWN, "narrow")
        raw, stored = 8 * self.ROWS, 3 * self.ROWS // 8  # of eight terms, one for those unknown
        stored = (stored + 63) // 64 * 64
        self.assertEqual(as_is - narrow, pages(self.SLOTS * raw) - pages(self.SLOTS * stored))

    def huge_bytes(self, deliver):
        """Of the server's batches that it has touched, those in huge pages."""
        mount = 'mount -t tmpfs -o huge=advise tmpfs /dev/shm && exec "$@"'
        server = self.serve(self.pipeline(["range: 10000000", "batch: 1000000"], deliver=deliver),
                            before=["unshare", "-m", "sh", "-c", mount, "sh"])
        self.lines(self.read("--batches", "3"))
        kib = re.findall("ShmemPmdMapped: +([0-9]+) kB", Path(f"/proc/{server.pid}/smaps").read_text())
        server.terminate()
        server.wait()
        return sum(map(int, kib)) << 10

    @unittest.skipUnless(may_mount("huge=advise"), "mounting with huge pages is not permitted here")
    def test_batches_lie_in_huge_pages_where_they_are_asked_for(self):
        self.assertEqual(self.huge_bytes("{epochs: 1}"), 0)
        self.assertGreaterEqual(self.huge_bytes("{epochs: 1, huge_pages: true}"), 2 * MIB)

    def test_what_zstd_makes_small_takes_little(self):
        stages = ["range: 80000", 'map: {value: "value % 7"}', "batch: 40000"]
        as_is, small = self.taken(stages, "none"), self.taken(stages, "zstd")
        self.assertGreater(as_is, self.SLOTS * 8 * self.ROWS)
        self.assertLess(small, as_is / 4)

    def test_what_zstd_cannot_make_smaller_takes_no_more(self):
        noise = self.path / "noise"
        noise.write_bytes(random.Random(7).randbytes(64 * 8192))
        stages = [
            f'fixed_length_record: {{filenames: "{noise}", record_bytes: 8192}}',
            "decode_raw: int64",
            "batch: 16",
        ]
        self.assertEqual(self.taken(stages, "zstd"), self.taken(stages, "none"))

    def test_what_is_stacked_is_as_narrow_as_its_columns(self):
        stages = [
            "range: 64",
            'map: {value: "value % 7", other: "value % 5"}',
            "integer_lookup: {columns: value, vocabulary: [0, 1, 2, 3, 4, 5, 6]}",
            "integer_lookup: {columns: other, vocabulary: [0, 1, 2, 3, 4]}",
            "stack: {columns: [value, other], output: both}",
            'select: "both"',
            "batch: 64",
        ]
        self.serve(self.pipeline(stages, deliver="{epochs: 1, compression: narrow}"))
        self.assertEqual(self.figures()["compression"][0]["how"], "both by bitpack")
        self.assertEqual(self.figures()["compression"][0]["batch_bytes"], 64)  # two times 64, 3 bits

    def plan(self, file, *options):
        command = [TUNDISH, "plan", file, *options]
        out = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout

    def planned(self, stages, deliver, distribute="{replicas: 1}"):
        file = self.pipeline(stages, distribute, deliver)
        return json.loads(self.plan(file, "--json"))["memory"]

    def test_are_what_the_plan_says(self):
        images = ["range: 64", 'map: {value: "cast([value, value, value], uint8)"}', "batch: 8"]
        for stages in (self.KNOWN, images):
            for replicas in (1, 2):
                distribute = f"{{replicas: {replicas}}}"
                as_is = self.taken(stages, "none", distribute)
                for compression in ("none", "narrow", "zstd", "auto"):
                    with self.subTest(stages=stages, replicas=replicas, compression=compression):
                        deliver = f"{{compression: {compression}}}"
                        memory = self.planned(stages, deliver, distribute)
                        taken = self.taken(stages, compression, distribute)
                        self.assertEqual(memory["uncompressed_all_lanes_bytes"], as_is)
                        by_data = compression == "auto" or (
                            compression == "zstd" and stages is images)
                        self.assertEqual(memory["lanes_at_most"], by_data)
                        if memory["lanes_at_most"]:
                            self.assertLessEqual(taken, memory["all_lanes_bytes"])
                        else:
                            self.assertEqual(taken, memory["all_lanes_bytes"])

    def test_are_not_in_a_plan_that_only_data_makes_whole(self):
        file = self.path / "lines"
        file.write_text("a\nbb\n" * 50)
        stages = [f'text_line: "{file}"', "batch: 10"]
        self.assertIsNone(self.planned(stages, "{}")["lane_bytes"])
        limited = self.planned(stages, "{memory_limit: 4MiB}", "{replicas: 2}")
        self.assertEqual((limited["lane_bytes"], limited["lanes_at_most"]), (2 * MIB, True))
        limited = self.planned(self.KNOWN, "{memory_limit: 1MiB}")
        self.assertEqual((limited["lane_bytes"], limited["lanes_at_most"]), (MIB, True))
        self.assertGreater(limited["uncompressed_lane_bytes"], 2 * MIB)
        given = self.planned(stages, "{lane_bytes: 1MiB}")
        self.assertFalse(given["lanes_at_most"])
        server = self.serve(self.pipeline(stages, deliver="{lane_bytes: 1MiB}"))
        self.assertEqual(lane_bytes(server), given["all_lanes_bytes"])

    def test_are_told_to_people(self):
        file = self.pipeline(self.KNOWN, "{replicas: 2}", "{compression: narrow}")
        self.assertRegex(self.plan(file), r"shared memory: a lane of 8 slots takes [\d.]+ KiB, "
                         r"all 2 lanes [\d.]+ KiB; without compression [\d.]+ KiB, all 2 lanes ")
        stages = ["range: 64", 'map: {value: "value * value"}', "batch: 8"]
        file = self.pipeline(stages, deliver="{compression: zstd}")
        self.assertRegex(self.plan(file), r"a lane of 8 slots takes at most [\d.]+ KiB\n")

    def test_every_replica_has_its_share(self):
        one = self.taken(self.KNOWN, "narrow")
        two = self.taken(self.KNOWN, "narrow", "{replicas: 2}")
        self.assertLess(two, 2 * one)


class Turning(Rig):
    """Batches that compress well at first, and then not at all."""

    ROW, ROWS, BATCH = 65536, 320, 16  # a batch of 1 MiB
    GOOD = 8 * BATCH  # as many batches as a lane has slots
    SLICE = ROW * BATCH

    def file_of(self, deliver, distribute="{replicas: 1}"):
        turning = self.path / "turning"
        noise = random.Random(3).randbytes((self.ROWS - self.GOOD) * self.ROW)
        turning.write_bytes(bytes(self.GOOD * self.ROW) + noise)
        source = f'fixed_length_record: {{filenames: "{turning}", record_bytes: {self.ROW}}}'
        return self.pipeline([source, f"batch: {self.BATCH}"], distribute, deliver)


    def serve_all(self, deliver, *options, distribute="{replicas: 1}", replicas=1):
        """Read everything; what there was of lanes meanwhile, at most."""
        server = self.serve(self.file_of(deliver, distribute=distribute))
        readers = [self.read_paced(*options, replica=r) for r in range(replicas)]
        self.most = self.first = lane_bytes(server)
        self.found = []
        for _ in range(2 * self.ROWS // self.BATCH):
            for reader in readers:
                reader.take()
            self.most = max(self.most, lane_bytes(server))
        for reader in readers:
            self.found.append(batches(reader.finish()))
        server.terminate()
        server.wait()
        return self.found

    def test_are_delivered_and_take_no_more_than_they_would_as_they_are(self):
        expected = self.serve_all("{epochs: 2, compression: none}")
        as_is = self.most
        self.assertEqual(self.serve_all("{epochs: 2, compression: zstd}"), expected)
        self.assertLess(self.first, as_is / 4)
        self.assertLessEqual(self.most, as_is)
        self.assertGreater(self.most, self.first)  # it did grow

    def test_stay_below_a_limit(self):
        expected = self.serve_all("{epochs: 2, compression: none}")
        for compression in ("zstd", "auto"):
            with self.subTest(compression=compression):
                limit = 5 * self.SLICE
                deliver = f"{{epochs: 2, compression: {compression}, memory_limit: {limit}}}"
                self.assertEqual(self.serve_all(deliver), expected)
                self.assertLessEqual(self.most, limit)

    def test_are_dealt_to_replicas_below_a_limit(self):
        two = {"distribute": "{replicas: 2}", "replicas": 2}
        expected = self.serve_all("{epochs: 2, compression: none}", **two)
        limit = 6 * self.SLICE
        deliver = f"{{epochs: 2, compression: zstd, memory_limit: {limit}}}"
        self.assertEqual(self.serve_all(deliver, **two), expected)
        self.assertLessEqual(self.most, limit)

    def test_come_again_after_a_server_was_killed(self):
        expected = self.serve_all("{epochs: 2, compression: none}")[0]
        file = self.file_of("{epochs: 2, compression: zstd}")
        state = self.path / "state"
        state.mkdir()
        server = self.serve(file, "--state", str(state))
        reader = self.read("--survive", "--delay-ms", "10")
        for step in (3, 9, 15):  # among those that compress, and those that do not
            self.wait_for_line(reader, f"batch 0 {step} ")
            server.kill()
            server.wait()
            server = self.serve(file, "--state", str(state))
        self.assertEqual(batches(self.whole(reader)), expected)


if __name__ == "__main__":
    unittest.main()
