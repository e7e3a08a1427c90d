"""tundish-launch with a real server and real trainers, and what it started."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

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


class LauncherOfJobs(LauncherRig):
    """Whole jobs, to their end."""

    def job(self, file, replicas, script, *options, **environment):
        """The trainers are the shell's; what they print goes to a file for each that was started."""
        (self.path / "tmp").mkdir(exist_ok=True)
        into = f"{self.path}/out.$RANK.$TORCHELASTIC_RESTART_COUNT"
        with open(self.path / "log", "w", encoding="utf-8") as log:
            launcher = subprocess.Popen(
                [sys.executable, "-B", str(LAUNCH), file, "--tundish", TUNDISH, "--admin", "none",
                 "--replicas", str(replicas), "--cache", str(self.path / "cache"), *options, "--",
                 "sh", "-c", f"{{ {script}; }} >{into}"],
                env=dict(os.environ, TMPDIR=str(self.path / "tmp"), READER=READER, **environment),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True,
            )
        self.processes.append(launcher)
        self.addCleanup(launcher.stdout.close)
        return launcher

    def status_of(self, launcher):
        return launcher.wait(timeout=DEADLINE_S)

    def out(self, rank, restart=0):
        path = self.path / f"out.{rank}.{restart}"
        return path.read_text() if path.exists() else ""

    def outs(self, rank):
        """Of a trainer and all its successors, line by line."""
        found = []
        for restart in range(100):
            lines = self.out(rank, restart).splitlines(keepends=True)
            found += [line.rstrip("\n") for line in lines if line.endswith("\n")]
        return found

    def kill(self, launcher, rank, restart=0, batches=1):
        """The reader of a rank, once it has printed so many."""
        while self.out(rank, restart).count("batch ") < batches:
            self.assertIsNone(launcher.poll(), self.log())
            time.sleep(0.02)
        for pid, command in descendants(launcher.pid).items():
            if command[:1] == [READER] and variable_of(pid, "RANK") == str(rank):
                os.kill(pid, signal.SIGKILL)

    def all_rows(self, ranks):
        """Of each step of all readers: its values. What a dead one held comes twice, and is said."""
        found, again = {}, set()
        for rank in ranks:
            last = None
            for line in self.outs(rank):
                words = line.split()
                if words[0] == "batch":
                    last = (words[1], words[2])
                    found.setdefault(last, []).append([int(word) for word in words[3:]])
                elif words[0] == "again":
                    again.add(last)
        for step, times in found.items():
            self.assertEqual(times, times[:1] * len(times), step)
            self.assertTrue(len(times) == 1 or step in again, f"{step} came twice without a word")
        return sorted(value for times in found.values() for value in times[0])


def variable_of(pid, name):
    """One of its environment, or None."""
    try:
        words = Path(f"/proc/{pid}/environ").read_bytes().decode().split("\0")
    except OSError:
        return None  # it has just ended
    return next((word[len(name) + 1:] for word in words if word.startswith(f"{name}=")), None)


def end(pid):
    try:
        os.kill(pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
