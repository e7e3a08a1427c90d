"""Several servers as the nodes of one job, and what happens when one of them goes."""

import gzip
import json
import os
import random
import signal
import subprocess
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "data"))
from nodes_rig import NodesRig, end, main, rows  # noqa: E402
from rig import DEADLINE_S, TUNDISH, batches, place, sleep  # noqa: E402
from small_files import tar  # noqa: E402
from test_evaluation import finished_shards  # noqa: E402
from test_records import record  # noqa: E402
from test_records import write as write_records  # noqa: E402
from test_remote_formats import PARQUET  # noqa: E402

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
TWO = "{replicas: 2}"


class Nodes(NodesRig):
    def files(self, counts):
        """Text files of so many numbers each, counted through."""
        first = 0
        for i, count in enumerate(counts):
            (self.path / f"part-{i}.csv").write_text(
                "".join(f"{first + n}\n" for n in range(count)))
            first += count
        return first

    def by_file(self, distribute=TWO, deliver="{epochs: 2}"):
        """A stream that AUTO shards by file."""
        return self.pipeline([
            'list_files: {file_pattern: "part-*.csv", seed: 3}',
            "interleave: {dataset: [text_line], cycle_length: 2}",
            "shuffle: {buffer_size: 10}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            "batch: 8",
        ], distribute, deliver)

    def assert_as_peek(self, file, nodes, replicas, epochs):
        """Every trainer gets what peek gives its worker and replica, and all end together."""
        expected = self.peek_workers(file, nodes, "--epochs", str(epochs))
        got = self.read_all(nodes, replicas)
        for (rank, replica), lines in got.items():
            self.assertEqual(batches(lines), expected[rank][replica], (rank, replica))
            self.assertEqual(lines.count("end"), epochs)
            self.assertEqual(lines[-1], "end_of_stream")
        return got

    def test_that_noted_the_order_go_on_beside_one_that_has_no_notes(self):
        for i in range(6):
            (self.path / f"rows-{i}").write_text("".join(f"{100000 * i + row}\n" for row in range(60000)))
        inner = "[text_line, {string_to_number: {out_type: int64, columns: value}}, {filter: value % 3 != 1}]"
        file = self.pipeline(
            ['list_files: {file_pattern: "rows-*", shuffle: false}', f"flat_map: {{dataset: {inner}}}", "batch: 200"],
            distribute="{replicas: 1, auto_shard: DATA}")  # fmt: skip
        job = self.serve_nodes([file, file], apart=True)
        token = place(self.read_all(2, 1, "--batches", "800")[0, 0])
        self.stop_nodes(job)
        noted = list((self.path / "cache.1").glob("*.landmarks"))
        self.assertTrue(noted)
        for path in noted:
            path.unlink()
        for node in range(2):
            self.node_log(node).unlink()
        job = self.serve_nodes([file, file], apart=True)
        lines = self.read_all(2, 1, "--place", token)
        self.assertEqual({told[-1] for told in lines.values()}, {"end_of_stream"})
        self.assertEqual(len(rows(lines)), 240000 - 800 * 200)
        self.stop_nodes(job)

    def test_deal_the_rows_of_data_as_peek_does(self):
        file = self.pipeline(SHUFFLED, TWO, "{epochs: 2}")
        job = self.serve_nodes([file, file])
        got = self.assert_as_peek(file, 2, 2, 2)
        self.assertEqual(rows(got), sorted(list(range(1000)) * 2))
        self.assertEqual(self.stop_nodes(job), [0, 0])

    def test_end_together_where_one_has_fewer_files(self):
        total = self.files([40, 7, 33, 5, 90])
        file = self.by_file()
        job = self.serve_nodes([file, file])
        got = self.assert_as_peek(file, 2, 2, 2)
        self.assertEqual(rows(got), sorted(list(range(total)) * 2))
        self.assertEqual(self.stop_nodes(job), [0, 0])

    def test_rows_of_each_are_named_by_the_place_of_any(self):
        """By file the place says how many nodes there are, and what each had drawn when the epoch
        began."""
        self.files([40, 17, 33, 25, 90])
        by_file = Path(self.by_file(deliver="{epochs: 3}"))
        by_file.write_text(by_file.read_text().replace("seed: 1\n", "").replace(", seed: 3", ""))
        job = self.serve_nodes([str(by_file), str(by_file)])
        got = self.read_all(2, 2, "--batches", "50")
        self.stop_nodes(job)
        token = place(got[1, 0])
        for (rank, replica), lines in got.items():
            self.assertGreater(batches(lines)[-1][0], 0)
            for epoch, step, values in batches(lines)[1::3]:
                out = subprocess.run(
                    [TUNDISH, "explain", by_file, "--json", "--place", token, "--worker", str(rank),
                     "--replica", str(replica), "--epoch", str(epoch), "--step", str(step)],
                    env=self.environment, capture_output=True, text=True)
                self.assertEqual(out.returncode, 0, out.stderr)
                rows = json.loads(out.stdout)["rows"]
                named = [(self.path / row["sources"][0]["file"]).read_text().splitlines()
                         [row["sources"][0]["record"]] for row in rows]
                self.assertEqual(list(map(int, named)), values, (rank, replica, epoch, step))
        self.assertTrue(any(values for lines in got.values() for _, _, values in batches(lines)))
        out = subprocess.run([TUNDISH, "explain", by_file, "--place", token, "--num-workers", "3"],
                             env=self.environment, capture_output=True, text=True)
        self.assertEqual(out.returncode, 1)
        self.assertIn("start 2 workers", out.stderr)

    def test_draw_random_numbers_by_what_each_has_read(self):
        self.files([40, 7, 33, 5, 90])
        file = self.pipeline([
            'list_files: {file_pattern: "part-*.csv", seed: 3}',
            "interleave: {dataset: [text_line], cycle_length: 2}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            'map: {pixel: "[[[cast(value, float32)]]]"}',
            "random_brightness: {columns: pixel, factor: 1.0, value_range: [0, 100000], seed: 5}",
            'map: {value: "cast(round(pixel[0, 0, 0]), int64)"}',
            "select: value",
            "batch: 8",
        ], TWO, "{epochs: 2}")
        expected = self.peek_workers(file, 2, "--epochs", "2")
        self.serve_nodes([file, file])
        first = self.read_all(2, 2, "--batches", "17")
        token = place(first[0, 0])
        for rank in self.ranks.values():
            end(rank)
        self.ranks.clear()
        for rank in range(2):
            self.node_log(rank).unlink(missing_ok=True)
        self.serve_nodes([file, file])
        rest = self.read_all(2, 2, "--place", token)
        for rank, replica in first:
            self.assertEqual(batches(first[rank, replica]) + batches(rest[rank, replica]),
                             expected[rank][replica], (rank, replica))
        self.assertNotEqual(sorted(rows(first) + rows(rest)), sorted(list(range(175)) * 2))

    def test_end_with_the_last_full_step_where_asked(self):
        self.files([40, 7, 33, 5, 90])
        file = self.by_file("{replicas: 2, drop_remainder_step: true}")
        self.serve_nodes([file, file])
        self.assert_as_peek(file, 2, 2, 2)

    def test_give_all_replicas_equally_many_rows_where_asked(self):
        stages = ["range: 1003", "shuffle: {buffer_size: 100}", "batch: 16"]
        file = self.pipeline(stages, "{replicas: 2, auto_shard: DATA, even: repeat}", "{epochs: 2}")
        job = self.serve_nodes([file, file])
        got = self.assert_as_peek(file, 2, 2, 2)
        steps = [[(epoch, step, len(values)) for epoch, step, values in batches(lines)]
                 for lines in got.values()]
        self.assertEqual(steps[1:], steps[:1] * 3)
        self.assertEqual(steps[0][62], (0, 62, 3))  # 11 rows are left for four
        self.assertEqual(self.stop_nodes(job), [0, 0])

    def test_draw_one_seed_for_all(self):
        file = self.pipeline(SHUFFLED, TWO, "{epochs: 1}", seed="")
        self.serve_nodes([file, file, file])
        self.assertEqual(rows(self.read_all(3, 2)), list(range(1000)))

    def test_do_not_talk_while_steps_are_known(self):
        file = self.pipeline(["range: 40000", "shuffle: {buffer_size: 100}", "batch: 8"])
        job = self.serve_nodes([file, file])
        got = self.read_all(2, 1)
        self.assertEqual(len(batches(got[0, 0])), 5000)
        self.assertEqual(self.stop_nodes(job), [0, 0])
        for rank in (0, 1):
            figures = self.link_figures(rank)
            self.assertLessEqual(figures["waits"], 2)  # for the seed and the others' parts
            self.assertLessEqual(figures["posts"], 3 + 5000 // 1024 + 1)

    def test_show_the_first_what_all_of_them_do(self):
        file = self.pipeline(SHUFFLED)
        job = self.serve_nodes([file, file])
        relayed = Path(self.node_socket(0) + ".stats.1")
        self.wait_for(relayed.exists)
        own = Path(self.node_socket(1) + ".stats").read_bytes()
        self.wait_for(lambda: b'stream="train",replica="1"' in relayed.read_bytes())
        self.assertIn(b'stream="train",replica="1"', own)
        self.assertEqual(self.stop_nodes(job), [0, 0])
        self.assertFalse(relayed.exists())

    def test_sleep_when_there_is_nothing_to_do(self):
        file = self.pipeline(SHUFFLED)
        self.serve_nodes([file, file])
        # MPI cannot be slept upon, so they look for messages a hundred times a second.
        self.assert_sleeps(self.ranks.values(), 0.3)

    def test_share_the_building_of_indexes(self):
        line = "".join(f"{n:0500}\n" for n in range(10))
        for i in range(4):
            (self.path / f"long-{i}.txt").write_text(line * 250)
        stages = ['list_files: {file_pattern: "long-*.txt", shuffle: false}', "interleave: "
                  "{dataset: [text_line], cycle_length: 4}", "string_to_number: {out_type: int64}",
                  "shuffle: {buffer_size: 100, seed: 5}", "batch: 500"]
        file = self.pipeline(stages, "{replicas: 1, auto_shard: DATA}")
        expected = self.peek_workers(file, 2)
        sleep(2.2)  # younger files could change again unseen
        job = self.serve_nodes([file, file], apart=True)
        for rank in (0, 1):
            self.assertIn("2 files indexed here, 2 by other nodes", self.log_of(rank))
        got = self.read_all(2, 1)
        for rank in (0, 1):
            self.assertEqual(batches(got[rank, 0]), expected[rank][0])
        self.stop_nodes(job)

    def test_hand_on_an_error_of_one_to_all(self):
        self.files([24, 24])
        (self.path / "part-0.csv").write_text("1\n2\nx\n4\n" * 6)
        file = self.by_file("{replicas: 1}")
        self.serve_nodes([file, file])
        got = self.read_all(2, 1)
        for lines in got.values():
            self.assertIn("E_DATA", lines[-1])
            self.assertIn("not a valid int64", lines[-1])
        self.assertIn("(rank ", got[1, 0][-1] + got[0, 0][-1])


class Agreement(NodesRig):
    def refused(self, job):
        self.assertEqual(self.statuses(job), [3, 3], self.all_logs())
        return self.all_logs()

    def other_pipeline(self, stages, *arguments):
        file = self.pipeline(stages, *arguments)
        other = self.path / "other.yaml"
        os.rename(file, other)
        return str(other)

    def test_is_needed_on_stages(self):
        other = self.other_pipeline(["range: 1000", "shuffle: {buffer_size: 99}", "batch: 16"])
        log = self.refused(self.serve_nodes([self.pipeline(SHUFFLED), other]))
        self.assertEqual(log.count("stream 'train' (stages, parameters and seeds) differs on"), 2)
        self.assertIn("(rank 1)", log)

    def test_is_needed_on_replicas(self):
        other = self.other_pipeline(SHUFFLED, TWO)
        log = self.refused(self.serve_nodes([self.pipeline(SHUFFLED), other]))
        self.assertIn("replicas", log)

    def test_is_needed_on_all_that_decides_rows_and_columns(self):
        stages, two = ["range: 1000", "batch: 16"], "replicas: 2"
        cases = [
            ("auto_shard", f"{{{two}, auto_shard: DATA}}", f"{{{two}, auto_shard: 'OFF'}}", "{}", "{}"),
            ("rebatch", f"{{{two}, rebatch: split}}", f"{{{two}, rebatch: carry}}", "{}", "{}"),
            ("delivery", "{delivery: lanes}", "{delivery: queue}", "{}", "{}"),
            ("drop_remainder_step", f"{{{two}, drop_remainder_step: true}}", f"{{{two}}}", "{}", "{}"),
            ("even", f"{{{two}, even: repeat}}", f"{{{two}}}", "{}", "{}"),
            ("evaluation_shards", f"{{{two}, evaluation_shards: 4}}", f"{{{two}}}", "{}", "{}"),
            ("on_error", f"{{{two}}}", f"{{{two}}}", "{on_error: skip}", "{}"),
            ("column 1", f"{{{two}}}", f"{{{two}}}", "{widen: {value: {dtype: float32}}}", "{}"),
        ]
        for what, here, there, deliver_here, deliver_there in cases:
            with self.subTest(what):
                other = self.other_pipeline(stages, there, deliver_there)
                log = self.refused(self.serve_nodes([self.pipeline(stages, here, deliver_here), other]))
                self.assertIn(f"{what} of stream 'train' differs on", log)

    def test_is_needed_on_files(self):
        stages = ["text_line: {filenames: [a.txt]}", "decode_csv: "
                  "{record_defaults: [int64], column_names: [value]}", "batch: 2"]
        file = self.pipeline(stages)
        for name, text in (("here", "1\n2\n"), ("there", "1\n3\n")):
            (self.path / name).mkdir()
            (self.path / name / "a.txt").write_text(text)
            os.link(file, self.path / name / "pipeline.yaml")
        log = self.refused(self.serve_nodes(
            [str(self.path / name / "pipeline.yaml") for name in ("here", "there")]))
        self.assertIn("file a.txt differs on", log)

    def refused_functions(self, stage, files):
        """What is said where nodes have these files, each one's by its name."""
        numpy = ["-c", "import numpy"]
        pythons = [python for python in (sys.executable, "/usr/bin/python3")
                   if Path(python).exists() and subprocess.run([python, *numpy], stderr=subprocess.DEVNULL).returncode == 0]
        if not pythons:
            self.skipTest("needs a Python with numpy")
        file = self.pipeline(["range: 100", stage, "batch: 2"])
        for name, contents in files.items():
            (self.path / name).mkdir()
            for own, text in contents.items():
                (self.path / name / own).write_text(text)
            os.link(file, self.path / name / "pipeline.yaml")
        package = str(Path(TUNDISH).parents[1] / "sdk" / "python")
        self.environment.update(TUNDISH_PYTHON=pythons[0], PYTHONPATH=package)
        return self.refused(self.serve_nodes([str(self.path / name / "pipeline.yaml") for name in files]))

    def test_is_needed_on_functions_of_the_users_own(self):
        files = {name: {"own.py": f"# {name}\ndef f(row): return row\n"} for name in ("here", "there")}
        log = self.refused_functions("python: {call: 'own:f', output: {value: {dtype: int64}}}", files)
        self.assertIn("the code of stage 'python' (line 6) differs on", log)

    def test_is_needed_on_what_such_functions_were_learned_to_return(self):
        own = "def f(row): return {'y': [1] * int(open('size').read())}\n"
        files = {name: {"own.py": own, "size": size} for name, size in (("here", "2"), ("there", "3"))}
        log = self.refused_functions("python: {call: 'own:f'}", files)
        self.assertIn("what stage 'python' (line 6) was learned to give differs on", log)

    def test_on_files_that_are_missing_or_too_few_is_refusal_everywhere(self):
        (self.path / "a.txt").write_text("1\n")
        (self.path / "b.txt").write_text("2\n")
        for stages, said in (
            (["text_line: {filenames: [a.txt, b.txt, c.txt, d.txt]}"], "c.txt: cannot be opened"),
            (["list_files: {file_pattern: 'a*.txt'}", "flat_map: {dataset: [text_line]}"],
             "not enough for 2 workers"),
        ):
            with self.subTest(said):
                for rank in range(2):
                    self.node_log(rank).unlink(missing_ok=True)
                file = self.pipeline([*stages, "batch: 2"])
                self.refused(self.serve_nodes([file, file]))
                for rank in range(2):
                    self.assertIn(said, self.log_of(rank))
                    self.assertFalse(self.is_ready(rank))

    def test_is_needed_on_their_number(self):
        file = self.pipeline(SHUFFLED)
        log = self.refused(self.serve_nodes([file, file], "--expect-nodes", "3"))
        self.assertIn("--expect-nodes 3, but the job has 2 nodes", log)

    def test_is_needed_with_slurm(self):
        self.environment["SLURM_NTASKS"] = "4"
        command = [TUNDISH, "serve", self.pipeline(SHUFFLED)]
        alone = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self.assertEqual(alone.returncode, 3)
        self.assertIn("SLURM_NTASKS", alone.stderr)


class Shards(NodesRig):
    """An evaluation's readers on several nodes: rank 0 gives out the shards."""

    def evaluation(self, epochs=1, shards=9):
        return self.pipeline(["range: 1000", "shuffle: {buffer_size: 1000}", "batch: 16"],
                             f"{{auto_shard: DATA, evaluation_shards: {shards}}}",
                             f"{{epochs: {epochs}}}", seed="")

    def check(self, readers, epochs=1, shards=9, but=()):
        """What the readers finished, beside what those that died had: every row, once. A reader, which
        has two at a time, may have died between seeing the end of a shard and giving it back."""
        seen = {}
        for lines in readers:
            for key, values in finished_shards(lines).items():
                self.assertNotIn(key, seen)
                seen[key] = values
        for lines in but:
            before = finished_shards(lines)
            doubled = set(before) & set(seen)
            self.assertLessEqual(doubled, set(list(before)[-2:]))
            seen.update(before)
        self.assertEqual(sorted(seen), [(e, s) for e in range(epochs) for s in range(shards)])
        for epoch in range(epochs):
            rows = sorted(v for (e, _), values in seen.items() if e == epoch for v in values)
            self.assertEqual(rows, list(range(1000)))

    def test_are_shared_by_the_readers_of_all_nodes(self):
        file = self.evaluation(epochs=3)
        job = self.serve_nodes([file] * 3)
        readers = [self.read_node(rank, "--delay-ms", "1", replica=r)
                   for rank in range(3) for r in range(2)]
        lines = self.all_lines(readers)
        self.check(lines, 3)
        for of_one in lines:  # who comes late begins with the epoch that is on
            self.assertEqual(of_one[-1], "end_of_stream")
        self.assertEqual(self.stop_nodes(job), [0, 0, 0])

    def check_not_begun(self, idle_rank):
        file = self.evaluation(shards=20)
        self.serve_nodes([file] * 2)
        self.environment["TUNDISH_SERVER"] = self.node_socket(idle_rank)
        idle = self.read_paced()
        while not idle.seen or not idle.seen[-1].endswith(" end"):
            idle.take()  # its first shard; the next one is then made ready
            idle.seen.append(idle.line())
        lines = self.lines(self.read_node(1 - idle_rank))
        self.check([lines, idle.finish()], shards=20)

    def test_that_the_first_node_s_reader_does_not_begin_go_to_another(self):
        self.check_not_begun(0)

    def test_that_another_node_s_reader_does_not_begin_go_to_the_first(self):
        self.check_not_begun(1)

    def test_of_a_dead_reader_go_to_another_node(self):
        file = self.evaluation()
        self.serve_nodes([file] * 2)
        victim = self.read_node(1, "--batches", "1", "--hold")
        self.wait_for_line(victim, "place ")
        other = self.read_node(0)
        self.wait_for_line(other, "shard")
        victim.kill()
        self.check([self.whole(other)])

    def test_of_a_dead_node_go_to_the_others(self):
        file = self.evaluation()
        self.serve_nodes([file] * 3)
        victim = self.read_node(2, "--batches", "1", "--hold")
        self.wait_for_line(victim, "place ")
        others = [self.read_node(0)]
        self.wait_for_line(others[0], "shard")
        others.append(self.read_node(1))
        os.kill(self.ranks[2], signal.SIGKILL)
        victim.kill()
        self.check([self.whole(other) for other in others], but=[self.whole(victim)])

    def test_of_a_node_that_is_stopped_go_to_the_others(self):
        file = self.evaluation()
        self.serve_nodes([file] * 2)
        victim = self.read_node(1, "--delay-ms", "20")
        self.wait_for_line(victim, "shard")
        other = self.read_node(0)
        os.kill(self.ranks[1], signal.SIGTERM)
        self.check([self.whole(other)], but=[self.whole(victim)])

    def rows(self, readers, epoch):
        """Of all shards of an epoch that these have seen to their ends."""
        return sorted(value for lines in readers
                      for (e, _), values in finished_shards(lines).items() if e == epoch
                      for value in values)

    def test_begin_anew_for_a_successor_that_asks(self):
        self.serve_nodes([self.evaluation(epochs=2)] * 2)
        victim = self.read_node(1, "--batches", "30", "--hold")  # of its fourth shard or so
        self.wait_for_line(victim, "place ")
        victim.kill()
        self.assertGreater(len(finished_shards(self.whole(victim))), 0)
        lines = self.lines(self.read_node(1, "--restart"))
        self.assertEqual({epoch for epoch, _, _ in batches(lines)}, {1})
        self.assertEqual(self.rows([lines], 1), list(range(1000)))

    def test_begin_anew_after_a_node_is_lost(self):
        self.serve_nodes([self.evaluation(epochs=2)] * 2)
        victim = self.read_node(1, "--batches", "30", "--hold")
        self.wait_for_line(victim, "place ")
        os.kill(self.ranks[1], signal.SIGKILL)
        victim.kill()
        lines = self.lines(self.read_node(0, "--restart"))
        self.assertEqual({epoch for epoch, _, _ in batches(lines)}, {1})
        self.assertEqual(self.rows([lines], 1), list(range(1000)))

    def test_of_one_that_goes_on_to_the_next_epoch_go_to_another_node(self):
        self.serve_nodes([self.evaluation(epochs=2)] * 2)
        other = self.read_node(0, "--delay-ms", "5")
        self.wait_for_line(other, "shard")
        leaver = self.read_node(1, "--restart-after", "5", replica=1)
        both = [self.whole(other), self.whole(leaver)]
        self.assertLessEqual(len([1 for epoch, _, _ in batches(both[1]) if epoch == 0]), 5)
        for epoch in range(2):
            self.assertEqual(self.rows(both, epoch), list(range(1000)))

    def test_end_with_an_error_where_nobody_gives_them_out(self):
        file = self.evaluation()
        self.serve_nodes([file] * 2)
        holder = self.read_node(0, "--batches", "1", "--hold")
        self.wait_for_line(holder, "place ")
        other = self.read_node(1)
        self.wait_for_line(other, "shard")
        os.kill(self.ranks[0], signal.SIGKILL)
        lines = self.whole(other)
        self.assertIn("E_PEER_LOST", lines[-1])
        self.assertIn("gave out the shards", lines[-1])


class LocalFiles(NodesRig):
    """files: local: each node has some of the files, in a folder of its own."""

    LINES = ['list_files: {file_pattern: "part-*.txt", seed: 3}',
             "interleave: {dataset: [text_line], cycle_length: 3}",
             "string_to_number: {out_type: int64}"]
    LOCAL = "{replicas: 1, auto_shard: DATA, files: local}"

    def spread(self, nodes, counts, width=0):
        """Text files, one after another to each node, and all of them in one folder for peek."""
        first = 0
        for folder in [f"node-{rank}" for rank in range(nodes)] + ["all"]:
            (self.path / folder).mkdir(exist_ok=True)
        for i, count in enumerate(counts):
            text = "".join(f"{first + n:0{width}}\n" for n in range(count))
            for folder in (f"node-{i % nodes}", "all"):
                (self.path / folder / f"part-{i}.txt").write_text(text)
            first += count
        return first

    def roots(self, file, nodes):
        """The same pipeline beside each node's files, and beside all."""
        for folder in [f"node-{rank}" for rank in range(nodes)] + ["all"]:
            (self.path / folder / "pipeline.yaml").write_text(Path(file).read_text())
        return [str(self.path / f"node-{rank}" / "pipeline.yaml") for rank in range(nodes)]

    def whole(self):
        return str(self.path / "all" / "pipeline.yaml")

    def assert_as_of_all(self, files, epochs=1):
        nodes = len(files)
        expected = self.peek_workers(self.whole(), nodes, "--epochs", str(epochs))
        job = self.serve_nodes(files, apart=True)
        got = self.read_all(nodes, 1)
        for (rank, replica), lines in got.items():
            self.assertEqual(batches(lines), expected[rank][replica], lines[-1:])
            self.assertEqual(lines[-1], "end_of_stream")
        self.assertEqual(self.stop_nodes(job), [0] * nodes)
        return got

    def test_give_what_one_node_with_all_of_them_gives(self):
        total = self.spread(2, [40, 7, 333, 5, 90])
        file = self.pipeline([*self.LINES, "shuffle: {buffer_size: 100}", "batch: 16"], self.LOCAL,
                             "{epochs: 2}")
        got = self.assert_as_of_all(self.roots(file, 2), 2)
        self.assertEqual(rows(got), sorted(list(range(total)) * 2))

    def test_are_of_three_nodes_as_well_one_of_which_has_none(self):
        total = self.spread(2, [50, 60, 70])
        (self.path / "node-2").mkdir()
        file = self.pipeline([*self.LINES, "batch: 9"], self.LOCAL)
        got = self.assert_as_of_all(self.roots(file, 3))
        self.assertEqual(rows(got), list(range(total)))

    def test_are_dealt_by_file_too(self):
        total = self.spread(2, [50, 60, 70, 80])
        file = self.pipeline([*self.LINES, "batch: 9"], "{replicas: 1, files: local}")
        got = self.assert_as_of_all(self.roots(file, 2))
        self.assertEqual(rows(got), list(range(total)))

    def test_are_looked_into_to_decide_order(self):
        self.spread(2, [500, 600, 700])
        file = self.pipeline([*self.LINES, 'filter: "value % 3 == 0"', "shuffle: {buffer_size: 50}",
                              "batch: 16"], self.LOCAL)
        self.assert_as_of_all(self.roots(file, 2))

    def test_may_be_named_and_zipped_and_joined(self):
        self.spread(2, [30, 40, 50, 60])
        part = ('[{text_line: {filenames: [part-%d.txt, part-%d.txt]}}, '
                '{string_to_number: {out_type: int64}}]')
        file = self.pipeline([f"concatenate: {{datasets: [{part % (0, 1)}, {part % (2, 3)}]}}",
                              "shuffle: {buffer_size: 20}", "batch: 8"], self.LOCAL)
        self.assert_as_of_all(self.roots(file, 2))

    def write_parquet(self):
        names = [f"part-{i}.parquet" for i in range(4)]
        self.write_all(names, lambda path, i: path.write_bytes((PARQUET / path.name).read_bytes()))
        return names

    def test_may_be_parquet_listed_and_named(self):
        names = ", ".join(reversed(self.write_parquet()))
        value = ["map: {value: \"cast(n, 'int64')\"}", "select: value"]
        for stages in (['list_files: {file_pattern: "part-*.parquet", seed: 3}',
                        "interleave: {dataset: [parquet], cycle_length: 3}", *value,
                        "shuffle: {buffer_size: 9, seed: 1}", "batch: 4"],
                       [f"parquet: {{filenames: [{names}], columns: n}}", "repeat: 3", *value,
                        "shuffle: {buffer_size: 20, seed: 2}", 'filter: "value % 3 != 0"', "batch: 6"]):
            got = self.assert_as_of_all(self.roots(self.pipeline(stages, self.LOCAL), 2))
            self.assertGreater(len(rows(got)), 20)
            for rank in range(2):
                self.node_log(rank).unlink()

    def test_of_parquet_a_file_that_cannot_be_read_is_an_error_on_all_nodes(self):
        names = self.write_parquet()
        path = self.path / "node-0" / names[2]
        path.write_bytes(path.read_bytes()[:-4] + b"PARE")
        stages = [f"parquet: {{filenames: [{', '.join(names)}]}}",
                  "map: {value: \"cast(n, 'int64')\"}", "select: value", "batch: 4"]
        self.serve_nodes(self.roots(self.pipeline(stages, self.LOCAL), 2), apart=True)
        for lines in self.read_all(2, 1).values():
            self.assertIn(f"{names[2]}: it is an encrypted Parquet file", lines[-1])

    def write_all(self, names, write):
        """Files that alternate between two nodes, and all of them in one folder."""
        self.spread(2, [])
        for i, name in enumerate(names):
            for folder in (f"node-{i % 2}", "all"):
                (self.path / folder / name).parent.mkdir(parents=True, exist_ok=True)
                write(self.path / folder / name, i)

    def assert_as_served_by_one(self, stages):
        files = self.roots(self.pipeline(stages, self.LOCAL), 2)
        self.serve(self.whole(), "--replicas", "2")
        expected = [self.read(replica=replica) for replica in (0, 1)]
        expected = [batches(lines) for lines in self.all_lines(expected)]
        self.assertGreater(sum(len(values) for _, _, values in expected[0]), 3)
        self.serve_nodes(files, apart=True)
        got = self.read_all(2, 1)
        self.assertEqual([batches(got[rank, 0]) for rank in (0, 1)], expected)

    def test_may_be_of_records_short_and_long(self):
        names = [f"part-{i}.tfrecord" for i in range(3)]
        sizes = [3, 40000, 0, 17, 900, 20000, 70000, 5, 41] * 2
        self.write_all(names, lambda path, i: write_records(
            path, [record(100 * i + k, size + i) for k, size in enumerate(sizes)]))
        self.assert_as_served_by_one([f"tfrecord: [{', '.join(names)}]", "permute: {seed: 4}",
                                      "batch: 4"])

    def test_may_be_packed(self):
        names = [f"part-{i}.gz" for i in range(3)]
        self.write_all(names, lambda path, i: path.write_bytes(gzip.compress(
            "".join(f"{1000 * i + n}\n" for n in range(500)).encode())))
        self.assert_as_served_by_one([
            f"text_line: {{filenames: [{', '.join(names)}], compression_type: GZIP}}",
            "string_to_number: {out_type: int64}", "shuffle: {buffer_size: 100}", "batch: 32"])

    def test_may_be_of_fixed_length(self):
        names = [f"part-{i}.bin" for i in range(3)]
        self.write_all(names, lambda path, i: path.write_bytes(bytes(range(i, i + 200))))
        self.assert_as_served_by_one([
            f"fixed_length_record: {{filenames: [{', '.join(names)}], record_bytes: 10}}",
            "shuffle: {buffer_size: 100}", "batch: 5"])

    def test_may_be_of_separated_values(self):
        names = [f"part-{i}.csv" for i in range(3)]
        self.write_all(names, lambda path, i: path.write_text(
            "".join(f"{1000 * i + n},x\n" for n in range(90))))
        self.assert_as_served_by_one([
            f"csv: {{filenames: [{', '.join(names)}], record_defaults: [int64, string], "
            "column_names: [value, text]}", "select: value", "shuffle: {buffer_size: 100}",
            "batch: 16"])

    def write_tars(self):
        """Samples of a picture and a class; of every fifth one the class is missing."""
        def write(path, i):
            samples = []
            for k in range(60):
                samples.append((f"s{i}{k:03}.jpg", random.Random(k).randbytes(k * 70)))
                samples += [(f"s{i}{k:03}.cls", b"%d" % i)] * bool(k % 5)
            path.write_bytes(gzip.compress(tar(samples)) if path.suffix == ".gz" else tar(samples))

        names = ["part-0.tar", "part-1.tar.gz", "part-2.tar", "part-3.tar"]
        self.write_all(names, write)
        return ", ".join(names)

    def test_may_be_samples_in_tars(self):
        names = self.write_tars()
        self.assert_as_served_by_one([
            f"webdataset: {{filenames: [{names}], columns: {{value: jpg}}}}", "select: value",
            "shuffle: {buffer_size: 50, seed: 1}", "batch: 16"])

    def test_may_be_samples_of_which_some_are_skipped(self):
        names = self.write_tars()
        self.assert_as_served_by_one([
            f"webdataset: {{filenames: [{names}], columns: {{label: cls, value: [png, jpg]}}, "
            "missing: skip}", "select: value", "shuffle: {buffer_size: 50, seed: 1}", "batch: 16"])

    def write_zoo(self):
        """Folders of classes: of one only the second node has files, and of one no node has."""
        names = [f"zoo/{name}/{i}.jpg" for i in range(40) for name in ("cat", "eel")]
        self.write_all([*names, "zoo/owl/0.jpg", "zoo/owl/1.jpg"],
                       lambda path, i: path.write_bytes(random.Random(i).randbytes(100 * i)))
        (self.path / "node-0" / "zoo" / "owl" / "0.jpg").unlink()
        (self.path / "all" / "zoo" / "owl" / "0.jpg").unlink()
        for folder in ("node-0", "all"):
            (self.path / folder / "zoo" / "bee").mkdir()

    def test_may_be_whole_ones_in_folders_of_classes(self):
        self.write_zoo()
        for column in ("value", "cast(label, int64)"):
            for more in ("", ", class_names: [owl, cat, eel]"):
                self.assert_as_served_by_one([
                    f"directory: {{directory: zoo{more}}}", f'map: {{value: "{column}"}}',
                    "select: value", "shuffle: {buffer_size: 50, seed: 1}", "batch: 16"])
                self.end_all()
                self.processes.clear()
                self.ranks.clear()
                for log in self.path.glob("log*"):
                    log.unlink()

    def test_may_be_whole_ones_that_rows_name(self):
        self.write_zoo()
        self.assert_as_served_by_one([
            'list_files: {file_pattern: "zoo/*/*.jpg", seed: 4}', "read_file", "batch: 8"])

    def test_that_are_whole_decide_order_too(self):
        self.write_zoo()
        self.assert_as_served_by_one([
            'list_files: {file_pattern: "zoo/*/*.jpg", seed: 4}', "read_file",
            'filter: "length(value) % 3 == 0"', "batch: 2"])

    def test_that_are_whole_and_named_by_no_list_are_an_error_everywhere(self):
        """Also on the node that has one: another could have another of that name."""
        self.write_all(["zoo/a.jpg", "zoo/b.jpg"], lambda path, i: path.write_bytes(b"%d" % i))
        self.write_all(["names.txt"], lambda path, i: path.write_text("zoo/b.jpg\n./zoo/a.jpg\n"))
        read = ["text_line: names.txt", "read_file"]
        both = ('concatenate: {datasets: [[{list_files: {file_pattern: "zoo/*.jpg", shuffle: false}}], '
                "[{text_line: names.txt}]]}")
        file = self.pipeline([both, "read_file", "batch: 1"], self.LOCAL)
        self.serve_nodes(self.roots(file, 2), apart=True)
        for lines in self.read_all(2, 1).values():
            self.assertIn("./zoo/a.jpg: with distribute.files: local only files that list_files or "
                          "directory names are read", lines[-1])
        out = subprocess.run([TUNDISH, "plan", self.pipeline([*read, "batch: 1"], self.LOCAL)],
                             env=self.environment, capture_output=True, text=True)
        self.assertEqual(out.returncode, 1)
        self.assertIn("this stream has no such stage", out.stderr)

    def test_that_are_whole_must_not_be_unlike_by_one_name(self):
        self.write_zoo()
        (self.path / "node-1" / "zoo" / "cat").mkdir()
        (self.path / "node-1" / "zoo" / "cat" / "0.jpg").write_bytes(b"other")
        files = self.roots(self.pipeline(["directory: zoo", "batch: 9"], self.LOCAL), 2)
        self.assertEqual(self.statuses(self.serve_nodes(files, apart=True)), [3, 3])
        for rank in (0, 1):
            self.assertIn("file zoo/cat/0.jpg differs on", self.log_of(rank))

    def test_may_be_at_several_nodes(self):
        self.spread(2, [50, 60])
        (self.path / "node-1" / "part-0.txt").write_bytes(
            (self.path / "node-0" / "part-0.txt").read_bytes())
        file = self.pipeline([*self.LINES, "batch: 9"], self.LOCAL)
        got = self.assert_as_of_all(self.roots(file, 2))
        self.assertEqual(rows(got), list(range(110)))

    def test_must_not_be_unlike_by_one_name(self):
        self.spread(2, [50, 60])
        (self.path / "node-1" / "part-0.txt").write_text("1\n")
        files = self.roots(self.pipeline([*self.LINES, "batch: 9"], self.LOCAL), 2)
        self.assertEqual(self.statuses(self.serve_nodes(files, apart=True)), [3, 3])
        for rank in (0, 1):
            self.assertIn("file part-0.txt differs on", self.log_of(rank))

    def test_that_are_nowhere_are_an_error_everywhere(self):
        self.spread(2, [])
        files = self.roots(self.pipeline([*self.LINES, "batch: 9"], self.LOCAL), 2)
        self.assertEqual(self.statuses(self.serve_nodes(files, apart=True)), [3, 3])
        for rank in (0, 1):
            self.assertIn("no file matches part-*.txt", self.log_of(rank))

    def test_with_a_bad_row_are_an_error_everywhere(self):
        self.spread(2, [50, 60])
        (self.path / "node-1" / "part-1.txt").write_text("7\n" * 20 + "x\n")
        file = self.pipeline([*self.LINES, "batch: 9"], self.LOCAL)
        self.serve_nodes(self.roots(file, 2), apart=True)
        for lines in self.read_all(2, 1).values():
            self.assertIn("E_DATA", lines[-1])
            self.assertIn("part-1.txt", lines[-1])

    def test_are_read_in_windows_however_much_there_is(self):
        """Six GB of holes: what waits for a slow trainer must not grow with the data."""
        names = [f"part-{i}.bin" for i in range(6)]
        self.write_all(names, lambda path, i: os.truncate(touched(path), 1 << 30))
        file = self.pipeline([
            f"fixed_length_record: {{filenames: [{', '.join(names)}], record_bytes: {1 << 20}}}",
            "batch: 4"], self.LOCAL, "{epochs: 1, slots: 3}")
        self.serve_nodes(self.roots(file, 2), apart=True)
        trainers = [self.read_node(rank, "--batches", "60", "--delay-ms", "10") for rank in (0, 1)]
        for trainer in trainers:
            self.assertEqual(len(batches(self.lines(trainer))), 60)
        for rank in (0, 1):
            self.assertLess(peak_memory(self.ranks[rank]), 200 << 20)

    def test_go_on_where_they_stood_when_an_owner_comes_back(self):
        total = self.spread(2, [3000, 3000])
        self.assert_goes_on([*self.LINES, "shuffle: {buffer_size: 500, seed: 3}", "batch: 16"],
                            range(total))

    def test_that_are_whole_go_on_where_they_stood_too(self):
        names = [f"zoo/{name}/{i:03}.jpg" for i in range(300) for name in ("cat", "eel")]
        self.write_all(names, lambda path, i: path.write_bytes(bytes([255] * i)))
        self.assert_goes_on(["directory: zoo", 'map: {value: "cast(length(value), int64)"}',
                             "select: value", "shuffle: {buffer_size: 50, seed: 3}", "batch: 4"],
                            range(600))

    def assert_goes_on(self, stages, total):
        """An owner is killed while rows travel: the job ends, and a new one goes on at the places."""
        files = self.roots(self.pipeline(stages, self.LOCAL), 2)
        job = self.serve_nodes(files, apart=True)
        trainers = [self.read_node(rank, "--places", "--delay-ms", "20") for rank in (0, 1)]
        for trainer in trainers:
            self.wait_for_line(trainer, "batch 0 20 ")
        os.kill(self.ranks[1], signal.SIGKILL)
        lines = {rank: self.waited_through[trainers[rank]] + self.lines(trainers[rank])
                 for rank in (0, 1)}
        self.assertIn("E_PEER_LOST", lines[0][-1])
        self.assertIn("E_SERVER_GONE", lines[1][-1])
        os.kill(self.ranks[0], signal.SIGTERM)
        job.wait(timeout=DEADLINE_S)
        places = {rank: [line for line in lines[rank] if line.startswith("place ")][-1].split()[1]
                  for rank in (0, 1)}
        for rank in (0, 1):
            os.unlink(self.node_log(rank))
        self.serve_nodes(files, apart=True)
        again = [self.read_node(rank, "--place", places[rank]) for rank in (0, 1)]
        rest = {rank: self.lines(again[rank]) for rank in (0, 1)}
        seen = [value for rank in (0, 1) for _, _, values in batches(lines[rank]) + batches(rest[rank])
                for value in values]
        self.assertEqual(sorted(seen), list(total))

    def test_of_a_dead_owner_are_an_error(self):
        self.spread(2, [3000, 3000])
        file = self.pipeline([*self.LINES, "shuffle: {buffer_size: 10}", "batch: 4"], self.LOCAL,
                             "{epochs: 100}")
        self.serve_nodes(self.roots(file, 2), apart=True)
        trainer = self.read_node(0, "--delay-ms", "5")
        self.wait_for_line(trainer, "batch 0 5 ")
        os.kill(self.ranks[1], signal.SIGKILL)
        last = self.lines(trainer)[-1]
        self.assertIn("E_PEER_LOST", last)
        self.assertIn("(rank 1)", last)


def touched(path):
    path.touch()
    return path


def peak_memory(pid):
    """Of a process' own and what it maps, in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return int(line.split()[1]) << 10
    raise AssertionError("the process has ended")


class Runs(NodesRig):
    """Of a stream without a seed, which each job deals in another order."""

    distribute = "{replicas: 1}"
    repeated = 0

    def serve_anew(self):
        for rank in self.ranks.values():
            end(rank)
        self.ranks.clear()
        for rank in range(2):
            self.node_log(rank).unlink(missing_ok=True)
        file = self.pipeline(["range: 20000", "shuffle: {buffer_size: 100}", "batch: 16"],
                             self.distribute, "{epochs: 1, slots: 4}", seed="")
        self.serve_nodes([file, file])

    def begin(self):
        """The first batches of a job, and where it stands."""
        self.serve_anew()
        first = self.read_all(2, 1, "--batches", "10")
        return first, place(first[0, 0])

    def assert_refused(self, readers):
        for reader in readers:
            last = self.lines(reader)[-1]
            self.assertIn("E_PLACE", last)
            self.assertIn("places of one run, or none", last)

    def test_are_not_begun_beside_a_place_of_another(self):
        _, token = self.begin()
        self.serve_anew()
        self.refuses_one_without_a_place([self.read_node(0, "--place", token, "--delay-ms", "2"),
                                          self.read_node(1, "--delay-ms", "2")])

    def refuses_one_without_a_place(self, readers):
        """At its next call; the other may go on meanwhile, or be told of two runs."""
        self.assertRegex(self.lines(readers[1])[-1], "E_PLACE .*(has none|or none)")
        self.lines(readers[0])

    def test_do_not_go_on_together(self):
        tokens = [self.begin()[1] for _ in range(2)]
        self.serve_anew()
        self.assert_refused([self.read_node(rank, "--place", token, "--delay-ms", "2")
                             for rank, token in enumerate(tokens)])

    def test_are_left_by_trainers_that_load_their_places_late(self):
        """They open, may take batches ahead, and then open at their places."""
        first, token = self.begin()
        self.serve_anew()
        other = self.read_node(0, "--place", token, "--delay-ms", "1")
        self.wait_for_line(other, "batch 0 60 ")
        self.lines(self.read_node(1, "--batches", "20", "--delay-ms", "5"))
        rest = self.lines(self.read_node(1, "--place", token))
        self.assertEqual(rest[-1], "end_of_stream")
        seen = rows({**first, "rest": rest, "other": self.whole(other)})
        self.assertEqual(sorted(set(seen)), list(range(20000)))
        self.assertEqual(len(seen), 20000 + self.repeated)


class RunsOfQueues(Runs):
    distribute = "{auto_shard: DATA, delivery: queue}"
    refuses_one_without_a_place = Runs.assert_refused
    repeated = 2 * 16  # each node's batch that was on its way when the place was saved


class RunsOfBroadcasts(Runs):
    distribute = "{auto_shard: DATA, delivery: broadcast}"
    refuses_one_without_a_place = Runs.assert_refused


class LostNodes(NodesRig):
    def lose(self, number):
        """Two nodes, of which the second gets the signal: the first one's trainer is told. (How soon
        is a matter of test_node.c, where time is the test's.)"""
        file = self.pipeline(SHUFFLED, "{replicas: 1}", "{epochs: 100}")
        self.serve_nodes([file, file])
        trainers = [self.read_node(rank, "--delay-ms", "20") for rank in (0, 1)]
        for trainer in trainers:
            self.wait_for_line(trainer, "batch 0 5 ")
        os.kill(self.ranks[1], number)
        lines = self.lines(trainers[0])
        self.assertIn("E_PEER_LOST", lines[-1])
        self.assertIn("(rank 1)", lines[-1])
        self.assertNotIn("end_of_stream", lines)

    def test_that_are_killed_are_told_of(self):
        self.lose(signal.SIGKILL)

    def test_that_stand_still_are_told_of(self):
        self.lose(signal.SIGSTOP)

    def test_have_trainers_whose_death_is_told_to_all(self):
        file = self.pipeline(SHUFFLED, TWO, "{epochs: 100}")
        self.serve_nodes([file, file])
        trainers = {
            (rank, replica): self.read_node(rank, "--delay-ms", "20", replica=replica)
            for rank in (0, 1)
            for replica in (0, 1)
        }
        for trainer in trainers.values():
            self.wait_for_line(trainer, "batch 0 2 ")
        trainers[1, 1].kill()
        self.assertIn("E_PEER_LOST replica 3 on node", self.lines(trainers[0, 0])[-1])
        self.assertIn("E_PEER_LOST replica 3 of group", self.lines(trainers[1, 0])[-1])

    def test_have_trainers_who_leave_early_which_is_told_to_all(self):
        """The other node's servers cannot go on: they wait for how far this one comes."""
        for i in range(4):
            (self.path / f"part-{i}.csv").write_text("".join(f"{n}\n" for n in range(4000)))
        file = self.pipeline([
            'list_files: {file_pattern: "part-*.csv", seed: 3}',
            "interleave: {dataset: [text_line], cycle_length: 2}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            "batch: 8",
        ], "{replicas: 1}", "{epochs: 3, slots: 4, rejoin: 300ms}")
        self.serve_nodes([file, file])
        stays, leaves = (self.read_node(rank, *options) for rank, options in
                         ((0, ()), (1, ("--batches", "5"))))
        self.lines(leaves)
        last = self.lines(stays)[-1]
        self.assertIn('E_PEER_LOST group "default" has ended on node', last)
        self.assertIn("(rank 1)", last)

    def test_lose_no_row_when_the_job_goes_on_with_another_number(self):
        file = self.pipeline(SHUFFLED, TWO, "{epochs: 2}", seed="")
        self.serve_nodes([file, file])
        first = self.read_all(2, 2, "--batches", "10")
        token = place(first[0, 0])
        os.kill(self.ranks[1], signal.SIGKILL)
        end(self.ranks[0])
        for nodes, replicas in ((3, 2), (1, 4)):
            with self.subTest(nodes=nodes, replicas=replicas):
                self.ranks.clear()
                for rank in range(nodes):
                    self.node_log(rank).unlink(missing_ok=True)
                other = self.pipeline(SHUFFLED, f"{{replicas: {replicas}}}", "{epochs: 2}", seed="")
                self.serve_nodes([other] * nodes)
                rest = self.read_all(nodes, replicas, "--place", token)
                self.assertEqual(sorted(rows(first) + rows(rest)), sorted(list(range(1000)) * 2))
                for rank in self.ranks.values():
                    end(rank)

    def serve_split(self, nodes, replicas, epochs=2):
        """1,000 rows an epoch for so many trainers, at new servers."""
        for rank in self.ranks.values():
            end(rank)
        self.ranks.clear()
        for rank in range(nodes):
            self.node_log(rank).unlink(missing_ok=True)
        file = self.pipeline(SHUFFLED, f"{{replicas: {replicas}, auto_shard: DATA}}",
                             f"{{epochs: {epochs}}}", seed="")
        self.serve_nodes([file] * nodes)

    def read_from(self, tokens, replicas, *options):
        """What trainers print that open at these places, {number: token}."""
        trainers = [
            self.read_node(number // replicas, "--place", token, *options, replica=number % replicas)
            for number, token in tokens.items()
        ]
        return [self.lines(trainer) for trainer in trainers]

    def taken_by_four(self, *counts):
        """Trainers of one node that read so many batches: what they print."""
        self.serve_split(1, 4)
        trainers = [self.read_node(0, "--batches", str(count), replica=replica)
                    for replica, count in enumerate(counts)]
        return [self.lines(trainer) for trainer in trainers]

    def assert_refused(self, line):
        self.assertIn("E_PLACE", line)
        self.assertRegex(line, "epoch 0, step (10 and at epoch 0, step 11|11 and at epoch 0, step 10)")

    def test_refuse_places_of_other_steps_when_rows_go_to_other_trainers(self):
        ten, eleven = (place(lines) for lines in self.taken_by_four(10, 11, 10, 10)[:2])
        self.serve_split(2, 2)
        said = self.read_from({0: ten, 1: eleven}, 2, "--batches", "3")
        self.assert_refused(sorted(lines[-1] for lines in said)[-1])

    def test_refuse_them_when_each_node_has_one_trainer(self):
        ten, eleven = (place(lines) for lines in self.taken_by_four(10, 11, 10, 10)[:2])
        self.serve_split(2, 1, epochs="null")
        for lines in self.read_from({0: ten, 1: eleven}, 1):
            self.assert_refused(lines[-1])

    def test_go_on_at_other_steps_once_the_number_has_changed(self):
        """One trainer of each node has gone on since, the other has a place from before."""
        first = self.taken_by_four(10, 10, 10, 10)
        tokens = {number: place(lines) for number, lines in enumerate(first)}
        self.serve_split(2, 2)
        second = self.read_from({0: tokens[0], 2: tokens[2]}, 2, "--batches", "2")
        tokens[0], tokens[2] = map(place, second)
        self.serve_split(2, 2)
        rest = self.read_from(tokens, 2)
        got = dict(enumerate(first + second + rest))
        self.assertEqual(sorted(rows(got)), sorted(list(range(1000)) * 2))

    def test_are_refused_a_place_where_batches_depend_on_their_number(self):
        for i in range(4):
            (self.path / f"part-{i}.csv").write_text("".join(f"{i * 50 + n}\n" for n in range(50)))
        file = self.pipeline([
            'list_files: {file_pattern: "part-*.csv", seed: 3}',
            "interleave: {dataset: [text_line], cycle_length: 2}",
            "shuffle: {buffer_size: 10}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            "batch: 8",
        ], "{replicas: 1}", "{epochs: 3}")
        self.serve_nodes([file, file])
        first = self.read_all(2, 1, "--batches", "20")
        token = place(first[1, 0])
        for rank in self.ranks.values():
            end(rank)
        for rank in (0, 1):
            self.node_log(rank).unlink()
        self.serve_nodes([file, file])
        rest = self.read_all(2, 1, "--place", token)
        self.assertEqual(sorted(rows(first) + rows(rest)), sorted(list(range(200)) * 3))
        for rank in self.ranks.values():
            end(rank)
        self.serve(file)
        self.assertIn("2 workers", self.lines(self.read("--place", token))[-1])


if __name__ == "__main__":
    main()
