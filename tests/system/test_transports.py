"""A job of several nodes over each network that Open MPI can use."""

import os
import random
import signal
from pathlib import Path

from nodes_rig import NodesRig, main, rows
from transports import transports

NODES, ROWS, RECORDS, RECORD_BYTES = 3, 2000, 48, 1 << 20


def record(number):
    return random.Random(number).randbytes(RECORD_BYTES)


def reader_sum(text):
    """As rows_reader.c has it."""
    total = len(text)
    for byte in text[::97]:
        total = (total * 31 + byte) & 0xFFFFFFFF
    return total * 31 + text[-1]


class OverTcp(NodesRig):
    NAME = "tcp"
    NAMES_IT = True  # also the nodes that are not next to a lost one

    def setUp(self):
        super().setUp()
        transport = transports("lo")[self.NAME]
        reason = transport.why_not(self.environment)
        if reason:
            self.skipTest(f"MPI has no {self.NAME} here: {reason}")
        self.environment.update(transport.environment)
        self.transport = transport

    def streams(self):
        """One without files, one of large records that lie apart, and one that goes on."""
        for i in range(NODES):
            (self.path / f"node-{i}").mkdir()
            (self.path / f"node-{i}" / f"part-{i}.bin").write_bytes(b"".join(map(record, range(i, RECORDS, NODES))))
        file = self.pipeline([f"range: {ROWS}", "shuffle: {buffer_size: 100}", "batch: 16"])
        text = Path(file).read_text() + f"""\
  large:
    dataset:
      - list_files: {{file_pattern: "part-*.bin", shuffle: false}}
      - interleave: {{dataset: [{{fixed_length_record: {{record_bytes: {RECORD_BYTES}}}}}], cycle_length: 3}}
      - batch: 6
    distribute: {{replicas: 1, auto_shard: DATA, files: local}}
    deliver: {{epochs: 1}}
  endless:
    dataset: [range: {ROWS}, shuffle: 100, batch: 16]
    distribute: {{replicas: 1}}
    deliver: {{epochs: 1000}}
"""
        files = [self.path / f"node-{i}" / "pipeline.yaml" for i in range(NODES)]
        for file in files:
            file.write_text(text)
        return list(map(str, files))

    def test_a_job(self):
        job = self.serve_nodes(self.streams(), apart=True, mpirun=self.transport.options)
        for rank in range(NODES):
            self.assertTrue(self.is_ready(rank), self.all_logs())
        got = self.read_all(NODES, 1)
        self.assertEqual({lines[-1] for lines in got.values()}, {"end_of_stream"}, self.all_logs())
        self.assertEqual(rows(got), list(range(ROWS)))

        self.environment["TUNDISH_STREAM"] = "large"
        got = self.read_all(NODES, 1)
        self.assertEqual({lines[-1] for lines in got.values()}, {"end_of_stream"}, self.all_logs())
        self.assertEqual(rows(got), sorted(map(reader_sum, map(record, range(RECORDS)))))

        self.environment["TUNDISH_STREAM"] = "endless"
        trainers = [self.read_node(rank, "--delay-ms", "20") for rank in range(NODES)]
        for trainer in trainers:
            self.wait_for_line(trainer, "batch 0 5 ")
        os.kill(self.ranks[2], signal.SIGKILL)
        said = [self.lines(trainer)[-1] for trainer in trainers[:2]]
        for last in said:
            self.assertIn("E_PEER_LOST", last, self.all_logs())
        self.assertIn("(rank 2)", said[0])
        if self.NAMES_IT:
            self.assertIn("(rank 2)", said[1])


class OverUcx(OverTcp):
    NAME = "ucx"


class OverOfi(OverTcp):
    """libfabric's tcp does not return from sending to the lost node, so its neighbour falls silent."""

    NAME = "ofi"
    NAMES_IT = False


class OverSockets(OverTcp):
    NAME = "sockets"


if __name__ == "__main__":
    main()
