"""Nodes whose trainers go on in different epochs."""

import os
import signal

from nodes_rig import NodesRig, end, main, rows
from rig import batches, place

ROWS = {0: 160, 1: 96}  # of each node's file: 20 and 12 batches


class EpochsApart(NodesRig):
    """Nodes with files of their own."""

    epochs = 3

    def setUp(self):
        super().setUp()
        for node, count in ROWS.items():
            first = sum(ROWS[i] for i in range(node))
            (self.path / f"part-{node}.csv").write_text(
                "".join(f"{first + n}\n" for n in range(count)))

    def serve_files(self, seed="", deliver="slots: 100"):
        for rank in self.ranks.values():
            end(rank)
        self.ranks.clear()
        for rank in ROWS:
            self.node_log(rank).unlink(missing_ok=True)
        file = self.pipeline([
            'list_files: {file_pattern: "part-*.csv", shuffle: false}',
            "interleave: {dataset: [text_line], cycle_length: 1}",
            "shuffle: {buffer_size: 50}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}",
            "batch: 16",
        ], "{replicas: 1, auto_shard: FILE}", f"{{epochs: {self.epochs}, {deliver}}}", seed=seed)
        return self.serve_nodes([file] * len(ROWS))

    def take(self, counts, places=None, *options):
        """What trainers print that take so many batches each; None: all."""
        trainers = {}
        for rank, count in counts.items():
            wanted = [*options, *(["--place", places[rank]] if places and places[rank] else [])]
            wanted += ["--batches", str(count), "--hold"] if count else []
            trainers[rank] = self.read_node(rank, *wanted)
        return {rank: self.until_place(trainer) if counts[rank] else self.lines(trainer)
                for rank, trainer in trainers.items()}

    def until_place(self, trainer):
        """The lines of a trainer that keeps its last batch: it stays until its server goes."""
        lines = []
        while not lines or not lines[-1].startswith("place "):
            lines.append(trainer.stdout.readline().rstrip("\n"))
            self.assertNotEqual(lines[-1], "", lines)
        return lines

    def assert_all_rows(self, *parts):
        got = sorted(row for part in parts for row in rows(part))
        self.assertEqual(got, sorted(list(range(sum(ROWS.values()))) * self.epochs))

    def go_on(self, counts, seed="", **serving):
        self.serve_files(seed, **serving)
        first = self.take(counts)
        self.serve_files(seed, **serving)
        rest = self.take(dict.fromkeys(ROWS), {rank: place(lines) for rank, lines in first.items()})
        self.assert_all_rows(first, rest)
        return rest

    def test_lose_no_row_where_the_first_is_ahead(self):
        self.go_on({0: 25, 1: 3})

    def test_lose_no_row_where_the_second_is_ahead(self):
        self.go_on({0: 2, 1: 27})

    def test_end_together(self):
        """Both deliver as many steps of each epoch, the second empty ones after its last row."""
        rest = self.go_on({0: 25, 1: 3})
        last = {rank: [line.split()[1:3] for line in lines if line.startswith("batch 2 ")]
                for rank, lines in rest.items()}
        self.assertEqual(last[0], last[1])
        self.assertEqual(len(last[0]), 20)

    def test_may_be_two_epochs_apart(self):
        rest = self.go_on({0: 43, 1: 5})
        self.assertEqual(rest[0][-1], "end_of_stream")
        self.assertEqual(rest[1].count("end"), 3)

    def test_go_on_a_second_time(self):
        self.serve_files()
        first = self.take({0: 25, 1: 3})
        self.serve_files()
        second = self.take({0: 4, 1: 4}, {rank: place(lines) for rank, lines in first.items()})
        self.serve_files()
        rest = self.take(dict.fromkeys(ROWS),
                         {rank: place(lines) for rank, lines in second.items()})
        self.assert_all_rows(first, second, rest)

    def test_begin_beside_a_place_where_each_stage_has_a_seed(self):
        """The second node's trainer has lost its place: it gets all of its rows again."""
        self.serve_files("seed: 7")
        first = self.take({0: 25, 1: 3})
        self.serve_files("seed: 7")
        rest = self.take(dict.fromkeys(ROWS), {0: place(first[0]), 1: None})
        self.assert_all_rows({0: first[0]}, rest)

    def test_do_not_begin_beside_a_place_whose_seed_was_drawn(self):
        self.serve_files()
        first = self.take({0: 25, 1: 3})
        self.serve_files(deliver="slots: 3")
        rest = self.take(dict.fromkeys(ROWS), {0: place(first[0]), 1: None})
        self.assertIn("E_PLACE", rest[0][-1])
        self.assertIn("places of one run, or none", rest[0][-1])
        self.assertIn("E_PLACE", rest[1][-1])

    def test_cut_epochs_that_others_have_left(self):
        """The second asks for the next epoch where the first has that behind it."""
        self.serve_files()
        first = self.take({0: 25, 1: 1})
        self.serve_files(deliver="slots: 3")
        rest = self.take(dict.fromkeys(ROWS), {rank: place(lines) for rank, lines in first.items()},
                         "--restart-after", "4")
        for lines in rest.values():
            self.assertEqual(lines[-1], "end_of_stream", lines[-3:])
        self.assertLess(len([line for line in rest[1] if line.startswith("batch 0 ")]), 12)

    def wait_for_others(self):
        """The first node's trainer goes on in the second epoch; the second's does not come."""
        self.serve_files()
        first = self.take({0: 25, 1: 3})
        job = self.serve_files()
        return job, self.read_node(0, "--place", place(first[0]))

    def test_are_not_waited_for_once_a_node_is_gone(self):
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            with self.subTest(number=number):
                waits = self.wait_for_others()[1]
                self.wait_for(lambda: "continues at epoch 1" in self.log_of(0))
                os.kill(self.ranks[1], number)
                last = self.lines(waits)[-1]
                self.assertIn("E_PEER_LOST", last)
                self.assertIn("(rank 1)", last)

    def test_are_not_waited_for_by_a_server_that_drains(self):
        job, waits = self.wait_for_others()
        self.wait_for(lambda: "continues at epoch 1" in self.log_of(0))
        self.assertEqual(self.stop_nodes(job), [0, 0])
        self.assertEqual(batches(self.lines(waits)), [])


class EndlessEpochs(NodesRig):
    """Rows that all nodes share, without an end: trainers leave an epoch where they like."""

    def serve_rows(self):
        for rank in self.ranks.values():
            end(rank)
        self.ranks.clear()
        for rank in range(2):
            self.node_log(rank).unlink(missing_ok=True)
        file = self.pipeline(
            ["range: 40", "shuffle: {buffer_size: 40}", "repeat: {}", "batch: 16"],
            "{replicas: 1, auto_shard: DATA}", "{slots: 3}", seed="")
        return self.serve_nodes([file] * 2)

    def take(self, *wanted):
        """What a trainer of each node prints that is started so."""
        trainers = [self.read_node(rank, *options) for rank, options in enumerate(wanted)]
        return [self.lines(trainer) for trainer in trainers]

    def test_are_cut_after_a_node_was_lost(self):
        """One trainer's checkpoint is of the epoch that the other's has left."""
        self.serve_rows()
        first = self.take(*[["--restart-after", "2", "--places", "--batches", "4"]] * 2)
        places = [[line.split()[1] for line in lines if line.startswith("place ")]
                  for lines in first]
        os.kill(self.ranks[1], signal.SIGKILL)
        self.serve_rows()
        rest = self.take(["--place", places[0][3], "--batches", "6"],
                         ["--place", places[1][0], "--batches", "6", "--restart-after", "2"])
        self.assertEqual([[epoch for epoch, _, _ in batches(lines)] for lines in rest],
                         [[1] * 6, [0] * 2 + [1] * 4])

    def assert_one_order(self, *lines_of_all):
        """Of both nodes' first five batches of the second epoch: that is each row twice."""
        self.assertEqual(
            sorted(row for lines in lines_of_all for epoch, _, rows in batches(lines) if epoch == 1
                   for row in rows), sorted(2 * list(range(40))))

    def left_place(self, trainer):
        return self.wait_for_line(trainer, "left ").split()[1]

    def test_are_dealt_in_one_order_though_one_trainer_has_left_the_last_alone(self):
        """It has left the epoch and saved a place, before the other asked to."""
        self.serve_rows()
        left = self.read_node(0, "--restart-after", "7", "--places")
        stays = self.read_node(1, "--batches", "9")
        places = self.left_place(left), place(self.lines(stays))
        os.kill(self.ranks[1], signal.SIGKILL)
        self.serve_rows()
        rest = self.take(["--place", places[0], "--batches", "5"],
                         ["--place", places[1], "--batches", "7", "--restart-after", "2"])
        self.assert_one_order(*rest)

    def test_are_dealt_in_the_order_that_one_trainer_has_begun(self):
        """The other's place is from before: it does not know that order."""
        self.serve_rows()
        left = self.read_node(0, "--restart-after", "7", "--places")
        token = self.left_place(left)
        first = self.lines(self.read_node(1, "--restart-after", "7", "--batches", "10"))
        os.kill(self.ranks[1], signal.SIGKILL)
        for order in (0, 1), (1, 0):
            with self.subTest(first=order[0]):
                self.serve_rows()
                wanted = [["--place", token, "--batches", "5"],
                          ["--place", place(first), "--batches", "2"]]
                trainers = {}
                for rank in order:
                    trainers[rank] = self.read_node(rank, *wanted[rank])
                    self.wait_for(lambda: f"continues at epoch 1, step {3 * rank}" in
                                  self.log_of(rank))
                self.assert_one_order(first, *map(self.lines, trainers.values()))

    def wait_alone(self):
        """The first node's trainer wants the next epoch, the second's does not."""
        job = self.serve_rows()
        waits = self.read_node(0, "--restart-after", "2")
        other = self.read_node(1, "--delay-ms", "20")
        self.wait_for_line(waits, "batch 0 1 ")
        self.wait_for_line(other, "batch 0 1 ")
        return job, waits

    def test_are_not_waited_for_once_a_node_is_gone(self):
        for number in (signal.SIGKILL, signal.SIGSTOP, signal.SIGTERM):
            with self.subTest(number=number):
                waits = self.wait_alone()[1]
                os.kill(self.ranks[1], number)
                last = self.lines(waits)[-1]
                self.assertIn("E_PEER_LOST", last)
                self.assertIn("(rank 1)", last)

    def test_are_not_waited_for_by_a_server_that_drains(self):
        job, waits = self.wait_alone()
        self.assertEqual(self.stop_nodes(job), [0, 0])
        self.assertNotIn("batch 1", "".join(self.lines(waits)))


if __name__ == "__main__":
    main()
