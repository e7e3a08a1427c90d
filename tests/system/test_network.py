"""Nodes that a network is between."""

import subprocess
import sys
import time
from pathlib import Path

from network_rig import NetworkRig
from networks import DEVICE, HOSTS, Networks, Wire, why_not
from nodes_rig import main, rows
from rig import DEADLINE_S, Rig, batches

STAGES = ["range: 2000", "shuffle: {buffer_size: 100}", "batch: 16"]


class Network(NetworkRig):
    def test_deals_the_rows_of_all(self):
        file = self.pipeline(STAGES, "{replicas: 2}")
        expected = self.peek_workers(file, 2)
        job = self.serve_network(file)
        got = self.read_all(2, 2)
        for (rank, replica), lines in got.items():
            self.assertEqual(batches(lines), expected[rank][replica])
        self.assertEqual(self.stop_nodes(job), [0, 0])

    def test_carries_rows_packed_where_it_is_slow(self):
        for space in self.network.spaces:
            slow = subprocess.run(
                ["tc", "-n", space, "qdisc", "add", "dev", DEVICE, "root", "tbf", "rate",
                 "40mbit", "burst", "128kbit", "latency", "400ms"], capture_output=True, text=True, check=False)
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
        job = self.serve_network(f"{self.path}/node-$RANK/pipeline.yaml")
        got = self.read_all(2, 1)
        self.assertEqual(rows(got), list(range(40000)))
        self.assertEqual(self.stop_nodes(job), [0, 0])
        for rank in (0, 1):  # of 8 MB to the other node, the first of them before it was known
            self.assertLess(self.link_figures(rank)["bytes"], 6500000)

    def test_that_is_torn_is_told_to_both_sides(self):
        file = self.pipeline(STAGES, "{replicas: 1}", "{epochs: 1000}")
        self.serve_network(file)
        trainers = [self.read_node(rank, "--delay-ms", "20") for rank in (0, 1)]
        for trainer in trainers:
            self.wait_for_line(trainer, "batch 0 3 ")
        self.network.cut(0)
        for rank, trainer in enumerate(trainers):
            last = self.lines(trainer)[-1]
            self.assertIn("E_PEER_LOST", last)
            self.assertIn(f"{HOSTS[1 - rank]} (rank {1 - rank}) has been silent for ", last)


class Wires(Rig):
    """The network itself (networks.py)."""

    ECHO = "import socket; s = socket.create_server(('', 7)); print(flush=True); c = s.accept()[0]\n" \
        "while word := c.recv(100): c.sendall(word)"
    ASK = "import socket, time; c = socket.create_connection(('192.0.2.2', 7)); began = time.monotonic()\n" \
        "for _ in range(5): c.sendall(b'x'); c.recv(1)\n" \
        "print(time.monotonic() - began)"
    COUNT = "import socket; s = socket.socket(type=socket.SOCK_DGRAM); s.bind(('', 7)); s.settimeout(60)\n" \
        "print(flush=True); count = 0\n" \
        "while (word := s.recv(100)) != b'end': count += 1\n" \
        "print(count)"
    SEND = "import socket, time; s = socket.socket(type=socket.SOCK_DGRAM)\n" \
        "for word in [b'x'] * 500 + [b'end'] * 100: s.sendto(word, ('192.0.2.2', 7)); time.sleep(0.001)"

    OWNER = "import sys, subprocess; from networks import Networks, Wire\n" \
        "network = Networks(2, Wire(float(sys.argv[1])))\n" \
        "sleeper = subprocess.Popen([*network.on(1), 'sleep', '1000'])\n" \
        "print(sleeper.pid, *network.spaces, flush=True); sleeper.wait()"

    def on_both(self, wire, first, second):
        """What a program on the second node prints, and one on the first that begins after it."""
        reason = why_not(wire)
        if reason:
            self.skipTest(reason)
        network = Networks(2, wire)
        self.addCleanup(network.close)
        other = self.start([*network.on(1), sys.executable, "-c", second])
        other.stdout.readline()
        return self.lines(self.start([*network.on(0), sys.executable, "-c", first])), other

    def test_carry_each_packet_with_a_delay(self):
        took, _ = self.on_both(Wire(delay_ms=20), self.ASK, self.ECHO)
        self.assertGreaterEqual(float(took[0]), 5 * 2 * 0.020)

    def test_lose_some_packets(self):
        _, other = self.on_both(Wire(loss_percent=20), self.SEND, self.COUNT)
        self.assertIn(int(self.lines(other)[0]), range(200, 480))  # 400, give or take 9

    def test_are_gone_after_what_wanted_them_was_killed(self):
        for delay_ms in (0, 1):
            if why_not(Wire(delay_ms)):
                continue
            owner = self.start([sys.executable, "-B", "-c", self.OWNER, str(delay_ms)],
                               PYTHONPATH=str(Path(__file__).parent))
            pid, *spaces = owner.stdout.readline().split()
            self.assertEqual(len(spaces), 2)
            owner.kill()
            files = [Path(f"/proc/{pid}"), *(Path(f"/run/netns/{space}") for space in spaces)]
            deadline = time.monotonic() + DEADLINE_S / 2
            while left := [file for file in files if file.exists()]:
                self.assertLess(time.monotonic(), deadline, left)
                time.sleep(0.05)


if __name__ == "__main__":
    main(why_not)
