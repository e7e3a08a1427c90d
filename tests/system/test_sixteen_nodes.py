"""Sixteen servers, each on a node of its own, with a network between them that delays, loses and is slow.

NETWORKS=all runs them over a worse network and over UCX as well, and loses nodes in other ways.
"""

import os
import signal
import sys
import threading
import time
import unittest

from network_rig import NetworkRig
from networks import Wire, why_not
from nodes_rig import main, rows
from rig import DEADLINE_S, batches
from transports import transports

NODES, ROWS, FILES, BATCH = 16, 16000, 32, 64
STREAMS = ("data", "file", "local")
NEAR = Wire(delay_ms=1, loss_percent=0.2, rate_mbit=500)
FAR = Wire(delay_ms=20, loss_percent=1, rate_mbit=100)
OTHER_KINDS = unittest.skipUnless(os.environ.get("NETWORKS") == "all", "NETWORKS=all runs it")


class Follower(threading.Thread):
    """Takes what a trainer prints, and the time when it ended."""

    def __init__(self, rig, *arguments, **more):
        super().__init__(daemon=True)
        self.process = rig.read_node(*arguments, **more)
        self.lines, self.ended = [], None
        self.start()

    def run(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
        self.ended = time.monotonic()

    def places(self):
        """After each of its batches. (A killed one may not have told the last.)"""
        return [line.split()[1] for line in self.lines if line.startswith("place ")]

    def rows_of(self, steps):
        return [value for _, _, values in batches(self.lines)[:steps] for value in values]


class SixteenNodes(NetworkRig):
    NODES, WIRE = NODES, NEAR

    def setUp(self):
        super().setUp()
        for rank in range(NODES):
            (self.path / f"node-{rank}").mkdir()
        (self.path / "all").mkdir()
        for i in range(FILES):
            share = ROWS // FILES
            text = "".join(f"{n}\n" for n in range(i * share, i * share + share))
            for folder in (f"node-{i % NODES}", "all"):
                (self.path / folder / f"part-{i}.txt").write_text(text)

    def streams(self, deliver="{epochs: 1}"):
        """A pipeline file beside each node's files."""
        def lines(pattern):
            return [f'list_files: {{file_pattern: "{pattern}", seed: 3}}',
                    "interleave: {dataset: [text_line], cycle_length: 3}",
                    "string_to_number: {out_type: int64}", "shuffle: {buffer_size: 100}"]

        kinds = {
            "data": ([f"range: {ROWS}", "shuffle: {buffer_size: 1000}"], "{replicas: 1}"),
            "file": (lines(f"{self.path}/all/part-*.txt"), "{replicas: 1, auto_shard: FILE}"),
            "local": (lines("part-*.txt"), "{replicas: 1, auto_shard: DATA, files: local}"),
        }
        text = "seed: 1\nstreams:\n"
        for name, (stages, distribute) in kinds.items():
            text += f"  {name}:\n    dataset:\n"
            text += "".join(f"      - {stage}\n" for stage in [*stages, f"batch: {BATCH}"])
            text += f"    distribute: {distribute}\n    deliver: {deliver}\n"
        for rank in range(NODES):
            (self.path / f"node-{rank}" / "pipeline.yaml").write_text(text)
        return f"{self.path}/node-$RANK/pipeline.yaml"

    def serve_streams(self, nodes=NODES):
        file = self.streams("{epochs: 1, slots: 4, rejoin: 600s}")
        return self.serve_network(file, "--cache", f"{self.path}/cache.$RANK", nodes=nodes)

    def follow(self, *options, stream="data"):
        """Trainers that would take most of a minute."""
        return [Follower(self, rank, "--places", "--delay-ms", "200", *options, stream=stream)
                for rank in range(NODES)]

    def wait_for_batches(self, followers, count):
        self.wait_for(lambda: all(len(follower.places()) >= count for follower in followers))

    def assert_told(self, followers, but, why):
        """All are, except that one; after how many seconds the last was."""
        began = time.monotonic()
        for rank, follower in enumerate(followers):
            follower.join(DEADLINE_S)
            if rank != but:
                self.assertRegex(follower.lines[-1], f"E_PEER_LOST .*{why}")
        return max(follower.ended for follower in followers) - began

    def agreed(self, followers):
        """The place that all have come to, and the rows up to it."""
        steps = min(len(follower.places()) for follower in followers)
        token = followers[0].places()[steps - 1]
        return token, [value for follower in followers for value in follower.rows_of(steps)]

    def end_job(self, job):
        """What a loss has left of it."""
        for rank, pid in self.ranks.items():
            if not (self.path / f"status.{rank}").exists():
                os.kill(pid, signal.SIGCONT)
                os.kill(pid, signal.SIGTERM)
        job.wait(timeout=DEADLINE_S)
        self.ranks.clear()
        for rank in range(NODES):
            self.node_log(rank).unlink()

    def test_deal_every_row_once(self):
        job = self.serve_streams()
        readers = {(stream, rank): self.read_node(rank, stream=stream)
                   for stream in STREAMS for rank in range(NODES)}
        lines = dict(zip(readers, self.all_lines(readers.values())))
        for stream in STREAMS:
            got = {rank: lines[stream, rank] for rank in range(NODES)}
            self.assertEqual({of_one[-1] for of_one in got.values()}, {"end_of_stream"}, stream)
            self.assertEqual(rows(got), list(range(ROWS)), stream)
        self.assertEqual(self.stop_nodes(job), [0] * NODES)
        sent = [self.link_figures(rank)["sent"] for rank in range(NODES)]
        print(f"over {self.network.way}: {sum(sent)} messages, {max(sent)} of one node", file=sys.stderr)

    def test_lose_a_trainer_and_a_server_and_go_on_as_fifteen(self):
        job = self.serve_streams()
        first = self.follow()
        self.wait_for_batches(first, 5)
        first[5].process.kill()
        took = self.assert_told(first, 5, "replica 5 (of|on)")
        token, seen = self.agreed(first)

        second = self.follow("--place", token)
        self.wait_for_batches(second, 5)
        os.kill(self.ranks[7], signal.SIGKILL)
        lost = self.assert_told(second, 7, r"node tundish-7 \(rank 7\) (has been silent|is lost)")
        self.assertIn("E_SERVER_GONE", second[7].lines[-1])
        token, more = self.agreed(second)
        self.end_job(job)

        self.serve_streams(NODES - 1)
        rest = [self.read_node(rank, "--place", token, stream="data") for rank in range(NODES - 1)]
        rest = dict(enumerate(self.all_lines(rest)))
        self.assertEqual({of_one[-1] for of_one in rest.values()}, {"end_of_stream"}, self.all_logs())
        self.assertEqual(sorted(seen + more + rows(rest)), list(range(ROWS)))
        print(f"over {self.network.way}: all were told of a trainer after {took:.2f} s, "
              f"of a server after {lost:.2f} s", file=sys.stderr)

    def lose(self, rank, take, mend=lambda rank: None):
        """Readers of files stand amid their epoch when a server goes, and go on when it is back."""
        job = self.serve_streams()
        followers = {stream: self.follow(stream=stream) for stream in ("file", "local")}
        for of_stream in followers.values():
            self.wait_for_batches(of_stream, 5)
        take(rank)
        of_others = [at for of_stream in followers.values() for at in of_stream[:rank] + of_stream[rank + 1:]]
        own = [of_stream[rank] for of_stream in followers.values()]
        for follower in of_others:
            follower.join(DEADLINE_S)
        mend(rank)
        for follower in of_others + own:
            follower.join(DEADLINE_S)
            self.assertRegex(follower.lines[-1], "E_PEER_LOST|E_SERVER_GONE")
        self.end_job(job)
        self.serve_streams()
        for stream, of_stream in followers.items():
            again = [self.read_node(rank, "--place", follower.places()[-1], stream=stream)
                     for rank, follower in enumerate(of_stream)]
            rest = dict(enumerate(self.all_lines(again)))
            self.assertEqual({of_one[-1] for of_one in rest.values()}, {"end_of_stream"}, self.all_logs())
            seen = [value for follower in of_stream for value in follower.rows_of(len(follower.places()))]
            self.assertEqual(sorted(seen + rows(rest)), list(range(ROWS)), stream)

    @OTHER_KINDS
    def test_go_on_where_files_stood_when_an_owner_is_back(self):
        self.lose(3, lambda rank: os.kill(self.ranks[rank], signal.SIGKILL))

    @OTHER_KINDS
    def test_go_on_after_the_first_was_lost(self):
        self.lose(0, lambda rank: os.kill(self.ranks[rank], signal.SIGKILL))

    @OTHER_KINDS
    def test_go_on_after_one_stood_still(self):
        self.lose(9, lambda rank: os.kill(self.ranks[rank], signal.SIGSTOP),
                  lambda rank: os.kill(self.ranks[rank], signal.SIGCONT))

    @OTHER_KINDS
    def test_go_on_after_one_was_cut_off(self):
        self.lose(2, self.network.cut, self.network.mend)


@OTHER_KINDS
class SixteenFarNodes(SixteenNodes):
    WIRE = FAR


@OTHER_KINDS
class SixteenOverUcx(SixteenNodes):
    TRANSPORT = "ucx"

    def setUp(self):
        reason = transports("lo")["ucx"].why_not(os.environ)
        if reason:
            self.skipTest(f"this MPI has no UCX: {reason}")
        super().setUp()


if __name__ == "__main__":
    main(lambda: why_not(NEAR))
