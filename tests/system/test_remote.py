"""Files at URLs: the rows of local files, whatever the network and the store do meanwhile."""

import os
import random
import signal
import struct
import subprocess
import sys
import threading
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from rig import TUNDISH, Rig, batches, place, stop  # noqa: E402
from small_files import tfrecords  # noqa: E402
from store import ACCESS_KEY, REGION, SECRET, Store  # noqa: E402

PART = 64 << 10


class RemoteRig(Rig):
    """The same files in the test's folder and in a store."""

    def setUp(self):
        super().setUp()
        for name in [name for name in self.environment if name.startswith(("AWS_", "GS_"))]:
            del self.environment[name]
        self.environment.update(
            AWS_ACCESS_KEY_ID=ACCESS_KEY,
            AWS_SECRET_ACCESS_KEY=SECRET,
            AWS_EC2_METADATA_DISABLED="true",
            HOME=str(self.path),
        )
        self.store = self.open_store(is_signed=True)

    def open_store(self, **options):
        store = Store(**options)
        self.addCleanup(store.close)
        return store

    def put(self, name, data):
        (self.path / name).parent.mkdir(parents=True, exist_ok=True)
        (self.path / name).write_bytes(data)
        self.store.put(f"/bucket/{name}", data)

    def put_numbers(self, name, count, start=0):
        """Lines of a few hundred bytes, each with its number."""
        filler = random.Random(count)
        lines = [b"%d %0*d\n" % (i, filler.randrange(1, 300), i) for i in range(start, start + count)]
        self.put(name, b"".join(lines))

    def remote(self, more=""):
        return f"remote: {{endpoint: '{self.store.url}', region: {REGION}, part: 64KiB{more}}}"

    def stream(self, stages, more="", **options):
        return self.pipeline(stages, seed=f"seed: 1\n{self.remote(more)}", **options)

    def rows(self, file, *options):
        """What peek prints of the stream's batches."""
        command = [TUNDISH, "peek", file, "--json", *options]
        out = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr + out.stdout)
        return [line for line in out.stdout.splitlines() if '"columns"' in line]

    def complaint(self, file):
        out = subprocess.run(
            [TUNDISH, "peek", file, "--json"], env=self.environment, capture_output=True, text=True
        )
        self.assertNotEqual(out.returncode, 0, out.stdout)
        return out.stderr + out.stdout

    def assert_same(self, stages, *places, more=""):
        """The stages with `{}` for the folder give the same from here and from these places."""
        here = self.rows(self.stream([stage.replace("{}", str(self.path)) for stage in stages]))
        self.assertTrue(here)
        for where in places or ("s3://bucket", self.store.url + "/bucket"):
            file = self.stream([stage.replace("{}", where) for stage in stages], more)
            self.assertEqual(self.rows(file), here, where)
        self.assertEqual(self.store.refused, [])
        self.assertEqual(self.store.left(), [])


def numbers(*names):
    """The first number of each line."""
    names = ", ".join(f"'s3://bucket/{name}'" for name in names)
    return [
        f"csv: {{filenames: [{names}], field_delim: ' ', record_defaults: [int64, string], "
        "column_names: [value, rest]}",
        "select: value",
    ]


LINES = [
    "text_line: {filenames: ['{}/a.txt', '{}/b.txt']}",
    "shuffle: {buffer_size: 300, seed: 5}",
    "batch: 32",
]


class Remote(RemoteRig):
    def put_lines(self):
        self.put_numbers("a.txt", 2000)
        self.put_numbers("b.txt", 700, 2000)

    def put_public(self):
        """The same without signatures, for http."""
        self.store.is_signed = False
        self.put_lines()

    def test_text_is_read_from_a_store(self):
        self.put_lines()
        self.assert_same(LINES, "s3://bucket")

    def test_text_is_read_over_http(self):
        self.put_public()
        self.assert_same(LINES, self.store.url + "/bucket")

    def test_records_are_read(self):
        out = self.path / "click"
        command = [
            os.environ["TUNDISH_CLICKLOG"],
            "--out",
            str(out),
            "--rows",
            "3000",
            "--only",
            "records",
        ]
        subprocess.run(command, check=True, capture_output=True)
        for file in out.rglob("*.tfrecord"):
            self.put(str(file.relative_to(self.path)), file.read_bytes())
        stages = [
            "list_files: {file_pattern: '{}/click/*.tfrecord', seed: 1}",
            "interleave: {dataset: [tfrecord], cycle_length: 2}",
            "shuffle: {buffer_size: 500, seed: 2}",
            "batch: 64",
        ]
        self.assert_same(stages, "s3://bucket")

    def test_long_records_lie_across_parts(self):
        """Read straight into a batch. Parts end in a record, at its end, in its checksum, after it."""
        draw, records, at = random.Random(4), [], 0
        for left in (-20000, 0, 1, 3, 4, -2 * PART):  # of the part, where the bytes of the record end
            end = (at // PART + 1) * PART - left
            records.append(draw.randbytes(end - at - 12))
            at = end + 4
        records.append(draw.randbytes(20000))
        self.put("long", tfrecords(records))
        self.serve(self.stream(["tfrecord: 's3://bucket/long'", "batch: 3"]))
        said = self.lines(self.start([os.environ["TUNDISH_RECEIVED"], self.path]))
        self.assertEqual(said, [f"received {len(records)}"])
        values = b"".join(struct.pack("<Q", len(record)) + record for record in records)
        self.assertTrue((self.path / "value.values").read_bytes() == values)

    def test_csv_fixed_lengths_and_packed_files_are_read(self):
        self.put("t.csv", b"".join(b"%d,name %d,%d.5\n" % (i, i, i) for i in range(9000)))
        self.put("fixed", random.Random(3).randbytes(30 * 9001))
        packed = subprocess.run(
            ["gzip", "-c"], input=(self.path / "t.csv").read_bytes(), capture_output=True, check=True
        ).stdout
        self.put("t.csv.gz", packed)
        csv = (
            "csv: {filenames: '{}/t.csv', record_defaults: [int32, string, float32], "
            "column_names: [value, name, x]}"
        )
        gzip = "text_line: {filenames: '{}/t.csv.gz', compression_type: GZIP}"
        fixed = "fixed_length_record: {filenames: '{}/fixed', record_bytes: 30}"
        for source in (csv, gzip, fixed):
            self.assert_same(
                [source, "shuffle: {buffer_size: 100, seed: 1}", "batch: 50"], "s3://bucket"
            )

    def test_a_pattern_is_listed_page_by_page_and_sorted(self):
        self.store.page = 7
        for i in range(40):
            self.put_numbers(f"in/x-{i}.txt", 20, 20 * i)
        self.put_numbers("in/y-0.txt", 20)
        self.put_numbers("in/x-deep/x-1.txt", 20)
        stages = [
            "list_files: {file_pattern: '{}/in/x-*.txt', seed: 3}",
            "interleave: {dataset: [text_line], cycle_length: 4}",
            "batch: 16",
        ]
        self.assert_same(stages, "s3://bucket")
        lists = [target for _, target, _ in self.store.requests if "list-type=2" in target]
        self.assertGreaterEqual(len(lists), 6)

    def test_names_of_all_bytes_are_signed_and_found(self):
        self.store.page = 2
        names = ["in/a b+c=d*e.txt", "in/~(q)'!.txt", "in/ü%41&#.txt", "in/x;y,z@$.txt"]
        for number, name in enumerate(names):
            self.put_numbers(name, 30, 30 * number)
        stages = [
            "list_files: {file_pattern: '{}/in/*.txt', shuffle: false}",
            "flat_map: {dataset: [text_line]}",
            "batch: 16",
        ]
        self.assert_same(stages, "s3://bucket")

    def test_files_that_rows_name_are_read(self):
        for i in range(150):
            self.put(f"in/{i:03}.bin", random.Random(i).randbytes(i * 50))
        self.put("in/150.bin", random.Random(1).randbytes(3 * PART + 5))
        stages = ["list_files: {file_pattern: '{}/in/*.bin', shuffle: false}", "read_file", "batch: 32"]
        self.assert_same(stages, "s3://bucket")

    def test_vocabularies_are_read(self):
        self.put("words.txt", b"".join(b"word%d\n" % i for i in range(20000)))
        self.put("in.txt", b"".join(b"word%d\n" % (i * 7 % 30000) for i in range(2000)))
        stages = [
            "text_line: {filenames: '{}/in.txt'}",
            "string_lookup: {vocabulary: '{}/words.txt'}",
            "batch: 64",
        ]
        self.assert_same(stages, "s3://bucket")

    def test_faults_of_the_way_pass_without_a_trace(self):
        self.put_lines()
        self.store.fail("reset", 3, "a.txt")
        self.store.fail("short", 3, "a.txt")
        self.store.fail("wrong_range", 2, "a.txt")
        self.store.fail("status", 3, "b.txt", (503, "SlowDown", {}))
        self.store.fail("status", 1, "b.txt", (503, "SlowDown", {"Retry-After": 1}))
        self.store.fail("status", 1, "b.txt", (500, "InternalError", {}))
        self.store.fail("status", 1, "b.txt", (400, "RequestTimeout", {}))
        self.assert_same(LINES, "s3://bucket")

    def test_an_outage_is_told_as_one_and_ends_for_who_opens_again(self):
        self.put_numbers("a.txt", 2000)
        self.put_numbers("b.txt", 20000)  # more than is fetched before the first trainer comes
        a, b = ("text_line: {filenames: 's3://bucket/%s.txt'}" % name for name in "ab")
        both = "text_line: {filenames: ['s3://bucket/a.txt', 's3://bucket/b.txt']}"
        for stages in (
            [both],
            [both, "shuffle: {buffer_size: 5000}"],
            [both, "window: 7", "unbatch"],
            [f"zip: [[{{{both}}}], [{{from_tensor_slices: {{n: [1, 2]}}}}, repeat]]"],
            [f"sample_from_datasets: {{datasets: [[{{{a}}}], [{{{b}}}]], weights: [0.9, 0.1], seed: 1}}"],
            ["list_files: {file_pattern: 's3://bucket/*.txt'}", "interleave: {dataset: [text_line], cycle_length: 2}"],
        ):
            with self.subTest(stages):
                file = self.stream([*stages, "batch: 100"], ", retries: 0, connections: 2")
                server = self.serve(file)
                undisturbed = self.lines(self.read())
                stop(server, signal.SIGTERM)
                server = self.serve(file)
                self.store.fail("status", 999, "b.txt", (503, "SlowDown", {}))
                self.assertIn("E_SYSTEM", self.lines(self.read())[-1])
                self.store.faults.clear()
                # A part that failed a moment ago is not asked for again.
                while "E_SYSTEM" in (lines := self.lines(self.read()))[-1]:
                    pass
                self.assertEqual(batches(lines), batches(undisturbed))
                stop(server, signal.SIGTERM)

    def test_a_connection_that_stalls_is_cut(self):
        self.put_lines()
        event = threading.Event()
        self.addCleanup(event.set)
        self.store.fail("hang", 1, "a.txt", event)
        self.assert_same(LINES, "s3://bucket")

    def test_http_is_redirected_and_a_store_is_not(self):
        self.put_public()
        self.store.fail("redirect", 2, "a.txt", self.store.url + "/bucket/a.txt?again")
        self.assert_same(LINES, self.store.url + "/bucket")
        self.store.fail("redirect", 9, "a.txt", "http://127.0.0.1:1/")
        file = self.stream(["text_line: {filenames: 's3://bucket/a.txt'}", "batch: 9"])
        self.assertIn("the store sends us elsewhere", self.complaint(file))

    def test_a_server_that_redirects_for_ever_or_has_no_end_of_headers_is_left(self):
        self.put_public()
        url = self.store.url + "/bucket/a.txt"
        file = self.stream([f"text_line: {{filenames: '{url}'}}", "batch: 9"], ", retries: 1")
        self.store.fail("redirect", 999, "a.txt", url)
        self.assertIn(f"{url}: ", self.complaint(file))
        self.assertLess(len(self.store.requests), 50)
        self.store.faults.clear()
        self.store.fail("header", 999, "a.txt", 4 << 20)
        self.assertIn(f"{url}: ", self.complaint(file))

    def test_servers_without_tags_or_ranges_are_read_as_far_as_that_goes(self):
        self.put_public()
        self.store.tags = False
        self.assert_same(LINES, self.store.url + "/bucket")
        self.store.ranges = False
        file = self.stream([LINES[0].replace("{}", self.store.url + "/bucket"), "batch: 9"])
        self.assertIn("does not send parts of files", self.complaint(file))
        self.put_numbers("a.txt", 20)
        self.put_numbers("b.txt", 20)
        for ending in ("length", "chunks", "close"):
            self.store.ending = ending
            self.assert_same(LINES, self.store.url + "/bucket")

    def test_ranges_without_the_object_s_size_are_read(self):
        self.put_public()
        self.store.totals = False
        self.assert_same(LINES, self.store.url + "/bucket")
        for ending in ("chunks", "close"):
            self.store.ending = ending
            self.put_numbers("a.txt", 20)
            self.put_numbers("b.txt", 20)
            self.assert_same(LINES, self.store.url + "/bucket")

    def assert_resumes(self, stream, first, then):
        """The same batches where `first` of the stream was, and `then` is. Returns a place."""
        server = self.serve(stream(first))
        lines = self.lines(self.read("--batches", "7"))
        stop(server)
        server = self.serve(stream(then))
        rest = self.lines(self.read("--place", place(lines)))
        stop(server)
        whole = self.serve(stream(first))
        self.assertEqual(batches(lines) + batches(rest), batches(self.lines(self.read())))
        stop(whole)
        return place(lines)

    def test_a_place_is_good_at_another_store(self):
        self.put_numbers("data/a.txt", 60)
        self.put_numbers("data/b.txt", 80, 60)
        self.put("data/c.txt", b"%d %s\n" % (140, bytes(9 << 20)))  # which is sent in parts
        parsed = ["regex_replace: {columns: value, pattern: ' .*', rewrite: ''}",
                  "string_to_number: {columns: value, out_type: int64}"]

        def stream(pattern):
            stages = [f"list_files: {{file_pattern: '{pattern}', shuffle: false}}",
                      "interleave: {dataset: [text_line], cycle_length: 2}",
                      "shuffle: {buffer_size: 50, seed: 3}", *parsed, "batch: 5"]
            return self.stream(stages, deliver="{epochs: 1}")

        here, there = str(self.path / "data/*.txt"), "s3://bucket/data/?.t*"
        at_store = self.assert_resumes(stream, there, here)
        of_here = self.assert_resumes(stream, here, there)
        self.store.sent_part = 16 << 20  # as another client had copied them to another store
        server = self.serve(stream(there))
        self.assertNotIn("E_PLACE", "".join(self.lines(self.read("--place", at_store))))
        stop(server)
        self.put("data/b.txt", (self.path / "data/b.txt").read_bytes()[::-1])
        for token, pattern in ((at_store, here), (of_here, there)):
            server = self.serve(stream(pattern))
            self.assertIn("changed since the place was saved", "".join(
                self.lines(self.read("--place", token))))
            stop(server)

    def test_a_place_is_good_at_an_address_that_is_signed_again(self):
        self.store.is_signed = False  # the addresses are
        self.put_numbers("a.txt", 60)

        def stream(signature, name="a.txt"):
            url = f"{self.store.url}/bucket/{name}?X-Amz-Date={signature}&X-Amz-Signature={signature}"
            return self.stream([f"text_line: {{filenames: '{url}'}}",
                                "regex_replace: {columns: value, pattern: ' .*', rewrite: ''}",
                                "string_to_number: {columns: value, out_type: int64}", "batch: 5"],
                               deliver="{epochs: 1}")

        self.assert_resumes(stream, "20260101", "20270202")
        server = self.serve(stream("20270202"))
        token = place(self.lines(self.read("--batches", "3")))
        stop(server)
        self.put_numbers("b.txt", 60)
        self.serve(stream("20270202", "b.txt"))
        self.assertIn("the place belongs to another pipeline", "".join(
            self.lines(self.read("--place", token))))

    def test_empty_objects_have_no_rows(self):
        self.put_numbers("a.txt", 50)
        self.put("b.txt", b"")
        self.assert_same(LINES, "s3://bucket")

    def test_the_first_batch_waits_for_no_more_than_its_records(self):
        records = [random.Random(i).randbytes(40000) for i in range(200)]
        self.put("a.tfrecord", tfrecords(records))
        event = threading.Event()
        self.addCleanup(event.set)
        stages = ["tfrecord: {filenames: '{}/a.tfrecord'}", "batch: 2"]
        here = self.rows(self.stream([stage.replace("{}", str(self.path)) for stage in stages]))
        file = self.stream([stage.replace("{}", "s3://bucket") for stage in stages], ", connections: 8")
        self.store.fail("none", 60, "a.tfrecord")
        self.store.fail("hang", 999, "a.tfrecord", event)
        out = self.rows(file, "--steps", "1")
        self.assertEqual(out, here[:1])

    def first_batch(self, file):
        self.serve(file)
        batch = self.read("--batches", "1")
        self.assertEqual(batch.wait(timeout=120), 0)
        return batches(self.lines(batch))

    def test_the_first_batch_waits_for_a_list_and_for_beginnings_of_files_asked_for_at_once(self):
        for i in range(6):
            self.put(f"in/{i}", b"".join(b"%d %0500d\n" % (9000 * i + k, k) for k in range(9000)))
        stages = [
            "list_files: {file_pattern: '{}/in/*', seed: 3}",
            "interleave: {dataset: [csv: {field_delim: ' ', record_defaults: [int64, string], "
            "column_names: [value, rest]}], cycle_length: 4}",
            "select: value",
            "batch: 16",
        ]
        here = self.peek(self.stream([stage.replace("{}", str(self.path)) for stage in stages]))[0]
        file = self.stream([stage.replace("{}", "s3://bucket") for stage in stages])
        Path(file).write_text(Path(file).read_text().replace("part: 64KiB", "part: 8MiB"))
        event = threading.Event()
        self.addCleanup(event.set)
        self.store.fail("hang", 999, "/in/", event)  # after half of the first part
        self.assertEqual(self.first_batch(file), here[:1])
        lists = [target for _, target, _ in self.store.requests if "list-type=2" in target]
        self.assertEqual(len(lists), 1)
        parts = [target for _, target, span in self.store.requests if span.startswith("bytes=0-")]
        self.assertEqual(len(parts), len(set(parts)))
        self.assertGreaterEqual(len(parts), 4)

    def test_a_start_looks_once_at_each_name_at_the_same_time(self):
        names = [f"in/{i}.txt" for i in range(6)]
        for number, name in enumerate(names):
            self.put_numbers(name, 50, 50 * number)
        held = threading.Barrier(len(names))
        self.store.hold = lambda method: held.wait(60) if method == "HEAD" else None
        file = self.stream([*numbers(*names), "batch: 16"])
        self.assertEqual(len(self.first_batch(file)), 1)
        looks = [target for method, target, _ in self.store.requests if method == "HEAD"]
        self.assertEqual(sorted(looks), [f"/bucket/{name}" for name in names])

    def test_a_part_is_of_one_version_of_its_object(self):
        old = b"1 %0300d\n" % 1 * 200
        self.put("a.txt", old)
        file = self.stream([*numbers("a.txt"), "batch: 16"])
        self.store.fail("replace", 1, "a.txt", old.replace(b"1 ", b"2 "))
        text = self.complaint(file)
        self.assertIn("s3://bucket/a.txt: the object was changed or replaced", text)

    def test_100000_keys_are_listed(self):
        for i in range(100000):
            self.store.objects[f"/bucket/many/{i:06}"] = b""
        file = self.stream(["list_files: {file_pattern: 's3://bucket/many/*', shuffle: false}",
                            "batch: 100000"])
        rows = self.rows(file)
        self.assertEqual(len(rows), 1)
        names = [f"s3://bucket/many/{i:06}" for i in range(100000)]
        self.assertEqual([word for word in rows[0].split('"') if word.startswith("s3://")], names)
        self.assertEqual(sum("list-type=2" in target for _, target, _ in self.store.requests) % 100, 0)

    def test_an_object_without_a_tag_that_shrinks_is_an_error_that_names_it(self):
        self.store.tags = False
        self.put_numbers("a.txt", 30000)
        file = self.stream([*numbers("a.txt"), "batch: 16"], ", connections: 1, cache_bytes: 128KiB")
        self.serve(file)
        trainer = self.read_paced()
        trainer.take(2)
        self.store.put("/bucket/a.txt", b"9 9\n" * 1000)
        lines = trainer.finish()
        self.assertTrue(
            any("s3://bucket/a.txt" in line and "changed" in line for line in lines), lines[-3:]
        )

    def test_a_server_that_tells_no_versions_is_named_once(self):
        self.put_public()
        for name in "ab":
            self.put_numbers(f"{name}.txt", 30000)
        url = self.store.url + "/bucket"
        stages = [stage.replace("s3://bucket", url) for stage in numbers("a.txt", "b.txt")]
        file = self.stream([*stages, "batch: 16"], ", connections: 1", deliver="{epochs: 1}")
        told = f"{self.store.url}: it sends neither ETag nor Last-Modified"
        for tags in (True, False):
            self.store.tags = tags
            server = self.serve(file)
            self.lines(self.read())
            stop(server)
            self.assertEqual(self.log().count(told), int(not tags))

    def test_an_object_that_changes_is_an_error_that_names_it(self):
        self.put_numbers("a.txt", 30000)
        file = self.stream([*numbers("a.txt"), "batch: 16"], ", connections: 1, cache_bytes: 128KiB")
        self.serve(file)
        trainer = self.read_paced()
        trainer.take(2)
        self.store.put("/bucket/a.txt", b"9 9\n" * 1000000)
        lines = trainer.finish()
        self.assertTrue(
            any("s3://bucket/a.txt" in line and "changed" in line for line in lines), lines[-3:]
        )

    def test_refusals_carry_the_store_s_code_and_a_remedy(self):
        self.put_lines()
        file = self.stream(["text_line: {filenames: 's3://bucket/none.txt'}", "batch: 9"])
        self.assertIn("s3://bucket/none.txt: the store answers 404", self.complaint(file))
        file = self.stream(["list_files: {file_pattern: 's3://nobody/*'}", "batch: 9"])
        self.assertIn("404 NoSuchBucket", self.complaint(file))
        file = self.stream(["list_files: {file_pattern: 's3://bucket/none*'}", "batch: 9"])
        self.assertIn("no file matches s3://bucket/none*", self.complaint(file))
        self.environment["AWS_SECRET_ACCESS_KEY"] = "wrong-secret"
        file = self.stream(["list_files: {file_pattern: 's3://bucket/*'}", "batch: 9"])
        self.assertIn("403 SignatureDoesNotMatch (no): the secret does not belong", self.complaint(file))
        self.assertNotIn("wrong-secret", self.complaint(file))
        file = self.stream(
            ["list_files: {file_pattern: 's3://bucket/*'}", "batch: 9"], ", credentials: none"
        )
        self.assertIn("SignatureDoesNotMatch", self.complaint(file))

    def test_credentials_that_are_missing_are_asked_for(self):
        self.put_lines()
        del self.environment["AWS_ACCESS_KEY_ID"], self.environment["AWS_SECRET_ACCESS_KEY"]
        self.store.fail("status", 999, "", (403, "AccessDenied", {}))
        text = self.complaint(self.stream(numbers("a.txt") + ["batch: 9"]))
        self.assertIn("s3://bucket/a.txt: the store answers 403 AccessDenied", text)
        self.assertIn("no credentials were found; set them (AWS_ACCESS_KEY_ID", text)
        self.assertLessEqual(len(self.store.requests), 2)

    def test_a_server_that_is_not_there_is_named_with_a_remedy(self):
        file = Path(self.stream(numbers("a.txt") + ["batch: 9"], ", retries: 1"))
        file.write_text(file.read_text().replace(self.store.url, "http://127.0.0.1:1"))
        text = self.complaint(file)
        self.assertIn("s3://bucket/a.txt: no connection to the server: ", text)
        self.assertIn("check the network and remote.endpoint", text)

    def test_refusals_that_will_not_pass_are_not_tried_again(self):
        self.put_lines()
        for code, name, headers, sentence in (
            (301, "PermanentRedirect", {"x-amz-bucket-region": "eu-9"}, "in the region eu-9; set remote"),
            (301, "PermanentRedirect", {}, "the bucket is elsewhere"),
            (403, "RequestTimeTooSkewed", {}, "this machine's clock is wrong"),
            (400, "ExpiredToken", {}, "the credentials have expired"),
            (403, "InvalidAccessKeyId", {}, "the store does not know the access key"),
            (403, "AccessDenied", {}, "the credentials may not read it"),
            (403, "InvalidObjectState", {}, "the object is archived"),
        ):
            self.store.requests.clear()
            self.store.faults.clear()
            self.store.fail("status", 999, "b.txt", (code, name, headers))
            text = self.complaint(self.stream([stage.replace("{}", "s3://bucket") for stage in LINES]))
            self.assertIn(f"s3://bucket/b.txt: the store answers {code}", text)
            self.assertIn(sentence, text)
            asked = [method for method, target, _ in self.store.requests if "b.txt" in target]
            self.assertLessEqual(len(asked), 2, (name, asked))  # one for its size, one for its bytes
            self.assertNotIn(SECRET, text)

    def test_remedies_of_an_address_name_no_setting_of_a_store(self):
        self.put_public()
        url = self.store.url + "/bucket"
        for code, name, sentence in (
            (302, "Found", "does not say where (Location); write the address that it should lead to"),
            (301, "PermanentRedirect", "write the address that it has there"),
            (400, "ExpiredToken", "sign the address again"),
            (403, "SignatureDoesNotMatch", "sign it again"),
            (405, "MethodNotAllowed", "check the address"),
        ):
            self.store.faults.clear()
            self.store.fail("status", 999, "b.txt", (code, name, {}))
            text = self.complaint(self.stream([stage.replace("{}", url) for stage in LINES]))
            self.assertIn(f"{url}/b.txt: the server answers {code} {name}", text)
            self.assertIn(sentence, text)
            self.assertNotIn("remote.", text)
            self.assertNotIn("credentials", text)

    def test_credentials_come_from_a_profile_or_a_file(self):
        self.put_lines()
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            del self.environment[name]
        profile = (
            f"[other]\naws_access_key_id = x\n[default]\naws_access_key_id = {ACCESS_KEY}\n"
            f"aws_secret_access_key = {SECRET}\n"
        )
        (self.path / ".aws").mkdir()
        (self.path / ".aws/credentials").write_text(profile)
        self.assert_same(LINES, "s3://bucket")
        (self.path / ".aws/credentials").rename(self.path / "keys")
        self.assert_same(LINES, "s3://bucket", more=", credentials: keys")
        # The end of a line would begin a header of its own.
        for word in (ACCESS_KEY, SECRET):
            (self.path / "keys").write_text(profile.replace(word, f"{word}\rx-amz-acl: public-read"))
            text = self.complaint(self.stream([stage.replace("{}", "s3://bucket") for stage in LINES], ", credentials: keys"))
            self.assertIn("a key or token contains a control character", text)
            self.assertNotIn(word, text)

    def test_a_server_that_is_killed_goes_on_at_the_place(self):
        self.put_lines()
        file = self.stream(
            [*numbers("a.txt", "b.txt"), "shuffle: {buffer_size: 300, seed: 5}", "batch: 16"]
        )
        expected = self.peek(file)[0]
        server = self.serve(file)
        token = place(self.lines(self.read("--batches", "50")))
        stop(server, signal.SIGKILL)
        self.store.fail("reset", 2)
        self.serve(file)
        self.assertEqual(batches(self.lines(self.read("--place", token))), expected[50:])
        self.store.put("/bucket/b.txt", b"1 1\n")
        self.serve_refuses_place(file, token)

    def serve_refuses_place(self, file, token):
        self.end_all()
        self.processes.clear()
        self.serve(file)
        lines = self.lines(self.read("--place", token))
        self.assertTrue(any("b.txt changed since the place was saved" in line for line in lines), lines)


if __name__ == "__main__":
    unittest.main()
