"""Two nodes: the slow one is named, and the launcher shows a page for each."""

import os
import socket
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_status import StatusRig  # noqa: E402
from launcher_rig import LAUNCH  # noqa: E402
from nodes_rig import NodesRig, why_not  # noqa: E402
from rig import READER, TUNDISH, stop  # noqa: E402

QUICK_STEP = ("--delay-ms", "20")


@unittest.skipIf(why_not(), why_not())
class TwoNodes(NodesRig, StatusRig):
    def serve_two(self, files="shared"):
        """Each has a folder of its own, that of rank 1 on storage that may be slow. Shared files are
        alike in both."""
        for rank in range(2):
            folder = self.path / f"node-{rank}"
            folder.mkdir()
            for i in range(4):
                number = i if files == "shared" else 2 * i + rank
                (folder / f"part-{number}.csv").write_text("".join(f"{row:099}\n" for row in range(4000)))
        file = Path(self.pipeline([
            "list_files: {file_pattern: 'part-*.csv', shuffle: false}",
            "interleave: {dataset: [csv: {record_defaults: [int64], column_names: [value]}], cycle_length: 1}",
            "repeat", "batch: 16"], deliver="{epochs: null}",
            distribute=f"{{replicas: 1, auto_shard: DATA, files: {files}}}"))
        text = file.read_text()
        for rank in range(2):
            (self.path / f"node-{rank}" / "pipeline.yaml").write_text(text)
        self.environment.update(
            LD_PRELOAD=os.environ["TUNDISH_SLOW_READS"], SLOW_READS_IN=f"{self.path}/node-1",
            SLOW_READS_MS=f"{self.path}/ms")
        self.serve_nodes([str(self.path / f"node-{rank}" / "pipeline.yaml") for rank in range(2)],
                         "--threads", "2")
        del self.environment["LD_PRELOAD"]
        self.environment["TUNDISH_SERVER"] = self.node_socket(0)
        self.admin()
        for rank in range(2):
            self.train(*QUICK_STEP, TUNDISH_SERVER=self.node_socket(rank))
        self.wait_for(lambda: sum(reader["taken"] > 5 for node in self.status()["nodes"]
                                  for reader in node["report"]["streams"][0]["readers"]) == 2)

    def levels(self):
        status = self.status()
        return status["worst_rank"], {node["rank"]: node["report"]["verdict"]["level"]
                                      for node in status["nodes"]}

    def test_one_with_slow_storage_is_the_worst_off(self):
        self.serve_two()
        self.wait_for(lambda: self.levels()[1] == {0: "fine", 1: "fine"})
        (self.path / "ms").write_text("300")
        self.wait_for(lambda: self.levels() == (1, {0: "fine", 1: "waiting"}))
        verdict = self.tells("waits for its storage", socket=self.node_socket(1), level="waiting",
                             cause="source", culprit="csv")
        self.assertIn("storage", verdict["advice"])
        self.tells(socket=self.node_socket(0), level="fine")
        (self.path / "ms").unlink()
        self.wait_for(lambda: self.levels()[1] == {0: "fine", 1: "fine"})

    def test_one_whose_rows_come_slowly_is_waited_for(self):
        self.serve_two("local")
        self.tells(socket=self.node_socket(0), level="fine")
        (self.path / "ms").write_text("50")
        self.tells("its server waits for other nodes in ", socket=self.node_socket(0),
                   level="waiting", cause="server", culprit="nodes")
        (self.path / "ms").unlink()
        self.tells(socket=self.node_socket(0), level="fine")


@unittest.skipIf(why_not(), why_not())
class LaunchedNodes(StatusRig):
    def two_ports(self):
        """The first of two that are free, one after the other."""
        while True:
            with socket.socket() as one, socket.socket() as other:
                one.bind(("127.0.0.1", 0))
                port = one.getsockname()[1]
                try:
                    other.bind(("127.0.0.1", port + 1))
                except OSError:
                    continue
                return port

    def test_have_a_page_each(self):
        (self.path / "tmp").mkdir()
        port = self.two_ports()
        file = self.pipeline(["range: 100000", "batch: 16"], deliver="{epochs: null}")
        launcher = self.start(
            [sys.executable, "-B", str(LAUNCH), file, "--tundish", TUNDISH, "--nodes", "2",
             "--replicas", "1", "--admin", f"127.0.0.1:{port}", "--cache", str(self.path / "cache"),
             "--", "sh", "-c", f"exec {READER} --delay-ms 20 >/dev/null"],
            TMPDIR=str(self.path / "tmp"))
        for rank, shown in ((0, [0, 1]), (1, [1])):
            self.host = f"127.0.0.1:{port + rank}"
            while self.ranks() != shown:
                self.assertIsNone(launcher.poll())
            self.assertIn("<!DOCTYPE html>", self.ask("/")[2])
        stop(launcher)

    def ranks(self):
        host, port = self.host.split(":")
        with socket.socket() as probe:
            if probe.connect_ex((host, int(port))) != 0:
                return []
        return [node["rank"] for node in self.status()["nodes"]]


if __name__ == "__main__":
    unittest.main()
