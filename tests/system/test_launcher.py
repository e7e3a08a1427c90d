"""tundish-launch with a real server and real trainers, killed at the worst moment."""

import os
import signal
import sys
import time
import unittest
from pathlib import Path

from nodes_rig import why_not
from rig import DEADLINE_S, READER, TUNDISH, Rig, segments_of

LAUNCH = Path(__file__).resolve().parents[2] / "scripts/tundish-launch"
SHUFFLED = ["range: 100000", "shuffle: {buffer_size: 100}", "batch: 16"]


def processes():
    """{pid: (parent, state, command)} of all there are."""
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            text = Path(f"/proc/{name}/stat").read_text()
            command = Path(f"/proc/{name}/cmdline").read_bytes().split(b"\0")
        except OSError:
            continue  # it has just ended
        state, parent = text.rsplit(")", 1)[1].split()[:2]
        found[int(name)] = int(parent), state, [word.decode() for word in command]
    return found


def descendants(root):
    table, waiting, found = processes(), [root], {}
    while waiting:
        pid = waiting.pop()
        for child, (parent, _, command) in table.items():
            if parent == pid:
                found[child] = command
                waiting.append(child)
    return found


def is_alive(pid):
    return processes().get(pid, (0, "X", []))[1] not in "ZX"


class LauncherRig(Rig):
    def launch(self):
        """A launcher whose two trainers have begun to read; the processes that it started."""
        (self.path / "tmp").mkdir()
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 100}")
        launcher = self.start(
            [sys.executable, "-B", str(LAUNCH), file, "--tundish", TUNDISH, "--replicas", "2",
             "--cache", str(self.path / "cache"), "--", READER, "--delay-ms", "2"],
            TMPDIR=str(self.path / "tmp"),
        )
        while not launcher.stdout.readline().startswith("batch 0 20 "):
            self.assertIsNone(launcher.poll())
        started = descendants(launcher.pid)
        for pid in started:
            self.addCleanup(end, pid)
        return launcher, started

    def assert_nothing_is_left(self, started):
        deadline = time.monotonic() + DEADLINE_S / 2
        left = None
        while left is None or any(left):
            self.assertLess(time.monotonic(), deadline, f"left: {left}")
            left = ({pid: command for pid, command in started.items() if is_alive(pid)},
                    segments_of(started), list((self.path / "tmp").iterdir()))
            time.sleep(0.02)

    def pids(self, started, *words):
        return [pid for pid, command in started.items()
                if len(command) >= len(words) and all(map(str.__eq__, words, command))]


class Launcher(LauncherRig):
    def test_that_is_killed_takes_everything_with_it(self):
        launcher, started = self.launch()
        self.assertEqual(len(self.pids(started, READER)), 2)
        self.assertEqual(len(self.pids(started, TUNDISH, "serve")), 1)
        launcher.kill()
        launcher.wait()
        self.assert_nothing_is_left(started)

    def test_whose_keeper_is_killed_takes_everything_with_it(self):
        launcher, started = self.launch()
        keeper = next(pid for pid, (parent, _, _) in processes().items() if parent == launcher.pid)
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(launcher.wait(timeout=DEADLINE_S), 128 + signal.SIGKILL)
        self.assert_nothing_is_left(started)

    def test_whose_trainer_is_killed_ends_the_others_and_says_so(self):
        launcher, started = self.launch()
        os.kill(self.pids(started, READER)[0], signal.SIGKILL)
        self.assertEqual(launcher.wait(timeout=DEADLINE_S), 128 + signal.SIGKILL)
        self.assert_nothing_is_left(started)


@unittest.skipIf(why_not(), why_not())
class LauncherOfNodes(LauncherRig):
    """A server of several is killed: all that read from the others are told why their job ends."""

    def launch_nodes(self, count, **environment):
        (self.path / "tmp").mkdir()
        file = self.pipeline(SHUFFLED, "{replicas: 1}", "{epochs: 100000}")
        script = f"exec {READER} --delay-ms 2 >{self.path}/out.$RANK"
        launcher = self.start(
            [sys.executable, "-B", str(LAUNCH), file, "--tundish", TUNDISH, "--nodes", str(count),
             "--replicas", "1", "--admin", "none", "--cache", str(self.path / "cache"), "--", "sh",
             "-c", script],
            TMPDIR=str(self.path / "tmp"), **environment,
        )
        while not all("batch 0 5 " in self.out(rank) for rank in range(count)):
            self.assertIsNone(launcher.poll())
            time.sleep(0.02)
        started = descendants(launcher.pid)
        for pid in started:
            self.addCleanup(end, pid)
        return launcher, started

    def out(self, rank):
        path = self.path / f"out.{rank}"
        return path.read_text() if path.exists() else ""

    def lose_a_server(self, count, **environment):
        # Between mpirun's signals; a second is little on a machine that is busy.
        launcher, started = self.launch_nodes(
            count, OMPI_MCA_odls_base_sigkill_timeout="3", **environment)
        servers = self.pids(started, TUNDISH, "serve")
        self.assertEqual(len(servers), count)
        ranks = {rank_of(pid): pid for pid in servers}
        os.kill(ranks[count - 1], signal.SIGKILL)
        self.assertEqual(launcher.wait(timeout=DEADLINE_S), 128 + signal.SIGKILL)
        for rank in range(count - 1):
            # From the launcher's word to the server, or by its silence, whichever is first.
            last = self.out(rank).splitlines()[-1]
            self.assertTrue(last.startswith("status E_PEER_LOST "), f"rank {rank}: {last}")
        self.assert_nothing_is_left(started)

    def test_tells_the_other_nodes_trainers_of_a_killed_server(self):
        self.lose_a_server(2)

    def test_tells_two_others_over_a_connection_that_breaks(self):
        self.lose_a_server(3, OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo")


def rank_of(pid):
    """Which rank of MPI it is, by its environment."""
    words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    name = "OMPI_COMM_WORLD_RANK="
    return next(int(word[len(name):]) for word in words if word.startswith(name))


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass


if __name__ == "__main__":
    unittest.main()
