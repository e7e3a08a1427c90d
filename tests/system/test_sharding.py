"""How rows are dealt to several workers, as tundish peek plays them: who parses what, who is told."""

import json
import re
import subprocess
import unittest

from rig import DEADLINE_S, TUNDISH, Rig, batches

ROWS = 6000


class Sharding(Rig):
    def file_of(self, name, rows):
        (self.path / name).write_text("".join(f"{i}\n" for i in rows))

    def peeked(self, file, *options):
        command = [TUNDISH, "peek", file, "--json", "--stats", *options]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        return [json.loads(line) for line in done.stdout.splitlines()], done.stderr

    def rows_parsed(self, file, *options):
        _, statistics = self.peeked(file, *options)
        return int(re.search(r"rows parsed (\d+)", statistics)[1])

    def test_peek_refuses_a_replica_that_is_not_there(self):
        file = self.pipeline(["range: 8", "batch: 2"], "{replicas: 2}")
        done = subprocess.run([TUNDISH, "peek", file, "--replica", "2"], env=self.environment,
                              capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("--replica 2, but a worker has 2", done.stderr)

    def test_a_pattern_among_filenames_leads_to_list_files(self):
        lines, _ = self.peeked(self.pipeline(["text_line: {filenames: 'part-*.txt'}", "batch: 2"]))
        self.assertIn("list_files takes patterns", json.dumps(lines))

    def test_a_worker_parses_its_own_rows_alone(self):
        self.file_of("rows.txt", range(ROWS))
        stages = [
            "text_line: {filenames: rows.txt}",
            "shuffle: 500",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            "batch: 120",
        ]
        file = self.pipeline(stages, distribute="{auto_shard: DATA, replicas: 2}")
        for workers in (1, 2, 3):
            parsed = [
                self.rows_parsed(file, "--num-workers", str(workers), "--worker", str(worker))
                for worker in range(workers)
            ]
            self.assertLessEqual(sum(parsed), ROWS * 1.02)
            self.assertGreaterEqual(min(parsed), ROWS // workers)

    def slices(self, file, *options):
        """Of each step, the rows of each worker's replicas, those that are repeated as texts."""
        lines, _ = self.peeked(file, *options)
        steps = {}
        for line in lines:
            if "columns" not in line:
                continue
            columns = line["columns"]
            rows = [value if own else str(value)
                    for value, own in zip(columns["value"]["values"], columns["real"]["values"])]
            steps.setdefault((line["epoch"], line["step"]), []).append(rows)
        return [steps[step] for step in sorted(steps)]

    def test_replicas_get_equally_many_rows_where_asked_for(self):
        """For one node and for two, and for stages that see whole batches."""
        self.file_of("rows.txt", range(13))
        stages = [
            "text_line: {filenames: rows.txt}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            "batch: 8",
        ]
        even = "even: repeat, mask: real, auto_shard: DATA"
        expected = [[[0, 1], [2, 3], [4, 5], [6, 7]], [[8, 9], [10, 11], [12, "0"], ["1", "2"]]]
        for more in ([], ['map: {less: "value - max(value, axis=0)"}']):
            file = self.pipeline(stages + more, f"{{replicas: 4, {even}}}")
            self.assertEqual(self.slices(file), expected)
        file = self.pipeline(stages, f"{{replicas: 2, {even}}}")
        # Slice s of a batch is worker s mod 2's.
        self.assertEqual(self.slices(file, "--num-workers", "2"),
                         [[step[s] for s in (0, 2, 1, 3)] for step in expected])

    def test_a_filter_parses_for_itself_and_the_rest_is_still_shared(self):
        self.file_of("rows.txt", range(ROWS))
        stages = [
            "text_line: {filenames: rows.txt}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            'filter: "value % 3 == 0"',
            "batch: 100",
        ]
        file = self.pipeline(stages, distribute="{auto_shard: DATA}")
        parsed = self.rows_parsed(file, "--num-workers", "2", "--worker", "0")
        # Two workers' orders look at every row; this one's content is a half of what is left.
        self.assertLessEqual(parsed, 2 * ROWS + ROWS // 6 * 1.02)

    def test_too_few_files_are_an_error_on_every_worker(self):
        self.file_of("a.txt", range(10))
        self.file_of("b.txt", range(10))
        stages = ["list_files: {file_pattern: '*.txt', seed: 1}", "flat_map: {dataset: [text_line]}"]
        file = self.pipeline([*stages, "batch: 2"])
        lines, _ = self.peeked(file, "--num-workers", "3")
        ends = [line["end"] for line in lines if "end" in line]
        self.assertEqual(len(ends), 3)
        for end in ends:
            self.assertIn("only 2 file(s)", end["message"])
            self.assertIn("auto_shard: DATA", end["message"])

    def test_files_that_are_missing_or_too_few_are_told_before_anything_is_served(self):
        for name in "ab":
            self.file_of(f"{name}.txt", range(10))
        read = "flat_map: {dataset: [text_line]}"
        for stages, workers, said in (
            (["text_line: {filenames: [a.txt, c.txt]}"], 1, "c.txt: cannot be opened"),
            (["csv: {filenames: c.txt, record_defaults: [int64], column_names: [value]}"], 1,
             "c.txt: cannot be opened"),
            (["zip: {datasets: [[text_line: a.txt, rename: {value: x}], [text_line: c.txt]]}"], 1,
             "c.txt: cannot be opened"),
            (["from_tensor_slices: {value: [a.txt, c.txt]}", "repeat", read], 1,
             "c.txt: cannot be opened"),
            (["from_tensor_slices: {value: [a, c]}", "map: {value: \"value + '.txt'\"}", read], 1,
             "c.txt: cannot be opened"),
            (["list_files: 'c*.txt'", read], 1, "no file matches c*.txt"),
            (["list_files: 'c*.txt'", "read_file"], 1, "no file matches c*.txt"),
            (["from_tensor_slices: {folder: ['*.txt', 'd*']}",
              f"flat_map: {{dataset: [{{list_files: $folder}}, {{{read}}}]}}"], 1,
             "no file matches d*"),
            (["list_files: '*.txt'", read], 3, "only 2 file(s)"),
        ):
            file = self.pipeline([*stages, "batch: 2"], "{auto_shard: AUTO}")
            commands = [["plan", file, "--num-workers", str(workers)]]
            commands += [["serve", file]] * (workers == 1)
            for command in commands:
                with self.subTest(stages=stages, command=command[0]):
                    done = subprocess.run([TUNDISH, *command], env=self.environment,
                                          capture_output=True, text=True, timeout=DEADLINE_S)
                    self.assertEqual(done.returncode, 3, done.stderr)
                    self.assertIn(said, done.stderr)
                    self.assertNotIn("ready", done.stderr)

    def test_files_that_no_stage_takes_need_not_be_there(self):
        self.file_of("a.txt", range(10))
        for stages in (["from_tensor_slices: {value: [a.txt, c.txt]}", "take: 1"],
                       ["from_tensor_slices: {value: [c.txt, a.txt]}", "skip: 1", "repeat"]):
            file = self.pipeline([*stages, "flat_map: {dataset: [text_line]}", "batch: 2"])
            done = subprocess.run([TUNDISH, "plan", file], env=self.environment,
                                  capture_output=True, text=True, timeout=DEADLINE_S)
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_a_shuffled_list_is_dealt_alike_whatever_stands_before_its_reader(self):
        for name in "abcde":
            (self.path / f"{name}.txt").write_text("".join(f"{name}{i}\n" for i in range(3)))
        listed = "list_files: {file_pattern: '*.txt', seed: 1}"
        read = ["flat_map: {dataset: [{text_line: $value}]}", "batch: 2"]
        between = [
            ["enumerate"],
            ["map: {n: 7, value: value}"],
            ["rename: {value: file}", "rename: {file: value}"],
            ["map: {n: 7}", "drop: [n]"],
            ["filter: \"value != ''\""],
            ["shuffle: 3", "enumerate", "shuffle: {buffer_size: 2, seed: 5}", "map: {n: index}"],
        ]
        for policy, workers in (("AUTO", "1"), ("AUTO", "2"), ("FILE", "2")):
            distribute, options = f"{{auto_shard: {policy}}}", ("--num-workers", workers)
            plain, _ = self.peeked(self.pipeline([listed, *read], distribute), *options)
            self.assertGreater(len(plain), 5)
            for stages in between:
                with self.subTest(policy=policy, workers=workers, stages=stages):
                    file = self.pipeline([listed, *stages, *read], distribute)
                    self.assertEqual(self.peeked(file, *options)[0], plain)

    def test_slices_of_a_batch_seen_whole_hold_only_rows_that_are_there(self):
        (self.path / "rows.csv").write_text("1\n2\nx\n4\n5\n6\n7\n8\n")
        read = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        stages = [read, "batch: 4", 'map: {value: "value - min(value)"}', "rebatch: 3"]
        lines, _ = self.peeked(self.pipeline(stages, deliver="{epochs: 1, on_error: skip}"))
        values = [line["columns"]["value"]["values"] for line in lines if "columns" in line]
        self.assertEqual(sum(values, []), [0, 1, 3, 0, 1, 2, 3])

    def test_rows_that_a_stage_leaves_of_a_batch_are_those_that_are_cut(self):
        stages = ["range: 8", "batch: 4", 'map: {value: "value[1:]"}', "rebatch: 2"]
        lines, _ = self.peeked(self.pipeline(stages, deliver="{epochs: 1}"))
        values = [line["columns"]["value"]["values"] for line in lines if "columns" in line]
        self.assertEqual(values, [[1, 2], [3, 5], [6, 7]])

    def test_bad_rows_that_a_filter_meets_are_counted_and_named(self):
        (self.path / "rows.csv").write_text("1\n2\nx\n4\n")
        stages = [
            "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}",
            'filter: "10 // (value - 2) > -20"',
            "batch: 2",
        ]
        file = self.pipeline(stages, deliver="{epochs: 1, on_error: skip}")
        lines, statistics = self.peeked(file)
        values = [line["columns"]["value"]["values"] for line in lines if "columns" in line]
        self.assertEqual(values, [[1, 4]])
        self.assertIn("rows skipped 2", statistics)
        server = self.serve(file)
        self.lines(self.read())
        server.terminate()
        server.wait()
        log = (self.path / "log").read_text()
        self.assertIn("left out, 2 so far", log)
        self.assertIn("division by zero", log)

    def test_a_batch_that_a_function_is_given_is_whole_in_every_slice(self):
        given = [
            "range: 6",
            "batch: 3",
            "flat_map: {dataset: [{range: 4}, {batch: 4}, {map: {value: \"value + sum($value)\"}}]}",
        ]
        rows = [3, 4, 5, 6, 12, 13, 14, 15]
        for stages in ([], ["rebatch: 3"], ["unbatch", "batch: 3"], ["batch: 2"], ["shuffle: 1"]):
            for replicas, workers in ((1, 1), (2, 1), (5, 1), (1, 2)):
                with self.subTest(stages=stages, replicas=replicas, workers=workers):
                    left = self.left([*given, *stages], replicas, workers)
                    self.assertEqual(left, (rows, 0))

    def left(self, stages, replicas=1, workers=1):
        """The values of all slices, step by step, and how many rows were left out."""
        file = self.pipeline(
            stages, f"{{replicas: {replicas}, auto_shard: DATA}}", "{epochs: 1, on_error: skip}"
        )
        lines, statistics = self.peeked(file, "--num-workers", str(workers))
        self.assertEqual([line["end"] for line in lines if "end" in line], ["end"] * workers)
        values = [line["columns"]["value"]["values"] for line in lines if "columns" in line]
        return sum(values, []), int(re.search(r"rows skipped (\d+)", statistics)[1])

    def test_a_row_of_another_shape_than_its_batchs_first_is_left_out(self):
        grown = ["range: [1, 6]", "flat_map: {dataset: [{range: $value}, {batch: 9}]}"]
        cases = [
            (["range: 7", "batch: 2", "batch: 4"], [0, 1, 2, 3, 4, 5], 1),
            (["range: [7, 15]", "batch: 3", "batch: 9"], [*range(7, 13)], 2),
            ([*grown, "batch: 3"], [0, 0, 1, 2, 3], 2 + 3 + 5),
            ([*grown, "padded_batch: {batch_size: 5, padded_shapes: [2]}"], [0, 0, 0, 1], 3 + 4 + 5),
            ([*grown, "padded_batch: {batch_size: 2}", "rebatch: 3", "batch: 1"], None, None),
        ]
        for stages, values, skipped in cases:
            alone = self.left(stages)
            if values is not None:
                self.assertEqual(alone, (values, skipped), stages)
            for replicas, workers in ((2, 1), (3, 1), (1, 2)):
                with self.subTest(stages=stages, replicas=replicas, workers=workers):
                    self.assertEqual(self.left(stages, replicas, workers), alone)

    def test_batches_without_a_remainder_are_short_where_rows_are_left_out(self):
        (self.path / "rows.csv").write_text("1\n2\nx\n4\n5\n6\n7\n")
        read = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        whole = "batch: {batch_size: 2, drop_remainder: true}"
        for stages, values, skipped in (
            ([whole], [1, 2, 4, 5, 6], 1),
            ([whole, "map: {value: \"value[0] + value\"}"], [2, 3, 8, 10, 11], 1),
            ([whole, "batch: 1"], [1, 2, 4, 5, 6], 1),
            ([whole, "batch: 3"], [1, 2, 5, 6], 2),
            (["rebatch: {batch_size: 2, drop_remainder: true}"], [1, 2, 4, 5, 6], 1),
        ):
            if "rebatch" in stages[0]:
                stages = ["batch: 3", *stages]
            for replicas, workers in ((1, 1), (2, 1), (1, 2)):
                with self.subTest(stages=stages, replicas=replicas, workers=workers):
                    left = self.left([read, *stages], replicas, workers)
                    self.assertEqual(left, (values, skipped))

    def test_a_batch_that_is_left_out_counts_as_its_rows_once(self):
        fails = "map: {value: \"value + 10 // (min(value) - 2)\"}"
        for replicas, workers in ((1, 1), (2, 1), (1, 2)):
            left = self.left(["range: 8", "batch: 2", fails], replicas, workers)
            self.assertEqual(left, ([-5, -4, 9, 10, 8, 9], 2))

    def test_a_batch_loses_its_bad_rows_alone(self):
        (self.path / "rows.txt").write_text("1\n2\nx\n4\ny\nz\n7\n8\n9\n")
        lines = "text_line: rows.txt"
        number = "string_to_number: {columns: [value], out_type: int64}"
        numbers = [1, 2, 4, 7, 8, 9]
        split = ["string_split: {sep: \",\"}", number]
        inside = (
            "flat_map: {dataset: [{from_tensors: {n: 10}}, {batch: 1}, "
            "{map: {value: \"n // (cast($value, int32) - 2)\"}}]}"
        )
        for stages, values, skipped in (
            ([lines, "batch: 4", number], numbers, 3),
            ([lines, "batch: 4", "map: {kept: value}", number], numbers, 3),
            ([lines, "batch: 4", *split], numbers, 3),
            ([lines, "batch: 4", *split, "to_sparse: {}"], numbers, 3),
            ([lines, "batch: 2", "batch: 2", number], [1, 2, 7, 8, 9], 4),
            ([lines, "batch: 3", number, "unbatch", "batch: 2"], numbers, 3),
            (["range: 6", "batch: 3", "map: {value: \"6 // (value - 1)\"}"], [-6, 6, 3, 2, 1], 1),
            (["range: 4", inside, "batch: 9"], [-5, -10, 10], 1),
        ):
            for replicas, workers in ((1, 1), (2, 1), (1, 2)):
                with self.subTest(stages=stages, replicas=replicas, workers=workers):
                    left = self.left(stages, replicas, workers)
                    self.assertEqual(left, (values, skipped))

    def test_more_bad_rows_than_the_limit_end_what_is_peeked_as_what_is_served(self):
        (self.path / "rows.csv").write_text("1\nx\n3\ny\n5\nz\n7\n")
        read = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        for stages in (["batch: 2"], ["filter: \"value > 0\"", "batch: 1"]):
            for limit, shown in ((3, [1, 3, 5, 7]), (1, [1])):
                file = self.pipeline([read, *stages], "{}", f"{{on_error: 'skip:{limit}'}}")
                lines, _ = self.peeked(file)
                ends = json.dumps([line["end"] for line in lines if "end" in line])
                values = [line["columns"]["value"]["values"] for line in lines if "columns" in line]
                self.assertEqual(limit == 3, "bad rows, more than" not in ends, ends)
                if len(stages) == 1:  # a filter looks ahead
                    self.assertEqual(sum(values, []), shown)

    def test_a_bad_row_counts_once_however_often_it_is_looked_at(self):
        (self.path / "rows.csv").write_text("1\n2\nx\n4\n5\n6\n7\n8\n")
        read = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        rows = [1, 2, 4, 5, 6, 7, 8]
        for stages in (
            ["batch: 4", "filter: \"sum(value) > 3\""],
            ["batch: 4", "map: {value: \"value + 0 * min(value)\"}", "unbatch", "batch: 2"],
            ["batch: 4", "unbatch", "batch: 2"],
            ["batch: 4", "map: {value: \"value[0:9]\"}", "rebatch: 3"],
        ):
            for replicas in (1, 2):
                self.assertEqual(self.left([read, *stages], replicas), (rows, 1), stages)

    def test_replicas_are_served_what_is_left_of_batches(self):
        file = self.pipeline(
            ["range: 7", "batch: 2", "batch: 4"], "{replicas: 2}", "{epochs: 1, on_error: skip}"
        )
        self.serve(file)
        readers = [self.read(replica=replica) for replica in (0, 1)]
        read = [batches(lines) for lines in self.all_lines(readers)]
        self.assertEqual(read, [[(0, 0, [0, 1, 2, 3])], [(0, 0, [4, 5])]])
        self.wait_for_log("1 bad row left out, 1 so far")


if __name__ == "__main__":
    unittest.main()
