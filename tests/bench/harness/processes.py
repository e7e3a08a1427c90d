"""Process trees: starting them, what they cost, and ending them."""

import os
import signal
import subprocess
import tempfile
import threading

TICKS_PER_S = os.sysconf("SC_CLK_TCK")
PSS_EVERY_S = 0.25


class Program:
    """One process tree in a session of its own, so that all of it can be ended."""

    def __init__(self, command, environment=None, name=None, pass_fds=(), stdin=subprocess.DEVNULL):
        self.command = [str(word) for word in command]
        self.name = name or os.path.basename(self.command[0])
        self._errors = tempfile.TemporaryFile()
        self.process = subprocess.Popen(
            self.command,
            env=dict(os.environ, **(environment or {})),
            stdin=stdin,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            text=True,
            start_new_session=True,
            pass_fds=pass_fds,
        )

    @property
    def pid(self):
        return self.process.pid

    def ask(self):
        """An empty line, for a program that waits for one before it goes on."""
        self.process.stdin.write("\n")
        self.process.stdin.flush()

    def read_line(self, timeout_s):
        """Its next line; it is killed if that takes too long."""
        killer = threading.Timer(timeout_s, self._kill, [signal.SIGKILL])
        killer.start()
        try:
            return self.process.stdout.readline()
        finally:
            killer.cancel()

    def last_words(self):
        """The end of what it wrote to standard error, for a message."""
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return f": {lines[-1].strip()[-300:]}" if lines else ""

    def end(self, grace_s=10):
        """Ask first, so that a server removes its socket; then make sure."""
        for number in (signal.SIGTERM, signal.SIGKILL):
            self._kill(number)
            try:
                self.process.wait(grace_s)
            except subprocess.TimeoutExpired:
                pass
        for pipe in (self.process.stdin, self.process.stdout):
            if pipe:
                pipe.close()
        self._errors.close()

    def _kill(self, number):
        try:
            os.killpg(self.pid, number)
        except ProcessLookupError:
            pass

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end()


def cpu_s(roots):
    """User and system time of processes and their descendants, ended children included."""
    table = _process_table()
    return sum(table[pid][1] for pid in _descendants(roots, table))


def own_cpu_s(pid):
    """User and system time of one process, without its children."""
    with open(f"/proc/{pid}/stat", "rb") as file:
        fields = file.read().rpartition(b")")[2].split()
    return sum(map(int, fields[11:13])) / TICKS_PER_S


def busy_s():
    """How long the machine's processors have been busy, for whomever."""
    with open("/proc/stat", encoding="ascii") as file:
        user, nice, system, _, _, *rest = map(int, file.readline().split()[1:9])
    return (user + nice + system + sum(rest)) / TICKS_PER_S


def pss_mb(roots):
    """Memory of processes and their descendants, shared pages divided among their users."""
    total_kb = 0
    for pid in _descendants(roots, _process_table()):
        try:
            with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as file:
                total_kb += sum(int(line.split()[1]) for line in file if line.startswith("Pss:"))
        except OSError:
            continue  # it has just ended
    return total_kb / 1024


def memory_mb(pid):
    """One process's own memory: of batches that it leaves to others, of vocabularies, and the rest.
    What it shares with others it would need without them too, so it counts in full."""
    kinds = {"slots": 0, "tables": 0, "other": 0}
    kind = "other"
    with open(f"/proc/{pid}/smaps", encoding="utf-8", errors="replace") as file:
        for line in file:
            if line.startswith("Rss:"):
                kinds[kind] += int(line.split()[1])
            elif "-" in line.split(" ", 1)[0]:
                kind = _kind_of_mapping(line)
    return {name: round(kb / 1024, 1) for name, kb in kinds.items()}


def _kind_of_mapping(line):
    if "/dev/shm/" in line or "/memfd:" in line:
        return "slots"
    return "tables" if "/vocab-" in line else "other"


class PeakMemory(threading.Thread):
    """The largest pss_mb seen between start and stop."""

    def __init__(self, roots):
        super().__init__(daemon=True)
        self.roots, self.peak_mb, self._stopped = roots, 0.0, threading.Event()
        self.start()

    def run(self):
        while not self._stopped.wait(PSS_EVERY_S):
            self._look()

    def stop(self):
        self._stopped.set()
        self.join()
        self._look()
        return self.peak_mb

    def _look(self):
        self.peak_mb = max(self.peak_mb, pss_mb(self.roots))


def _process_table():
    """Per process its parent and its seconds of CPU."""
    table = {}
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                fields = file.read().rpartition(b")")[2].split()
        except OSError:
            continue
        table[int(name)] = int(fields[1]), sum(map(int, fields[11:15])) / TICKS_PER_S
    return table


def _descendants(roots, table):
    children = {}
    for pid, (parent, _) in table.items():
        children.setdefault(parent, []).append(pid)
    waiting, found = [root for root in roots if root in table], set()
    while waiting:
        pid = waiting.pop()
        if pid not in found:
            found.add(pid)
            waiting += children.get(pid, [])
    return found
