"""The units, and the server as a service manager sees it: ready, alive, stopped, hung, killed."""

import ctypes
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import unittest
from functools import cache
from pathlib import Path

import service

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TUNDISH_BUILD", REPOSITORY / "build"))
os.environ["TUNDISH_PROGRAM"] = str(BUILD / "server" / "tundish")
os.environ["TUNDISH_READER"] = str(BUILD / "tests" / "system" / "reader")
sys.path.insert(0, str(REPOSITORY / "tests" / "system"))
from rig import DEADLINE_S, TUNDISH, Rig, batches, stop  # noqa: E402

SERVER_UNIT = BUILD / "admin" / "service" / "tundish@.service"
ADMIN_UNIT = BUILD / "admin" / "service" / "tundish-admin@.service"
EXPOSURE_MAX = 15  # tenths
ROWS, BATCH, EPOCHS = 1000, 16, 3
SHUFFLED = [f"range: {ROWS}", "shuffle: {buffer_size: 100}", f"batch: {BATCH}"]
STEPS = -(-ROWS // BATCH)
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH, WAIT_FOR_THREADS = 0x4206, 0x4207, 17, 0x40000000


def systemd(test, *words):
    if shutil.which(words[0]) is None:
        test.skipTest(f"there is no {words[0]}")
    return subprocess.run(words, capture_output=True, text=True, timeout=DEADLINE_S)


class Units(unittest.TestCase):
    def setUp(self):
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def test_systemd_accepts_them(self):
        for unit, program in ((SERVER_UNIT, "tundish"), (ADMIN_UNIT, "tundish-admin")):
            # It looks whether the program is there, which is not installed yet.
            text = re.sub(rf"^ExecStart=\S+/{program} ", f"ExecStart={TUNDISH} ", unit.read_text(), flags=re.M)
            self.assertIn(f"ExecStart={TUNDISH} ", text)
            named = self.folder / unit.name.replace("@", "@clicks")
            named.write_text(text)
            done = systemd(self, "systemd-analyze", "verify", "--man=no", str(named))
            self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_the_drop_in_of_the_text_is_accepted(self):
        text = (REPOSITORY / "admin" / "README.md").read_text()
        path, lines = re.search(r"```ini\n# /etc/systemd/system/(\S+)\n(.*?)```", text, re.DOTALL).groups()
        unit = re.sub(r"^ExecStart=\S+", f"ExecStart={TUNDISH}", SERVER_UNIT.read_text(), flags=re.M)
        (self.folder / "tundish@clicks.service").write_text(unit)
        (self.folder / path).parent.mkdir()
        (self.folder / path).write_text(lines)
        said = systemd(self, "systemd-analyze", "verify", "--man=no", str(self.folder / "tundish@clicks.service"))
        self.assertEqual((said.returncode, said.stderr), (0, ""))

    def test_they_are_hardened(self):
        for unit in (SERVER_UNIT, ADMIN_UNIT):
            words = ["security", "--offline=yes", f"--threshold={EXPOSURE_MAX}", "--no-pager", str(unit)]
            done = systemd(self, "systemd-analyze", *words)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            # It would hide from the server who its trainers are.
            self.assertNotIn("PrivateUsers", service.settings(unit))

    def test_the_user_and_the_folder_are_made(self):
        (self.folder / "etc").mkdir()
        for kind, program in (("sysusers", "systemd-sysusers"), ("tmpfiles", "systemd-tmpfiles")):
            words = ["--create"] if kind == "tmpfiles" else []
            file = REPOSITORY / "admin" / "service" / f"tundish.{kind}"
            if os.geteuid() != 0:
                self.skipTest("only root makes users in another root")
            done = systemd(self, program, *words, f"--root={self.folder}", str(file))
            self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex((self.folder / "etc" / "passwd").read_text(), r"(?m)^tundish:")
        self.assertRegex((self.folder / "etc" / "group").read_text(), r"(?m)^tundish:")
        self.assertEqual((self.folder / "run" / "tundish").stat().st_mode & 0o777, 0o755)


class Service(Rig):
    """The server of the unit, with folders of the test."""

    def setUp(self):
        super().setUp()
        for name in ("etc", "run", "state", "cache"):
            (self.path / name / "clicks").mkdir(parents=True)
        (self.path / "cache").chmod(0o700)
        self.socket = str(self.path / "run" / "clicks" / "server")
        self.environment["TUNDISH_SERVER"] = self.socket
        self.environment["TUNDISH_GROUP"] = "default"

    def words(self, stages=SHUFFLED, distribute="{replicas: 2}"):
        shutil.move(
            self.pipeline(stages, distribute, f"{{epochs: {EPOCHS}, slots: 4}}", seed=""),
            self.path / "etc" / "clicks.yaml",
        )
        folders = {
            "/etc/tundish": self.path / "etc",
            "/run/tundish": self.path / "run",
            "/var/lib/tundish": self.path / "state",
            "/var/cache/tundish": self.path / "cache",
            "--group tundish ": "",  # who may not be there
        }
        return [TUNDISH, *service.command(SERVER_UNIT, "clicks", folders)[1:]]

    def manage(self, words, watchdog_s):
        manager = service.Manager(words, self.path, watchdog_s, self.path / "log")
        self.addCleanup(manager.stop)
        return manager

    def await_said(self, manager, is_it):
        self.assertTrue(manager.wait_for(is_it, DEADLINE_S), (manager.said, self.log()))


class Notified(Service):
    def test_opening_ready_alive_stopping(self):
        manager = self.manage(self.words(), watchdog_s=60)
        self.await_said(manager, lambda said: any("READY=1" in text for text in said))
        self.assertEqual(manager.said[0], f"STATUS=opening {self.path}/etc/clicks.yaml")
        self.assertEqual(manager.said[1], f"READY=1\nSTATUS=serving 1 stream at {self.socket}")
        self.await_said(manager, lambda said: "WATCHDOG=1" in said)
        manager.stop()
        self.assertEqual((manager.process.returncode, manager.lives), (0, 1))

    def test_it_says_that_it_stops(self):
        manager = self.manage(self.words(), watchdog_s=60)
        self.await_said(manager, lambda said: any("READY=1" in text for text in said))
        manager.kill(signal.SIGTERM)
        self.await_said(manager, lambda said: any(text.startswith("STOPPING=1\nSTATUS=") for text in said))

    def test_a_refusal_is_its_status_and_is_not_tried_again(self):
        words = self.words()
        (self.path / "etc" / "clicks.yaml").write_text("streams: {train: {dataset: [rnage: 3]}}\n")
        manager = self.manage(words, watchdog_s=60)
        manager.thread.join()
        self.assertIn(f"STATUS={self.path}/etc/clicks.yaml is refused: the log says why", manager.said)
        prevented = service.settings(SERVER_UNIT)["RestartPreventExitStatus"][0].split()
        self.assertIn(str(manager.process.returncode), prevented)
        self.assertIn("range", self.log())

    def test_a_manager_with_an_abstract_socket_is_told(self):
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as heard:
            heard.bind(b"\0" + self.socket.encode())
            heard.settimeout(DEADLINE_S)
            self.environment["NOTIFY_SOCKET"] = "@" + self.socket
            server = self.start(self.words())
            while "READY=1" not in heard.recv(4096).decode():
                pass
            stop(server, signal.SIGTERM)

    def test_one_that_is_not_there_changes_nothing(self):
        for name in ("/nowhere/notify", "notify", "", "@", "/" + "x" * 200):
            self.environment["NOTIFY_SOCKET"] = name
            server = self.serve(str(self.words()[2]))
            stop(server, signal.SIGTERM)
            self.assertEqual(server.returncode, 0)


class Alive(Service):
    """The watchdog is fed by the threads whose hang matters; silence is waited for in vain."""

    QUIET_S = 2.0
    LIMIT_US = 400000

    def setUp(self):
        super().setUp()
        self.heard = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.addCleanup(self.heard.close)
        self.heard.bind(str(self.path / "notify"))
        self.environment["NOTIFY_SOCKET"] = str(self.path / "notify")
        self.environment["WATCHDOG_USEC"] = str(self.LIMIT_US)

    def await_beat(self):
        self.heard.settimeout(DEADLINE_S)
        while self.heard.recv(4096) != b"WATCHDOG=1":
            pass

    def is_quiet(self):
        """After what was sent already, nothing more comes."""
        self.heard.settimeout(0)
        try:
            while True:
                self.heard.recv(4096)
        except BlockingIOError:
            pass
        self.heard.settimeout(self.QUIET_S)
        try:
            return not self.heard.recv(4096)
        except TimeoutError:
            return True

    def test_neither_thread_speaks_for_the_other(self):
        server = self.start(self.words())
        self.await_beat()
        threads = [int(name) for name in os.listdir(f"/proc/{server.pid}/task")]
        for stopped in ([server.pid], [thread for thread in threads if thread != server.pid]):
            for thread in stopped:
                halt(self, thread)
            self.assertTrue(self.is_quiet())
            for thread in stopped:
                trace(PTRACE_DETACH, thread)
            self.await_beat()

    def test_another_process_is_not_meant(self):
        self.environment["WATCHDOG_PID"] = "1"
        self.serve(str(self.words()[2]))
        self.assertTrue(self.is_quiet())


def trace(request, thread):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]
    return libc.ptrace(request, thread, None, None) == 0


def halt(test, thread):
    """Stop one thread of a process."""
    if not trace(PTRACE_SEIZE, thread):
        test.skipTest(f"this system lets no process trace another: {os.strerror(ctypes.get_errno())}")
    test.assertTrue(trace(PTRACE_INTERRUPT, thread))
    os.waitpid(thread, WAIT_FOR_THREADS)


class Restarted(Service):
    """Real trainers go on at their place, each row is given once."""

    def test_killed_and_hung_under_its_trainers(self):
        manager = self.manage(self.words(), watchdog_s=3)
        self.await_said(manager, lambda said: any("READY=1" in text for text in said))
        readers = [self.read("--survive", "--delay-ms", "2", replica=r) for r in range(2)]
        for lives, (step, number) in enumerate(
            ((10, signal.SIGKILL), (STEPS + 2, signal.SIGSTOP), (2 * STEPS, signal.SIGSEGV)), 2
        ):
            self.wait_for_line(readers[0], f"batch {step // STEPS} {step % STEPS} ")
            manager.kill(number)
            self.await_said(manager, lambda said: sum("READY=1" in text for text in said) == lives)
        seen = [batches(self.whole(reader)) for reader in readers]
        for of_one in seen:
            self.assertEqual([(e, s) for e, s, _ in of_one], [(e, s) for e in range(EPOCHS) for s in range(STEPS)])
        for epoch in range(EPOCHS):
            rows = sorted(value for of_one in seen for e, _, values in of_one if e == epoch for value in values)
            self.assertEqual(rows, list(range(ROWS)))
        self.assertEqual(manager.lives, 4)


class Journal(Service):
    def logged(self, words, stream):
        """What is written where `stream` says that journald reads; None: where it says nothing."""
        with tempfile.TemporaryFile("w+") as log:
            about = os.fstat(log.fileno())
            named = {} if stream is None else {"JOURNAL_STREAM": stream.format(about)}
            read_end, write_end = os.pipe()
            server = subprocess.Popen(
                [*words, "--ready-fd", str(write_end)], env=self.environment | named, stderr=log,
                pass_fds=[write_end], stdin=subprocess.DEVNULL,
            )  # fmt: skip
            os.close(write_end)
            os.read(read_end, 100)
            os.close(read_end)
            server.terminate()
            server.wait(timeout=DEADLINE_S)
            log.seek(0)
            return log.read().splitlines()

    def test_it_reads_levels_and_notes_the_time_itself(self):
        lines = self.logged(self.words(), "{0.st_dev}:{0.st_ino}")
        self.assertTrue(all(re.match(r"<[3457]>[a-z]+: ", line) for line in lines), lines)
        self.assertIn(f"<5>ready: serving 1 stream at {self.socket}", lines)

    def test_each_line_of_a_refusal_is_an_error(self):
        words = self.words()
        (self.path / "etc" / "clicks.yaml").write_text(
            "streams: {train: {dataset: [rnage: 3]}, other: {dataset: [rnage: 4]}}\n"
        )
        lines = self.logged(words, "{0.st_dev}:{0.st_ino}")
        self.assertGreater(len(lines), 1)
        self.assertTrue(all(line.startswith("<3>") for line in lines), lines)

    def test_it_is_given_fields_where_it_listens(self):
        folder = self.path / "journal"
        folder.mkdir()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as journald:
            journald.bind(str(folder / "socket"))
            journald.settimeout(DEADLINE_S)
            script = 'mount -t tmpfs tmpfs /run && mkdir -p /run/systemd/journal' \
                ' && mount --bind "$1" /run/systemd/journal && shift && exec "$@"'
            words = ["unshare", "-m", "sh", "-c", script, "sh", str(folder), *self.words()]
            lines = self.logged(words, "{0.st_dev}:{0.st_ino}")
            self.assertEqual(lines, [])
            entries = []
            while not entries or "TUNDISH_EVENT=stop" not in entries[-1]:
                entries.append(journald.recv(65536).decode().splitlines())
        self.assertIn(["PRIORITY=5", "SYSLOG_IDENTIFIER=tundish", "TUNDISH_EVENT=ready",
                       f"MESSAGE=ready: serving 1 stream at {self.socket}"], entries)  # fmt: skip

    def test_another_standard_error_is_not_its(self):
        for stream in (None, "1:1", "{0.st_dev}:1", "none", ""):
            lines = self.logged(self.words(), stream)
            self.assertRegex(lines[-1], r"^\d{4}-\d\d-\d\dT\S+Z notice stop: stopped$")


@cache
def calls(name):
    """The system calls of one of systemd's sets."""
    said = subprocess.check_output(["systemd-analyze", "syscall-filter", name], text=True)
    words = re.findall(r"^ +([@\w-]+)$", said, re.MULTILINE)
    return set().union(*(calls(word) if word[0] == "@" else {word} for word in words))


class Confined(Service):
    """Under the unit's filter of system calls, which the kernel applies to it as systemd asks it to."""

    def setUp(self):
        super().setUp()
        if shutil.which("systemd-analyze") is None:
            self.skipTest("there is no systemd-analyze")
        source = REPOSITORY / "tests" / "operations" / "confine.c"
        self.confine = self.path / "confine"
        if not Path("/usr/include/seccomp.h").exists():
            self.skipTest("there is no libseccomp-dev")
        subprocess.run(["cc", "-Wall", "-Wextra", "-Werror", source, "-o", self.confine, "-lseccomp"], check=True)

    def confined(self, *also_refused):
        """The command before a server's."""
        allowed = set()
        for line in service.settings(SERVER_UNIT)["SystemCallFilter"]:
            named = set().union(*map(calls, line.removeprefix("~").split()))
            allowed = allowed - named if line[0] == "~" else allowed | named
        return [str(self.confine), ",".join(sorted(allowed - set(also_refused)))]

    def test_it_serves(self):
        words = [*self.confined(), *self.words(distribute="{replicas: 1}")]
        self.start_until(words, "log", lambda word: word == "ready\n")
        seen = batches(self.lines(self.read()))
        self.assertEqual(len(seen), EPOCHS * STEPS)

    def test_expressions_are_matched_without_compiling_them_to_code(self):
        (self.path / "etc" / "words.txt").write_text("".join(f"a{number}b\n" for number in range(100, 120)))
        stages = [
            "text_line: {filenames: words.txt}",
            'regex_replace: {columns: value, pattern: "a([0-9])([0-9])", rewrite: "\\\\2\\\\1"}',
            "batch: 5",
        ]
        lines = []
        for before in ([], self.confined()):
            words = self.words(stages, "{replicas: 1}")
            server, _ = self.start_until([*before, *words], "log", lambda word: word == "ready\n")
            lines.append(batches(self.lines(self.read())))
            stop(server, signal.SIGTERM)
            shutil.rmtree(self.path / "state" / "clicks")
            (self.path / "state" / "clicks").mkdir()
        self.assertEqual(lines[0], lines[1])
        self.assertGreater(len(lines[0]), 0)

    def test_a_refused_call_is_told_with_what_may_have_refused_it(self):
        for call, word in (("timerfd_create", "make a timer"), ("epoll_create1", "event loop"),
                           ("listen", "listen at")):  # fmt: skip
            done = subprocess.run(
                [*self.confined(call), *self.words()], env=self.environment, capture_output=True,
                text=True, timeout=DEADLINE_S,
            )  # fmt: skip
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertRegex(done.stderr, f"error start: .*{word}.*Operation not permitted")
            self.assertIn("SystemCallFilter=", done.stderr)


if __name__ == "__main__":
    unittest.main()
