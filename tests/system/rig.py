"""A server and its trainers as real processes, and what they leave behind."""

import contextlib
import json
import os
import select
import shutil
import signal
import subprocess
import tempfile
import time
import unittest
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

TUNDISH = os.environ["TUNDISH_PROGRAM"]
READER = os.environ["TUNDISH_READER"]
# Against a hang, of a test as of each of its waits: no machine is as slow as this.
DEADLINE_S = int(os.environ.get("TUNDISH_TEST_DEADLINE_S", "600"))


def may_mount(options="mode=0700"):
    if shutil.which("unshare") is None:
        return False
    script = ["unshare", "-m", "sh", "-c", f"mount -t tmpfs -o {options} tmpfs /tmp"]
    return subprocess.run(script, capture_output=True).returncode == 0


class Rig(unittest.TestCase):
    """Each test has a folder of its own; processes, sockets and segments are gone afterwards."""

    def setUp(self):
        signal.signal(signal.SIGALRM, self.out_of_time)
        signal.alarm(DEADLINE_S)
        self.addCleanup(signal.alarm, 0)
        self.folder = tempfile.TemporaryDirectory(prefix="tundish-system-")
        self.addCleanup(self.folder.cleanup)
        self.path = Path(self.folder.name)
        self.socket = str(self.path / "server")
        self.environment = dict(
            os.environ,
            TUNDISH_SERVER=self.socket,
            TUNDISH_STREAM="train",
            TUNDISH_CACHE=str(self.path / "cache"),
        )
        self.processes = []
        self.waited_through = {}
        self.addCleanup(self.end_all)

    def out_of_time(self, *_):
        raise TimeoutError(f"the test took {DEADLINE_S} s")

    def end_all(self):
        for process in self.processes:
            if process.poll() is None:
                process.kill()
            process.wait()
            process.stdout.close()
            if process.stdin is not None:
                try:
                    process.stdin.close()
                except BrokenPipeError:
                    pass

    def pipeline(self, stages, distribute="{replicas: 1}", deliver="{epochs: 1}", seed="seed: 1"):
        file = self.path / "pipeline.yaml"
        lines = "".join(f"      - {stage}\n" for stage in stages)
        file.write_text(
            f"{seed}\nstreams:\n  train:\n    dataset:\n{lines}"
            f"    distribute: {distribute}\n    deliver: {deliver}\n"
        )
        return str(file)

    def start(self, command, stdin=subprocess.DEVNULL, **environment):
        process = subprocess.Popen(
            command,
            env=dict(self.environment, **environment),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self.processes.append(process)
        return process

    def serve(self, file, *options, before=(), program=TUNDISH, stderr=None):
        """Start a server and wait for its own word that trainers may come. `before`: a command that
        starts it."""
        return self.start_until([*before, program, "serve", file, *options], "log",
                                lambda word: word == "ready\n", stderr)[0]

    def serve_until(self, moment, file, *options):
        """A server that stands still then (halting_server.c)."""
        self.environment["TUNDISH_TEST_HALT"] = str(moment)
        server = self.serve(file, *options, program=os.environ["TUNDISH_HALTING_SERVER"])
        del self.environment["TUNDISH_TEST_HALT"]
        return server

    def start_until(self, command, log_name, is_ready, stderr=None):
        """Start a program that writes a line to --ready-fd, and wait for it; returns both."""
        read_end, write_end = os.pipe()
        with open(self.path / log_name, "a", encoding="utf-8") as log:
            process = subprocess.Popen(
                [*command, "--ready-fd", str(write_end)],
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log if stderr is None else stderr,
                pass_fds=[write_end],
                text=True,
            )
        self.processes.append(process)
        os.close(write_end)
        ready, _, _ = select.select([read_end], [], [], DEADLINE_S)
        word = os.read(read_end, 200).decode() if ready else ""
        os.close(read_end)
        self.assertTrue(is_ready(word), (self.path / log_name).read_text())
        return process, word

    def serve_with_little(self, folder, size, file):
        """A server that sees a small file system at `folder`; others see nothing of it."""
        script = 'mount -t tmpfs -o size="$1",mode=0700 tmpfs "$2" && shift 2 && exec "$@"'
        return self.serve(
            file, before=["unshare", "-m", "sh", "-c", script, "sh", size, str(folder)])

    def in_groups(self, line, files, *command):
        """Run a command whose /proc/self/cgroup is that line, with these files of the kernel's."""
        for name, text in files.items():
            path = self.path / "cgroup" / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{text}\n")
        (self.path / "own").write_text(f"{line}\n")
        script = 'mount --bind "$1/cgroup" /sys/fs/cgroup && mount --bind "$1/own" /proc/$$/cgroup' \
            ' && shift && exec "$@"'
        done = subprocess.run(
            ["unshare", "-m", "sh", "-c", script, "sh", str(self.path), *command],
            env=self.environment, capture_output=True, text=True, timeout=DEADLINE_S)
        shutil.rmtree(self.path / "cgroup")
        return done

    def read(self, *options, replica=0, group="default", stdin=subprocess.DEVNULL):
        return self.start(
            [READER, *options], stdin=stdin, TUNDISH_REPLICA=str(replica), TUNDISH_GROUP=group
        )

    def come_together(self, server, starters):
        """What the starters start, trainers, of which the server hears at one time."""
        server.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, server.pid, os.WSTOPPED)  # each of its threads stands still
        readers = [start() for start in starters]
        while connections(self.socket) < len(readers):
            time.sleep(0.01)
        server.send_signal(signal.SIGCONT)
        return readers

    def read_paced(self, *options, replica=0, group="default"):
        """A trainer that takes a batch whenever it is told to."""
        return Paced(self, options, replica, group)

    def log(self):
        return (self.path / "log").read_text()

    def wait_for_log(self, text):
        deadline = time.monotonic() + DEADLINE_S
        while text not in self.log():
            self.assertLess(time.monotonic(), deadline, f"no '{text}' in:\n{self.log()}")
            time.sleep(0.01)

    def wait_until(self, is_so):
        deadline = time.monotonic() + DEADLINE_S
        while not is_so():
            if time.monotonic() > deadline:
                self.fail(self.log())
            time.sleep(0.02)

    def lines(self, process):
        """All that a trainer prints, to its end."""
        # Not communicate(): with a time limit it passes over what was read ahead for wait_for_line.
        out = process.stdout.read()
        process.wait(timeout=DEADLINE_S)
        return out.splitlines()

    def whole(self, process):
        """The same, with what was waited through before."""
        return self.waited_through.get(process, []) + self.lines(process)

    def all_lines(self, processes):
        """The same of several that wait for each other: none may find its pipe full."""
        with ThreadPoolExecutor(len(processes)) as pool:
            try:
                return list(pool.map(self.lines, processes))
            except BaseException:  # the time is over: the threads read until their processes end
                for process in processes:
                    process.kill()
                raise

    def wait_for_line(self, process, start):
        """The next line that begins so."""
        for line in process.stdout:
            self.waited_through.setdefault(process, []).append(line.strip())
            if line.startswith(start):
                return line.strip()
        self.fail(f"the trainer ended without a line '{start}...'")

    def left_in_shared_memory(self):
        """Names in /dev/shm of processes of ours."""
        return segments_of(process.pid for process in self.processes)

    def wait_for_threads(self, process, count):
        """Until it has no more than so many."""
        deadline = time.monotonic() + DEADLINE_S / 2
        while (threads := len(os.listdir(f"/proc/{process.pid}/task"))) > count:
            self.assertLess(time.monotonic(), deadline, f"{threads} threads, not {count}")
            time.sleep(0.01)

    def assert_sleeps(self, pids, cpu_s):
        """Each uses no more than so much of some three seconds: what it began with takes its time."""
        deadline = time.monotonic() + DEADLINE_S / 2
        while True:
            before = [cpu_seconds(pid) for pid in pids]
            time.sleep(3)
            used = [cpu_seconds(pid) - begun for pid, begun in zip(pids, before)]
            if max(used) <= cpu_s:
                return
            self.assertLess(time.monotonic(), deadline, f"{used} s of processor time in 3 s")

    def figures(self):
        """What the server says of its only stream."""
        out = subprocess.run(
            [TUNDISH, "status", "--json", "--interval", "10"],
            env=self.environment,
            capture_output=True,
        )
        self.assertIn(out.returncode, (0, 4), out.stderr)  # 4: a trainer is missing
        return json.loads(out.stdout)["streams"][0]

    def peek(self, file, *options):
        """What the same stream gives in process: {replica: [(epoch, step, values)]}."""
        command = [TUNDISH, "peek", file, "--json", *options]
        out = subprocess.run(command, env=self.environment, capture_output=True, text=True)
        self.assertEqual(out.returncode, 0, out.stderr + out.stdout)
        slices = {}
        for line in map(json.loads, out.stdout.splitlines()):
            if "columns" in line:
                values = line["columns"]["value"]["values"]
                slices.setdefault(line["replica"], []).append((line["epoch"], line["step"], values))
        return slices


class Paced:
    def __init__(self, rig, options, replica, group):
        self.rig = rig
        self.seen = []
        self.process = rig.read(
            "--paced", *options, replica=replica, group=group, stdin=subprocess.PIPE
        )
        self.first = self.line()

    def line(self):
        line = self.process.stdout.readline().strip()
        self.rig.assertTrue(line, "the trainer has ended")
        return line

    def ask(self, count=1):
        self.process.stdin.write("\n" * count)
        self.process.stdin.flush()

    def take(self, count=1):
        """So many batches, ends of epochs not counted."""
        for _ in range(count):
            self.ask()
            line = self.line()
            while line == "end":
                self.ask()
                line = self.line()
            self.rig.assertTrue(line.startswith("batch "), line)
            self.seen.append(line)
        return batches(self.seen)

    def go(self):
        """From now on at full speed."""
        self.process.stdin.write("\n" * 5000)
        self.process.stdin.flush()

    def finish(self):
        """Everything to its end."""
        with contextlib.suppress(BrokenPipeError):  # it may have ended already
            self.process.stdin.write("\n" * 5000)
            self.process.stdin.close()
        self.seen += self.process.stdout.read().splitlines()
        self.process.wait(timeout=DEADLINE_S)
        return self.seen


def batches(lines):
    """[(epoch, step, values)] of what a trainer printed."""
    found = []
    for line in lines:
        if line.startswith("batch "):
            epoch, step, *values = map(int, line.split()[1:])
            found.append((epoch, step, values))
    return found


def place(lines):
    return next(line.split()[1] for line in lines if line.startswith("place "))


def segments_of(pids):
    """Names in /dev/shm that these processes made. (Those of others come and go.)"""
    own = tuple(f"tundish-{pid}-" for pid in pids)
    return [name for name in os.listdir("/dev/shm") if name.startswith(own)]


def connections(path):
    """How many have connected to a socket and were not accepted yet, or are still there."""
    lines = Path("/proc/net/unix").read_text().splitlines()
    return sum(line.endswith(f" {path}") for line in lines) - 1  # one listens


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def stop(process, number=signal.SIGTERM):
    process.send_signal(number)
    return process.wait(timeout=DEADLINE_S)


def sleep(seconds):
    time.sleep(seconds)
