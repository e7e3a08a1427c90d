"""What befalls a job of several nodes: one goes, one gives other rows, trainers start again."""

import os
import shutil
import signal
import tempfile
from pathlib import Path

from nodes_rig import NodesRig, main, rows
from rig import batches, place

SHUFFLED = ["range: 4000", "shuffle: {buffer_size: 100}", "batch: 16"]


class NodeFaults(NodesRig):
    def lose_a_node(self, distribute, readers):
        """Two nodes, of which the second is killed; what the first one's trainers say last."""
        file = self.pipeline(SHUFFLED, distribute, "{epochs: 100}")
        self.serve_nodes([file, file])
        trainers = [self.start_reader(rank, group) for rank in (0, 1) for group in readers]
        for trainer in trainers:
            self.wait_for_line(trainer, "batch 0 ")
        os.kill(self.ranks[1], signal.SIGKILL)
        return [self.lines(trainer)[-1] for trainer in trainers[:len(readers)]]

    def start_reader(self, rank, group):
        self.environment["TUNDISH_GROUP"] = group
        return self.read_node(rank, "--delay-ms", "5")

    def test_readers_of_a_queue_are_told_of_a_lost_node(self):
        for last in self.lose_a_node("{delivery: queue}", ["default"] * 2):
            self.assertIn("E_PEER_LOST", last)
            self.assertIn("(rank 1)", last)

    def test_groups_of_a_broadcast_are_told_of_a_lost_node(self):
        for last in self.lose_a_node("{delivery: broadcast}", ["a", "b"]):
            self.assertIn("E_PEER_LOST", last)
            self.assertIn("(rank 1)", last)

    def test_other_rows_on_one_node_end_the_job_and_name_it(self):
        """A filter keeps other rows there: of so many steps, all would be shifted in silence."""
        (self.path / "numbers.py").write_text(
            "import array, os, sys\n"
            "own = 2500 if os.environ['TUNDISH_WORKER'] == '1' else -1\n"
            "array.array('q', (i if i != own else -1 for i in range(9000))).tofile(sys.stdout.buffer)\n"
        )
        file = self.pipeline([
            "program: {command: [python3, numbers.py], spec: {value: {dtype: int64}}}",
            'filter: "value >= 0"',
            "batch: 4",
        ], "{replicas: 1, auto_shard: DATA}", "{epochs: 1}")
        self.serve_nodes([file, file])
        # Nodes that know their steps do not wait for each other: here they stop behind step 1024,
        # where they compare what they dealt, until they have.
        readers = [self.read_some(rank, 1100) for rank in (0, 1)]
        self.wait_for(lambda: all("come in another order, on" in self.log_of(rank)
                                  for rank in (0, 1)))
        got = {rank: reader.finish() for rank, reader in enumerate(readers)}
        said = [lines[-1] for lines in got.values()]
        for last in said:
            self.assertIn("E_DATA", last)
            self.assertIn("come in another order, on", last)
            self.assertIn("(rank 0)", last)
            self.assertIn("(rank 1)", last)
        self.assertLess(len(rows(got)), 9000)

    def test_all_nodes_begin_again_after_a_bad_row(self):
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(43)) + "x\n")
        file = self.pipeline([
            "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}",
            "batch: 4",
        ], "{replicas: 1, auto_shard: DATA}", "{epochs: null}")
        self.serve_nodes([file, file])
        for _ in range(3):
            readers = [self.read_node(rank) for rank in (0, 1)]
            for rank, reader in enumerate(readers):
                lines = self.lines(reader)
                self.assertIn("E_DATA", lines[-1])
                # A node tells the others at once, so they may have had fewer.
                found = [values for _, _, values in batches(lines)[:10]]
                begin = [4 * step + 2 * rank for step in range(len(found))]
                self.assertEqual(found, [[row, row + 1] for row in begin])

    def test_a_node_that_had_all_begins_again_with_one_that_failed(self):
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(43)) + "x\n")
        file = self.pipeline([
            "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}",
            "batch: 4",
        ], "{replicas: 1, auto_shard: DATA}")
        self.serve_nodes([file, file])
        for count in range(1, 4):
            lines = self.lines(self.read_node(0))
            self.assertEqual(len(batches(lines)), 11)
            self.assertEqual(lines[-1], "end_of_stream")
            lines = self.lines(self.read_node(1))
            self.assertEqual(len(batches(lines)), 10)
            self.assertIn("E_DATA", lines[-1])
            self.wait_for(lambda: self.log_of(0).count("train: node") == count)

    def test_other_rows_of_a_program_end_a_short_epoch(self):
        """They are as many and as long; a cache of an earlier run brings them back."""
        for differ, kept in ((True, None), (False, None), (True, 2), (False, 2), (False, 1)):
            with self.subTest(differ=differ, kept=kept):
                cache = ["cache: rows"] if kept else []
                files = [self.of_program(1000 * rank * differ, *cache) for rank in (0, 1)]
                for file in files[:kept or 0]:
                    self.peek(file)
                job = self.serve_nodes(files, apart=True)
                got = self.read_all(2, 1)
                for lines in got.values():
                    self.assertIn("come in another order, on" if differ else
                                  "end_of_stream", lines[-1])
                if not differ:
                    self.assertEqual(rows(got), list(range(2026)))
                self.stop_nodes(job)
                for rank in (0, 1):
                    self.node_log(rank).unlink()

    def test_a_program_goes_on_at_a_place_on_all_nodes(self):
        self.assert_goes_on(self.of_program(0))

    def test_processes_that_begin_anywhere_go_on_at_a_place_on_all_nodes(self):
        """Among several nodes they begin with their first rows."""
        (self.path / "turns.py").write_text(
            "import array, os, sys\n"
            "first, step = (int(os.environ[f'TUNDISH_{name}']) for name in ('FIRST_ROW', 'ROW_STEP'))\n"
            "array.array('q', range(first, 2026, step)).tofile(sys.stdout.buffer)\n"
        )
        program = "{command: [python3, turns.py], spec: {value: {dtype: int64}}, processes: 3, seek: true}"
        self.assert_goes_on(self.pipeline([f"program: {program}", "batch: 7"],
                                          "{replicas: 1, auto_shard: DATA}", "{epochs: 1}"))

    def assert_goes_on(self, file):
        self.serve_nodes([file, file])
        first = self.read_all(2, 1, "--batches", "10")
        rest = [self.read_node(rank, "--place", place(first[rank, 0])) for rank in (0, 1)]
        rest = {(rank, 0): self.lines(reader) for rank, reader in enumerate(rest)}
        self.assertEqual([lines[-1] for lines in rest.values()], ["end_of_stream"] * 2)
        self.assertEqual(sorted(rows(first) + rows(rest)), list(range(2026)))

    def of_program(self, first, *stages):
        """The pipeline file of a node, in a folder of its own."""
        folder = Path(tempfile.mkdtemp(dir=self.path))
        (folder / "numbers.py").write_text(
            "import array, sys\n"
            f"array.array('q', range({first}, {first} + 2026)).tofile(sys.stdout.buffer)\n"
        )
        file = self.pipeline([
            "program: {command: [python3, numbers.py], spec: {value: {dtype: int64}}}",
            *stages, "shuffle: 100", "batch: 7",
        ], "{replicas: 1, auto_shard: DATA}", "{epochs: 1}")
        return str(shutil.move(file, folder / "pipeline.yaml"))

    def read_some(self, rank, count):
        """A trainer of the node that has so many batches, or was told why there are no more."""
        self.environment["TUNDISH_SERVER"] = self.node_socket(rank)
        reader = self.read_paced()
        while len(reader.seen) < count and not (reader.seen and reader.seen[-1].startswith("status")):
            reader.ask()
            reader.seen.append(reader.line())
        return reader

    def test_trainers_of_all_nodes_start_again_at_the_agreed_step(self):
        """They stood at different steps; all are killed, the servers live on."""
        distribute, deliver = "{replicas: 2}", "{epochs: 2, slots: 8, rejoin: 600s}"
        file = self.pipeline(SHUFFLED, distribute, deliver)
        expected = self.peek_workers(file, 2, "--epochs", "2")
        self.serve_nodes([file, file])
        counts = {(0, 0): 10, (0, 1): 13, (1, 0): 12, (1, 1): 11}
        trainers = {
            (rank, replica): self.read_node(rank, "--batches", str(count), "--hold", replica=replica)
            for (rank, replica), count in counts.items()
        }
        tokens = {key: self.wait_for_line(trainer, "place ") for key, trainer in trainers.items()}
        agreed = place([tokens[0, 0]])
        for key, trainer in trainers.items():
            trainer.kill()
        self.wait_for(lambda: all(self.log_of(rank).count("has died") == 2 for rank in (0, 1)))
        again = self.read_all(2, 2, "--place", agreed)
        for (rank, replica), lines in again.items():
            self.assertEqual(batches(lines), expected[rank][replica][10:], (rank, replica))
            self.assertEqual(lines[-1], "end_of_stream")


if __name__ == "__main__":
    main()
