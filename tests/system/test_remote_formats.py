"""Formats at URLs: Parquet, webdataset, folders of classes, arrays, and the commands that read files."""

import io
import json
import random
import struct
import subprocess
import tarfile
import unittest
from pathlib import Path

from rig import TUNDISH
from store import REGION
from test_remote import LINES, RemoteRig

PARQUET = Path(__file__).parents[1] / "conformance/cases/data"


class RemoteFormats(RemoteRig):
    def spans(self):
        """(first, last) of the bytes asked for since the last call, sorted; without last bytes."""
        spans = [span for _, _, span in self.store.requests if span and not span.startswith("bytes=-")]
        self.store.requests.clear()
        return sorted(tuple(map(int, span.removeprefix("bytes=").split("-"))) for span in spans)

    def test_parquet(self):
        for i in (1, 2, 3):
            self.put(f"part-{i}.parquet", (PARQUET / f"part-{i}.parquet").read_bytes())
        self.put("texts.parquet", (PARQUET / "texts.parquet").read_bytes())
        for stages in (
            ["parquet: {filenames: '{}/texts.parquet'}", "shuffle: {buffer_size: 50, seed: 3}", "batch: 7"],
            ["list_files: {file_pattern: '{}/part-*.parquet', seed: 1}",
             "interleave: {dataset: [parquet], cycle_length: 2}", "batch: 16"],
        ):
            self.assert_same(stages, "s3://bucket")
            self.assert_same(stages, "s3://bucket", more=f", cache: '{self.path}/kept'")
            self.spans()
            self.assert_same(stages, "s3://bucket", more=f", cache: '{self.path}/kept'")
            self.assertEqual([span for span in self.spans() if span[1] - span[0] > 8], [])

    def test_of_parquet_only_the_footer_and_the_named_columns_come(self):
        data = (PARQUET / "integers.parquet").read_bytes()
        self.put("integers.parquet", data)
        footer_bytes = struct.unpack("<I", data[-8:-4])[0]
        plan = self.json_plan(["parquet: {filenames: 's3://bucket/integers.parquet'}", "batch: 8"])
        names = [column["name"] for column in plan["element_spec"]]
        self.assertGreater(len(names), 2)
        whole = self.column_bytes(names, data, footer_bytes)
        each = [self.column_bytes([name], data, footer_bytes) for name in names]
        self.assertEqual(sum(each), whole)
        self.assertTrue(all(one < whole for one in each))

    def test_of_parquet_the_first_rows_come_with_the_third_request(self):
        """The footer of the example, of the file that is read, and a chunk; none is looked at before."""
        data = (PARQUET / "part-0.parquet").read_bytes()
        self.put("part-0.parquet", data)
        file = self.stream(["parquet: {filenames: 's3://bucket/part-0.parquet'}", "batch: 2", "take: 1"])
        expected = self.rows(file)
        asked = [(method, span) for method, _, span in self.store.requests]
        tail = ("GET", "bytes=-65536")
        self.assertEqual(asked[:2], [tail, tail], asked)
        self.assertEqual([method for method, _ in asked], ["GET"] * 3, asked)
        # One that comes only in part goes on as a range.
        self.store.requests.clear()
        self.store.faults.append(["short", 1, "part-0", None])
        self.assertEqual(self.rows(file), expected)
        self.assertEqual(self.store.left(), [])
        self.assertRegex(self.store.requests[1][2], rf"^bytes=\d+-{len(data) - 1}$")
        # A server that knows nothing of last bytes is asked as before.
        self.store.tails = False
        self.store.requests.clear()
        footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
        self.put("part-0.parquet", data[:footer] + bytes(70000) + data[footer:])
        self.assertEqual(self.rows(file), expected)

    def test_servers_without_ranges_or_lengths(self):
        """Files are read whole, each within a part: those that are read from their end, and in pieces, too."""
        self.store.is_signed = False
        self.store.ranges = False
        self.put("part-1.parquet", (PARQUET / "part-1.parquet").read_bytes())
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w") as tar:
            for i in range(20):
                info = tarfile.TarInfo(f"s{i:03}.bin")
                info.size = i * 70
                tar.addfile(info, io.BytesIO(random.Random(i).randbytes(i * 70)))
        self.put("w.tar", out.getvalue())
        where = self.store.url + "/bucket"
        for i in (1, 3):
            self.put(f"one-{i}.bin", random.Random(i).randbytes(500 * i))
        more = f", cache: '{self.path}/kept'"
        for ending in ("length", "chunks", "close"):
            self.store.ending = ending
            for stages in (
                ["parquet: {filenames: '{}/part-1.parquet'}", "shuffle: {buffer_size: 50, seed: 3}", "batch: 7"],
                ["webdataset: {filenames: '{}/w.tar', columns: {data: bin}}",
                 "shuffle: {buffer_size: 9, seed: 1}", "batch: 4"],
                ["list_files: {file_pattern: ['{}/one-1.bin', '{}/one-3.bin'], shuffle: false}", "read_file",
                 "batch: 2"],
            ):
                self.assert_same(stages, where)
                self.assert_same(stages, where, more=more)

    def test_servers_without_ranges_are_read_by_way_of_the_cache(self):
        """Files larger than a part (64KiB) that fit the cache: each is read whole, and what lies there is not read
        again."""
        self.store.is_signed = False
        self.store.ranges = False
        where = self.store.url + "/bucket"
        self.put_numbers("a.txt", 3000)
        self.put_numbers("b.txt", 700, 3000)
        self.put("part-1.parquet", self.long_parquet())
        for i in (1, 3):
            self.put(f"one-{i}.bin", random.Random(i).randbytes(150_000 * i))
        for ending in ("length", "chunks", "close"):
            self.store.ending = ending
            for number, stages in enumerate((
                [*LINES],
                ["parquet: {filenames: '{}/part-1.parquet'}", "shuffle: {buffer_size: 50, seed: 3}", "batch: 7"],
                ["list_files: {file_pattern: ['{}/one-1.bin', '{}/one-3.bin'], shuffle: false}", "read_file",
                 "batch: 2"],
            )):
                with self.subTest(ending=ending, stages=stages):
                    more = f", cache: '{self.path}/kept-{ending}-{number}'"
                    self.assert_same(stages, where, more=more)
                    self.store.requests.clear()
                    self.assert_same(stages, where, more=more)
                    wholes = [request for request in self.store.requests if request[0] == "GET"]
                    if ending == "length" and number == 0:  # else nothing but the bytes tells the size
                        self.assertEqual(wholes, [])
        self.put_numbers("a.txt", 9000)
        file = self.stream(["text_line: {filenames: '%s/a.txt'}" % where, "batch: 9"],
                           f", cache: '{self.path}/small', cache_bytes: 1MiB")
        self.assertIn("larger than the cache; raise remote.cache_bytes", self.complaint(file))

    def long_parquet(self):
        """The chunks of a file, and bytes between them and the footer that nobody reads."""
        data = (PARQUET / "part-1.parquet").read_bytes()
        footer = len(data) - 8 - struct.unpack("<I", data[-8:-4])[0]
        return data[:footer] + bytes(300_000) + data[footer:]

    def test_packed_archives_are_told_by_their_content(self):
        out = io.BytesIO()
        with tarfile.open(fileobj=out, mode="w:gz") as tar:
            for i in range(50):
                info = tarfile.TarInfo(f"s{i:03}.bin")
                info.size = i * 700
                tar.addfile(info, io.BytesIO(random.Random(i).randbytes(i * 700)))
        for name in ("packed.tar", "packed.tar.gz"):
            self.put(name, out.getvalue())
        stages = ["webdataset: {filenames: ['{}/packed.tar', '{}/packed.tar.gz'], columns: {data: bin}}",
                  "shuffle: {buffer_size: 30, seed: 1}", "batch: 4"]
        for more in ("", f", cache: '{self.path}/kept'", ", fetch: once"):
            self.assert_same(stages, "s3://bucket", more=more)

    def json_plan(self, stages):
        out = subprocess.run([TUNDISH, "plan", self.stream(stages), "--json"], env=self.environment,
                             capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return json.loads(out.stdout)

    def column_bytes(self, names, data, footer_bytes):
        """How many bytes come of these columns, each once, none but they and the footer."""
        self.spans()
        self.rows(self.stream([f"parquet: {{filenames: 's3://bucket/integers.parquet', columns: {names}}}",
                               "batch: 1000"]))
        begin = len(data) - 8 - footer_bytes
        chunks = [span for span in self.spans() if span[0] < begin]
        for (_, last), (first, _) in zip(chunks, chunks[1:]):
            self.assertLess(last, first)
        self.assertLess(chunks[-1][1], begin)
        return sum(last - first + 1 for first, last in chunks)

    def test_parquet_that_is_cut_is_refused(self):
        data = (PARQUET / "integers.parquet").read_bytes()
        self.put("integers.parquet", data[: len(data) // 2])
        file = self.stream(["parquet: {filenames: 's3://bucket/integers.parquet'}", "batch: 8"])
        self.assertIn("s3://bucket/integers.parquet", self.complaint(file))

    def test_webdataset(self):
        for number in range(2):
            out = io.BytesIO()
            with tarfile.open(fileobj=out, mode="w") as tar:
                for i in range(60):
                    for extension, size in (("jpg", i * 70), ("cls", 2)):
                        info = tarfile.TarInfo(f"s{number}{i:03}.{extension}")
                        info.size = size
                        tar.addfile(info, io.BytesIO(random.Random(i).randbytes(size)))
            self.put(f"w-{number}.tar", out.getvalue())
        stages = ["webdataset: {filenames: ['{}/w-0.tar', '{}/w-1.tar'],"
                  " columns: {image: jpg, label: cls}}",
                  "shuffle: {buffer_size: 40, seed: 1}", "batch: 16"]
        self.assert_same(stages, "s3://bucket")

    def test_folders_of_classes(self):
        self.store.page = 5
        for label, name in enumerate(("cat", "dog", "owl")):
            for i in range(9):
                self.put(f"zoo/{name}/deep-{i % 2}/{i}.jpg", random.Random(i).randbytes(50 * i))
            self.put(f"zoo/{name}/notes.txt", b"not a picture")
        self.put("zoo/.hidden/0.jpg", b"not a class")
        self.put("zoo/top.jpg", b"of no class")
        for more in ("", ", class_names: [owl, cat]"):
            stages = ["directory: {directory: '{}/zoo'%s, extensions: [.jpg], shuffle: true, seed: 4}"
                      % more, "batch: 8"]
            here = self.rows(self.stream([stage.replace("{}", str(self.path)) for stage in stages]))
            there = self.rows(self.stream([stage.replace("{}", "s3://bucket") for stage in stages]))
            self.assertEqual([row.replace("s3://bucket", str(self.path)) for row in there], here)
        self.assertEqual(self.store.refused, [])
        file = self.stream(["directory: {directory: 's3://bucket/none', extensions: [.jpg]}", "batch: 8"])
        self.assertIn("s3://bucket/none", self.complaint(file))

    def test_arrays(self):
        header = b"{'descr': '<i8', 'fortran_order': False, 'shape': (2000, 3), }"
        header += b" " * (64 - (10 + len(header) + 1) % 64) + b"\n"
        self.put("a.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header
                 + struct.pack("<6000q", *range(6000)))
        stages = ["from_tensor_slices: {value: {npy: '{}/a.npy'}}", "shuffle: {buffer_size: 9, seed: 1}",
                  "batch: 100"]
        self.assert_same(stages, "s3://bucket")

    def test_analyze(self):
        self.put("in.txt", b"".join(b"word%d\n" % (i * i % 97) for i in range(3000)))
        learned = []
        for where in (str(self.path), "s3://bucket"):
            file = self.stream([f"text_line: {{filenames: '{where}/in.txt'}}",
                                "string_lookup", "batch: 64"])
            out = self.path / f"learned-{len(learned)}"
            run = subprocess.run([TUNDISH, "analyze", file, "--analysis", str(out)], env=self.environment,
                                 capture_output=True, text=True)
            self.assertEqual(run.returncode, 0, run.stderr + run.stdout)
            learned.append(sorted(path.name for path in out.rglob("*")))
            learned.append(self.rows(file, "--analysis", str(out)))
        self.assertEqual(learned[1], learned[3])
        self.assertTrue(learned[0])

    def test_index(self):
        self.put_numbers("a.txt", 5000)
        self.environment.update(AWS_ENDPOINT_URL=self.store.url, AWS_REGION=REGION)
        command = [TUNDISH, "index", "--kind", "text_line", "--json"]
        found = []
        for where in (str(self.path), "s3://bucket"):
            out = subprocess.run([*command, f"{where}/a.txt"], env=self.environment,
                                 capture_output=True, text=True)
            self.assertEqual(out.returncode, 0, out.stderr)
            found.append({key: value for key, value in json.loads(out.stdout).items()
                          if key in ("records", "bytes", "hash")})
        self.assertEqual(found[0], found[1])


if __name__ == "__main__":
    unittest.main()
