"""Servers of several nodes that keep places themselves, killed and started again."""

import os
import shlex
import shutil
import signal

import nodes_rig
from nodes_rig import MPIRUN, NodesRig
from rig import TUNDISH, batches

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
DATA = "{auto_shard: DATA, replicas: 2}"


class StateOfNodes(NodesRig):
    """All of them in one folder, as on a file system that nodes share."""

    def setUp(self):
        super().setUp()
        self.state = self.path / "state"
        self.state.mkdir()
        self.job = None

    def serve_kept(self, file, nodes=2):
        for rank in range(nodes):
            self.node_log(rank).unlink(missing_ok=True)
        self.nodes = nodes
        self.job = self.serve_nodes([file] * nodes, "--state", str(self.state))

    def kill(self, *order):
        for rank in order or range(self.nodes):
            os.kill(self.ranks[rank], signal.SIGKILL)
        self.job.wait()

    def kept_by(self, rank):
        return self.state / f"node-{rank}" / "train.place"

    def seen(self, readers):
        """Of each epoch, all values that they were given."""
        values = {}
        for reader in readers:
            for epoch, _, of_batch in batches(self.whole(reader)):
                values.setdefault(epoch, []).extend(of_batch)
        return {epoch: sorted(of_epoch) for epoch, of_epoch in values.items()}

    def refused(self, file, nodes):
        self.serve_kept(file, nodes)
        self.assertNotEqual(self.statuses(self.job), [0] * nodes)
        return self.all_logs()

    def test_lets_trainers_that_kept_running_go_on(self):
        for distribute in (DATA, "{auto_shard: DATA, delivery: queue}"):
            file = self.pipeline(SHUFFLED, distribute, "{epochs: 3, slots: 4}", seed="")
            self.serve_kept(file)
            readers = [self.read_node(rank, "--survive", "--delay-ms", "2", replica=replica)
                       for rank in range(2) for replica in range(2)]  # fmt: skip
            for epoch, order in ((0, (1, 0)), (1, (0, 1))):
                self.wait_for_line(readers[0], f"batch {epoch} ")
                self.kill(*order)
                self.serve_kept(file)
            seen = self.seen(readers)
            if distribute == DATA:
                self.assertEqual(seen, {epoch: list(range(1000)) for epoch in range(3)})
            else:  # whose readers get again what the file does not know of
                self.assertEqual({epoch: sorted(set(of_one)) for epoch, of_one in seen.items()},
                                 {epoch: list(range(1000)) for epoch in range(3)})
            self.end_all()
            self.processes.clear()
            shutil.rmtree(self.state)
            self.state.mkdir()

    def test_gives_a_node_that_lost_its_folder_the_rows_of_the_same_order(self):
        file = self.pipeline(SHUFFLED, DATA, "{epochs: 1, slots: 4}", seed="")
        self.serve_kept(file)
        before = self.read_all(2, 2, "--batches", "20")
        self.wait_for(lambda: all(self.kept_by(rank).exists() for rank in range(2)))
        self.kill()
        shutil.rmtree(self.kept_by(1).parent)
        self.serve_kept(file)
        self.assertIn("all rows of theirs from the beginning", self.log_of(1))
        after = self.read_all(2, 2)
        whole = [values for (rank, _), lines in after.items() if rank == 1
                 for _, _, values in batches(lines)]  # fmt: skip
        others = [values for taken in (before, after) for (rank, _), lines in taken.items()
                  if rank == 0 for _, _, values in batches(lines)]  # fmt: skip
        self.assertEqual({value for values in whole + others for value in values}, set(range(1000)))
        self.assertEqual(sum(map(len, whole)), 500)

    def test_is_refused_to_another_number_of_nodes(self):
        file = self.pipeline(SHUFFLED, DATA, "{epochs: 1, slots: 4}", seed="")
        self.serve_kept(file)
        self.read_all(2, 2, "--batches", "20")
        self.kill()
        said = "a job of 2 nodes, and this one has 3"
        self.assertIn(said, self.refused(file, 3))
        self.assertIn("a job of several nodes, and this one has 1", self.refused(file, 1))
        shutil.rmtree(self.state)
        self.state.mkdir()
        self.serve_kept(file, 1)
        self.read_all(1, 2, "--batches", "20")
        self.kill()
        self.assertIn("a job of one node, and this one has 2", self.refused(file, 2))

    def test_is_refused_where_nodes_have_kept_places_of_two_runs(self):
        file = self.pipeline(SHUFFLED, DATA, "{epochs: 1, slots: 4}", seed="")
        for rank in range(2):
            self.serve_kept(file)
            self.read_all(2, 2, "--batches", "20")
            self.kill()
            self.kept_by(rank).parent.rename(self.path / f"kept.{rank}")
            shutil.rmtree(self.state)
            self.state.mkdir()
        for rank in range(2):
            (self.path / f"kept.{rank}").rename(self.kept_by(rank).parent)
        self.assertIn("in different runs", self.refused(file, 2))

    def test_is_refused_where_only_some_nodes_keep_places(self):
        file = self.pipeline(SHUFFLED, DATA, seed="")
        parts = []
        for rank in range(2):
            command = [TUNDISH, "serve", file, "--socket", self.node_socket(rank)]
            command += ["--state", str(self.state)] * rank
            parts += [":"] * rank + ["-n", "1", "sh", "-c",
                                     f"{shlex.join(command)} 2>{self.node_log(rank)}"]
        self.start([*MPIRUN, *parts]).wait()
        self.assertIn("--state", self.log_of(0))


if __name__ == "__main__":
    nodes_rig.main()
