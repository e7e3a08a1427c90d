"""fetch: once: the nodes of a job fetch each object once between them, and rows travel."""

import gzip
import json
import os
import random
import re
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from nodes_rig import NodesRig, end, main  # noqa: E402
from rig import TUNDISH, batches, place  # noqa: E402
from small_files import tar  # noqa: E402
from test_records import record  # noqa: E402
from test_records import write as write_records  # noqa: E402
from test_remote import RemoteRig  # noqa: E402
from test_remote_formats import PARQUET  # noqa: E402

ONCE, DATA = ", fetch: once", "{replicas: 1, auto_shard: DATA}"


class FetchOnce(NodesRig, RemoteRig):
    """A server makes a slow request again once it knows how long requests take, after 31 of them. Each
    here makes fewer."""

    def fetched(self):
        """What the store was asked for of each object, by its bytes: {name: how often each}. Without the
        last bytes, by which a node learns what is in a Parquet file."""
        times = {}
        for method, target, span in self.store.requests:
            data = self.store.objects.get(target)
            if method != "GET" or data is None or span.startswith("bytes=-"):
                continue
            first, last = map(int, re.fullmatch(r"bytes=(\d+)-(\d+)", span).groups())
            counts = times.setdefault(target.removeprefix("/bucket/"), [0] * len(data))
            for at in range(first, min(last + 1, len(data))):
                counts[at] += 1
        return times

    def assert_once(self, *names):
        fetched = self.fetched()
        self.assertEqual(sorted(fetched), sorted(names))
        for name, counts in fetched.items():
            self.assertEqual((min(counts), max(counts)), (1, 1), name)

    def numbered(self, count):
        names = [f"part-{i}.txt" for i in range(count)]
        for i, name in enumerate(names):
            self.put_numbers(name, 400 + 90 * i, 10000 * i)
        return names

    def serve_apart(self, file, nodes):
        return self.serve_nodes([file] * nodes, apart=True)

    def rows_of(self, stages, nodes, more, epochs=1, distribute=DATA):
        """What each node delivers, and the bytes that were fetched for it."""
        file = self.stream(stages, more, distribute=distribute, deliver=f"{{epochs: {epochs}}}")
        self.store.requests.clear()
        job = self.serve_apart(file, nodes)
        got = self.read_all(nodes, 1)
        self.assertEqual(self.stop_nodes(job), [0] * nodes, self.all_logs())
        for rank in range(nodes):
            self.assertEqual(got[rank, 0][-1], "end_of_stream")
            self.node_log(rank).unlink()
        return {rank: batches(got[rank, 0]) for rank in range(nodes)}

    LINES = ["list_files: {file_pattern: 's3://bucket/part-*.txt', seed: 3}",
             "interleave: {dataset: [text_line], cycle_length: 3}",
             "decode_csv: {field_delim: ' ', record_defaults: [int64, string], "
             "column_names: [value, rest]}", "select: value",
             "shuffle: {buffer_size: 300, seed: 5}", "batch: 16"]

    def assert_same_and_once(self, stages, nodes, *names, epochs=1):
        each = self.rows_of(stages, nodes, "", epochs)
        self.assertGreater(max(map(max, self.fetched().values())), 1)
        self.assertEqual(self.rows_of(stages, nodes, ONCE, epochs), each)
        self.assert_once(*names)
        self.assertEqual(self.store.refused, [])

    def test_of_three_nodes_each_byte_comes_once(self):
        names = self.numbered(5)
        self.assert_same_and_once(self.LINES, 3, *names, epochs=2)

    def test_of_two_nodes_records_and_packed_files_come_once(self):
        names = [f"part-{i}.tfrecord" for i in range(3)]
        sizes = [3, 40000, 0, 17, 900, 20000, 70000, 5, 41] * 2
        for i, name in enumerate(names):
            write_records(self.path / name,
                          [record(100 * i + k, size + i) for k, size in enumerate(sizes)])
            self.put(name, (self.path / name).read_bytes())
        urls = ", ".join(f"'s3://bucket/{name}'" for name in names)
        self.assert_same_and_once([f"tfrecord: [{urls}]", "permute: {seed: 4}", "batch: 4"], 2,
                                  *names)

        names = [f"part-{i}.gz" for i in range(3)]
        for i, name in enumerate(names):
            self.put(name, gzip.compress(
                "".join(f"{1000 * i + n}\n" for n in range(500)).encode()))
        urls = ", ".join(f"'s3://bucket/{name}'" for name in names)
        self.assert_same_and_once(
            [f"text_line: {{filenames: [{urls}], compression_type: GZIP}}",
             "string_to_number: {out_type: int64}", "shuffle: {buffer_size: 100}", "batch: 32"], 2,
            *names)

    def test_of_three_nodes_samples_in_tars_come_once(self):
        names = [f"part-{i}.tar" for i in range(4)]
        for i, name in enumerate(names):
            samples = []
            for k in range(70):
                samples.append((f"s{i}{k:03}.jpg", random.Random(k).randbytes(k * 70)))
                samples += [(f"s{i}{k:03}.cls", b"%d" % i)] * bool(k % 5)
            self.put(name, tar(samples))
        urls = ", ".join(f"'s3://bucket/{name}'" for name in names)
        self.assert_same_and_once(
            [f"webdataset: {{filenames: [{urls}], columns: {{label: cls, value: [png, jpg]}}, "
             "missing: skip}", "select: value", "shuffle: {buffer_size: 50, seed: 1}", "batch: 16"],
            3, *names)

    PARTS = ["list_files: {file_pattern: 's3://bucket/part-*.parquet', seed: 3}",
             "interleave: {dataset: [parquet], cycle_length: 3}",
             "map: {value: \"cast(n, 'int64')\"}", "select: value",
             "shuffle: {buffer_size: 12, seed: 5}", "batch: 3"]

    def put_parquet(self):
        """Four files, as long as a footer is not what is read of them."""
        names = [f"part-{i}.parquet" for i in range(4)]
        for name in names:
            self.put(name, (PARQUET / name).read_bytes())
        return names

    def test_of_parquet_each_column_comes_once(self):
        names = self.put_parquet()
        each = self.rows_of(self.PARTS, 3, "", 2)
        chunks = {name: self.fetched()[name][4] for name in names}
        self.assertEqual(self.rows_of(self.PARTS, 3, ONCE, 2), each)
        self.assertGreater(max(chunks.values()), 1)
        self.assertEqual({name: self.fetched()[name][4] for name in names}, dict.fromkeys(names, 1))
        for name in names:
            self.assertEqual(set(self.fetched()[name]), {1}, name)
        self.assertEqual(self.store.refused, [])

    def test_of_rows_that_decide_the_order_each_comes_once(self):
        names = self.numbered(3)
        stages = [*self.LINES[:4], 'filter: "value % 3 == 0"', *self.LINES[4:]]
        self.assert_same_and_once(stages, 2, *names)

    def test_what_is_not_at_a_url_is_read_by_every_node(self):
        names = self.numbered(2)
        (self.path / "own.txt").write_text("".join(f"{n} x\n" for n in range(200)))
        columns = "field_delim: ' ', record_defaults: [int64, string], column_names: [value, rest]"
        files = ", ".join(f"'{where}'" for where in
                          [*(f"s3://bucket/{name}" for name in names), f"{self.path}/own.txt"])
        self.assert_same_and_once([f"csv: {{filenames: [{files}], {columns}}}", "select: value",
                                   "shuffle: {buffer_size: 300, seed: 5}", "batch: 16"], 2, *names)

    def joined(self, got):
        """The values of each step, those of all nodes together."""
        steps = {}
        for rank in sorted(got):
            for epoch, step, values in got[rank]:
                steps.setdefault((epoch, step), []).extend(values)
        return steps

    def test_a_rank_that_is_killed_costs_no_row_also_with_other_nodes_after(self):
        self.numbered(5)
        self.assert_kill_costs_no_row(self.LINES, 20)

    def test_a_rank_that_is_killed_costs_no_row_of_parquet(self):
        self.put_parquet()
        self.assert_kill_costs_no_row([*self.PARTS[:-2], "repeat: 40", *self.PARTS[-2:]], 20)

    def assert_kill_costs_no_row(self, stages, taken):
        expected = self.joined(self.rows_of(stages, 2, ""))
        file = self.stream(stages, ONCE, distribute=DATA)
        self.serve_apart(file, 2)
        holder = self.read_node(0, "--batches", str(taken), "--hold")
        other = self.read_node(1)
        self.wait_for_line(holder, "place ")
        token = place(self.waited_through[holder])
        os.kill(self.ranks[1], signal.SIGKILL)
        self.assertIn("E_SERVER_GONE", self.whole(other)[-1])
        holder.kill()
        for rank in self.ranks.values():
            end(rank)
        for nodes in (2, 3):
            self.ranks.clear()
            for path in self.path.glob("log.*"):
                path.unlink()
            job = self.serve_apart(file, nodes)
            got = self.read_all(nodes, 1, "--place", token)
            self.assertEqual(self.joined({rank: batches(got[rank, 0]) for rank in range(nodes)}),
                             {key: values for key, values in expected.items() if key[1] >= taken})
            self.assertEqual(self.stop_nodes(job), [0] * nodes)

    def plan_of(self, distribute, *options):
        file = self.stream(self.LINES, ONCE, distribute=distribute)
        out = subprocess.run([TUNDISH, "plan", file, *options], env=self.environment,
                             capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr)
        return out.stdout

    def test_the_plan_says_who_fetches(self):
        self.numbered(3)
        self.assertIn("fetch: once: there is one node", self.plan_of(DATA))
        self.assertIn("fetch: once: one of the 3 nodes fetches a file, and sends its rows to the others",
                      self.plan_of(DATA, "--num-workers", "3"))
        self.assertIn("fetch: once: files are sharded, so each has one reader anyway",
                      self.plan_of("{replicas: 1, auto_shard: FILE}", "--num-workers", "2"))
        once = json.loads(self.plan_of(DATA, "--num-workers", "3", "--json"))
        self.assertEqual(once["remote"]["fetch"], "once")

    def status_of(self, rank, *options):
        out = subprocess.run([TUNDISH, "status", "--interval", "10", *options], text=True, check=True,
                             env={**self.environment, "TUNDISH_SERVER": self.node_socket(rank)},
                             capture_output=True)
        return out.stdout

    def passed_on(self, rank):
        return json.loads(self.status_of(rank, "--json"))["links"][0]["passed_on_bytes"]

    def test_the_status_says_what_was_passed_on(self):
        """Of 16 rows of a batch 8 are for each node, so about half of each file travels."""
        names = self.numbered(2)
        self.serve_apart(self.stream(self.LINES, ONCE, distribute=DATA), 2)
        holders = [self.read_node(rank, "--batches", "50", "--hold") for rank in (0, 1)]
        for holder in holders:
            self.wait_for_line(holder, "place ")
        for rank, name in enumerate(names):
            # Metrics are brought up to date ten times a second, also in the middle of a file.
            self.wait_for(lambda: self.passed_on(rank) > 10000)
            self.assertLess(self.passed_on(rank), len(self.store.objects[f"/bucket/{name}"]))
            self.assertIn("of files read here for other nodes", self.status_of(rank))
        for holder in holders:
            holder.kill()

    def test_files_that_are_dealt_have_one_reader_anyway(self):
        names = self.numbered(4)
        dealt = "{replicas: 1, auto_shard: FILE}"
        each = self.rows_of(self.LINES, 2, "", distribute=dealt)
        self.assertEqual(self.rows_of(self.LINES, 2, ONCE, distribute=dealt), each)
        self.assert_once(*names)


if __name__ == "__main__":
    main()
