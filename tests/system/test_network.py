"""Nodes that a network is between."""

import os
import shlex
import signal
import subprocess
from pathlib import Path

from network_rig import ADDRESSES, HOSTS, NetworkRig, ip, no_namespaces
from nodes_rig import main, rows
from rig import DEADLINE_S, TUNDISH, batches

STAGES = ["range: 2000", "shuffle: {buffer_size: 100}", "batch: 16"]


class Network(NetworkRig):
    def serve_network(self, file):
        """mpirun runs on the first node and reaches the second through the agent."""
        hosts = ",".join(f"{address}:1" for address in ADDRESSES)
        node = '"$OMPI_COMM_WORLD_RANK"'
        script = (
            f"{shlex.quote(TUNDISH)} serve {file} --socket {self.path}/server.{node} "
            f"2>{self.path}/log.{node} & echo $! >{self.path}/pid.{node}; wait $!"
        )
        command = [
            "mpirun", "--enable-recovery", "--mca", "plm_rsh_agent", self.agent,
            "--mca", "oob_tcp_if_include", "192.0.2.0/24",
            "--mca", "btl_tcp_if_include", "192.0.2.0/24", "--mca", "btl", "tcp,self",
            "--host", hosts, "-n", "2", "sh", "-c", script,
        ]
        if os.geteuid() == 0:
            command.insert(1, "--allow-run-as-root")
        job = self.start([self.on_node, "0", *command])
        self.wait_for(lambda: all(map(self.is_ready, (0, 1))) or job.poll() is not None)
        self.assertTrue(all(map(self.is_ready, (0, 1))), self.all_logs())
        for rank in (0, 1):
            self.ranks[rank] = int((self.path / f"pid.{rank}").read_text())
        return job

    def test_deals_the_rows_of_all(self):
        file = self.pipeline(STAGES, "{replicas: 2}")
        expected = self.peek_workers(file, 2)
        job = self.serve_network(file)
        got = self.read_all(2, 2)
        for (rank, replica), lines in got.items():
            self.assertEqual(batches(lines), expected[rank][replica])
        for pid in self.ranks.values():
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(job.wait(timeout=DEADLINE_S), 0)

    def test_carries_rows_packed_where_it_is_slow(self):
        for space, device in zip(self.spaces, self.devices):
            slow = subprocess.run(
                ["tc", "-n", space, "qdisc", "add", "dev", device, "root", "tbf", "rate",
                 "40mbit", "burst", "64kbit", "latency", "400ms"], capture_output=True, text=True, check=False)
            if slow.returncode != 0:
                self.skipTest(f"the network cannot be slowed down: {slow.stderr.strip()}")
        for rank in (0, 1):
            (self.path / f"node-{rank}").mkdir()
            (self.path / f"node-{rank}" / f"part-{rank}.txt").write_text(
                "".join(f"{n:0800}\n" for n in range(rank * 20000, rank * 20000 + 20000)))
        file = self.pipeline(
            ['list_files: {file_pattern: "part-*.txt", shuffle: false}',
             "interleave: {dataset: [text_line], cycle_length: 2}",
             "string_to_number: {out_type: int64}", "batch: 500"],
            "{replicas: 1, auto_shard: DATA, files: local}")
        for rank in (0, 1):
            (self.path / f"node-{rank}" / "pipeline.yaml").write_text(Path(file).read_text())
        job = self.serve_network(f"{self.path}/node-$OMPI_COMM_WORLD_RANK/pipeline.yaml")
        got = self.read_all(2, 1)
        self.assertEqual(rows(got), list(range(40000)))
        for pid in self.ranks.values():
            os.kill(pid, signal.SIGTERM)
        self.assertEqual(job.wait(timeout=DEADLINE_S), 0)
        for rank in (0, 1):  # of 8 MB to the other node, the first of them before it was known
            self.assertLess(self.link_figures(rank)["bytes"], 6500000)

    def test_that_is_torn_is_told_to_both_sides(self):
        file = self.pipeline(STAGES, "{replicas: 1}", "{epochs: 1000}")
        self.serve_network(file)
        trainers = [self.read_node(rank, "--delay-ms", "20") for rank in (0, 1)]
        for trainer in trainers:
            self.wait_for_line(trainer, "batch 0 3 ")
        ip("-n", self.spaces[0], "link", "set", self.devices[0], "down")
        for rank, trainer in enumerate(trainers):
            last = self.lines(trainer)[-1]
            self.assertIn("E_PEER_LOST", last)
            self.assertIn(f"{HOSTS[1 - rank]} (rank {1 - rank}) has been silent for ", last)


if __name__ == "__main__":
    main(no_namespaces)
