"""Who is named, for each way in which a job can be held up."""

import os
import re
import signal
import subprocess
import sys
import time
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from rig_admin import PLAIN, AdminRig, costly, has_readers  # noqa: E402
from nodes_rig import NodesRig, why_not  # noqa: E402
from rig import may_mount  # noqa: E402

class Attribution(AdminRig):
    def test_names_a_slow_stage(self):
        self.serve(self.pipeline(costly(), deliver="{epochs: null}"), "--threads", "1")
        self.admin()
        self.train()
        verdict = self.wait_for_verdict(level="waiting", cause="stage", culprit="map")
        self.assertIn("replica 0 on node ", verdict["sentence"])
        self.assertIn("of its time: map takes ", verdict["sentence"])

    def test_names_slow_reading(self):
        """Of lines of 300 kB one number is wanted: to look through them costs hundreds of times what
        it costs to hand on and to print sixteen numbers, on any machine."""
        line = ",".join("123456789" for _ in range(30000))
        (self.path / "wide.csv").write_text("".join(f"{i},{line}\n" for i in range(20)))
        stages = [
            "csv: {filenames: wide.csv, record_defaults: [int64], column_names: [value],"
            " select_cols: [0]}",
            "repeat",
            "batch: 16",
        ]
        self.serve(self.pipeline(stages, deliver="{epochs: null}"), "--threads", "1")
        self.admin()
        self.train()
        verdict = self.wait_for_verdict(level="waiting", cause="source", culprit="csv")
        self.assertIn("reading with csv takes", verdict["sentence"])

    def test_names_a_program_that_writes_slowly(self):
        (self.path / "slow.py").write_text(
            "import struct, sys, time\nfor i in range(100000):\n"
            "    sys.stdout.buffer.write(struct.pack('<q', i))\n"
            "    sys.stdout.buffer.flush()\n    time.sleep(0.01)\n")
        program = f"program: {{command: [{sys.executable}, -B, slow.py]," \
            " spec: {value: {dtype: int64, shape: []}}}"
        self.serve(self.pipeline([program, "batch: 4"]))
        self.admin()
        self.train()
        verdict = self.wait_for_verdict(level="waiting", cause="source", culprit="program")
        self.assertIn("a program writes its rows too slowly", verdict["sentence"])

    def test_names_a_trainer_that_has_not_come(self):
        deliver = "{epochs: null, group_wait: 100ms}"
        self.serve(self.pipeline(PLAIN, distribute="{replicas: 2}", deliver=deliver))
        self.admin()
        self.train("--delay-ms", "10", replica=0)
        verdict = self.wait_for_verdict(level="stuck", cause="trainer", culprit="1")
        self.assertIn("has not attached", verdict["sentence"])

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_names_a_full_disk_that_ended_a_stream(self):
        (self.path / "cache").mkdir(mode=0o700)
        (self.path / "rows.csv").write_text("".join(f"{i}\n" for i in range(200000)))
        subprocess.run(["gzip", str(self.path / "rows.csv")], check=True)
        csv = "csv: {filenames: rows.csv.gz, record_defaults: [int64], column_names: [value]," \
            " compression_type: GZIP}"
        self.serve_with_little(self.path / "cache", "64k", self.pipeline([csv, "batch: 100"]))
        self.admin()
        self.train()
        verdict = self.wait_for_verdict(level="failed", cause="disk", culprit="disk")
        self.assertIn("a disk of node ", verdict["sentence"])
        self.assertIn("TUNDISH_CACHE", verdict["advice"])
        self.assertRegex(self.ask("/metrics")[2], r"tundish_server_disk_full_total\{[^}]*\} [1-9]")

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_tells_of_a_full_disk_that_costs_time_only(self):
        (self.path / "cache").mkdir(mode=0o700)
        path = self.path / "rows.csv"
        path.write_text("".join(f"{i:09}\n" for i in range(200000)))
        time.sleep(2.1)  # an index of a younger file is not kept
        csv = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value]}"
        file = self.pipeline([csv, "batch: 1000"], deliver="{epochs: null}")
        self.serve_with_little(self.path / "cache", "4k", file)
        self.admin()
        self.train("--delay-ms", "20")
        report = self.wait_until(lambda report: "is full" in report["verdict"]["advice"])
        self.assertNotEqual(report["verdict"]["level"], "failed")
        self.assertIn("No space left", "".join(note["text"] for note in report["notes"]))

    def test_names_the_trainer_when_it_is_the_slowest(self):
        self.serve(self.pipeline(PLAIN))
        self.admin()
        self.train("--delay-ms", "50")
        self.wait_until(lambda report: report["streams"][0]["steps"] > 20)
        self.wait_for_verdict(level="fine", cause="trainer")

    def test_names_a_slow_sibling(self):
        self.serve(self.pipeline(PLAIN, distribute="{replicas: 2}"))
        self.admin()
        self.train("--delay-ms", "50", replica=0)
        self.train(replica=1)
        verdict = self.wait_for_verdict(level="waiting", cause="slots", culprit="0")
        self.assertIn("for replica 0 on node ", verdict["sentence"])

    def test_names_a_stuck_trainer(self):
        self.serve(self.pipeline(PLAIN, distribute="{replicas: 2}"))
        self.admin()
        stuck = self.train("--delay-ms", "10", replica=0)
        self.train("--delay-ms", "10", replica=1)
        self.wait_until(has_readers(2))
        stuck.send_signal(signal.SIGSTOP)
        verdict = self.wait_for_verdict(level="stuck", cause="trainer", culprit="0")
        self.assertIn(f"(process {stuck.pid})", verdict["sentence"])
        stuck.send_signal(signal.SIGCONT)

    def test_names_a_hung_server(self):
        server = self.serve(self.pipeline(PLAIN))
        self.admin()
        self.wait_for_verdict(level="idle")
        server.send_signal(signal.SIGSTOP)
        verdict = self.wait_for_verdict(level="gone", cause="server")
        self.assertIn("has not responded", verdict["sentence"])
        self.assertEqual(self.ask("/readyz")[::2], (503, "the server does not respond\n"))
        server.send_signal(signal.SIGCONT)
        self.wait_for_verdict(level="idle")
        self.assertEqual(self.ask("/readyz")[0], 200)

    def test_a_server_stopped_in_good_order_has_finished(self):
        server = self.serve(self.pipeline(PLAIN))
        self.admin()
        self.wait_for_verdict(level="idle")
        server.terminate()
        server.wait()
        self.wait_until(lambda report: "has finished" in report["verdict"]["sentence"])
        self.assertEqual(self.report()["verdict"]["level"], "idle")
        self.assertEqual(self.figures("tundish_up", "tundish_finished"), [0, 1])

    def test_a_server_that_never_came_up_is_told(self):
        self.admin()
        self.assertEqual(self.figures("tundish_up"), [0])
        server = self.serve(self.pipeline(PLAIN))
        self.wait_for_verdict(level="idle")
        self.assertEqual(self.figures("tundish_up", "tundish_finished"), [1, 0])
        server.kill()
        server.wait()
        self.wait_for_verdict(level="gone", cause="server")
        self.assertEqual(self.figures("tundish_up", "tundish_finished"), [0, 0])

    def figures(self, *names):
        metrics = self.ask("/metrics")[2]
        return [float(re.search(rf"^{name}{{.*}} (.*)", metrics, re.MULTILINE)[1]) for name in names]

    def test_names_the_error_that_ended_a_stream(self):
        (self.path / "rows.csv").write_text("value\n1\n2\nthree\n")
        csv = "csv: {filenames: rows.csv, record_defaults: [int64], column_names: [value], header: true}"
        bad = self.pipeline([csv, "batch: 1"])
        self.serve(bad)
        self.admin()
        self.train()
        verdict = self.wait_for_verdict(level="failed", cause="error")
        report = self.report()
        self.assertIn("three", verdict["sentence"] + str(report["notes"]))
        self.assertEqual(sum(stage["errors"] for stage in report["streams"][0]["stages"]), 1)


@unittest.skipIf(why_not(), why_not())
class Nodes(NodesRig, AdminRig):
    """Rank 0's admin shows all nodes, and names the one that is worst off."""

    def serve_two(self):
        file = self.pipeline(PLAIN, distribute="{replicas: 2}", deliver="{epochs: null}")
        self.serve_nodes([file, file])
        self.environment["TUNDISH_SERVER"] = self.node_socket(0)
        self.admin()

    def wait_for_worst(self, rank, **wanted):
        """Wait until that node is the worst off, for that reason; returns its verdict."""
        def answers(status):
            found = [node["report"]["verdict"] for node in status["nodes"] if node["rank"] == rank]
            return status["worst_rank"] == rank and found and all(
                found[0][key] == value for key, value in wanted.items())

        self.wait_for(lambda: answers(self.status()))
        return next(node for node in self.status()["nodes"] if node["rank"] == rank)["report"]["verdict"]

    def test_name_the_one_with_a_stuck_trainer(self):
        self.serve_two()
        trainers = {(rank, replica): self.train("--delay-ms", "10", replica=replica,
                                             TUNDISH_SERVER=self.node_socket(rank))
                    for rank in range(2) for replica in range(2)}
        self.wait_for(lambda: sum(reader["taken"] > 5 for node in self.status()["nodes"]
                                  for reader in node["report"]["streams"][0]["readers"]) == 4)
        stuck = trainers[1, 1]
        stuck.send_signal(signal.SIGSTOP)
        verdict = self.wait_for_worst(1, level="stuck", cause="trainer", culprit="3")
        self.assertIn(f"(process {stuck.pid})", verdict["sentence"])
        stuck.send_signal(signal.SIGCONT)

    def test_rank_1_says_that_it_is_rank_1(self):
        self.serve_two()
        self.environment["TUNDISH_SERVER"] = self.node_socket(1)
        self.admin()
        self.wait_for(lambda: 'tundish_server_heartbeat_seconds{' in self.ask("/metrics")[2])
        ranks = set(re.findall(r'rank="(\d+)"', self.ask("/metrics")[2]))
        self.assertEqual(ranks, {"1"})
        status = self.status()
        self.assertEqual([node["rank"] for node in status["nodes"]], [1])
        self.assertEqual(status["worst_rank"], 1)

    def test_name_the_one_whose_server_is_gone(self):
        self.serve_two()
        self.wait_for(lambda: len(self.status()["nodes"]) == 2)
        os.kill(self.ranks[1], signal.SIGSTOP)
        self.wait_for_worst(1, level="gone", cause="server")


if __name__ == "__main__":
    unittest.main()
