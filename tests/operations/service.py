"""A unit file as a service manager reads it, and a small manager: for tests, which have no systemd."""

import os
import re
import select
import shlex
import signal
import socket
import subprocess
import threading
from pathlib import Path


def settings(unit):
    """{name: [values]} of a unit's service, in order."""
    found = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", Path(unit).read_text(), re.MULTILINE):
        found.setdefault(name, []).append(value)
    return found


def command(unit, instance, folders):
    """The program that the unit starts, with folders of a test in place of the system's."""
    line = settings(unit)["ExecStart"][0].replace("%i", instance)
    for systems, tests in folders.items():
        line = line.replace(systems, str(tests))
    return shlex.split(line)


class Manager:
    """Starts a service, hears what it says of itself, and starts it again when it fails or hangs.

    A service that has said READY=1 must say WATCHDOG=1 before each `watchdog_s` is over."""

    def __init__(self, words, folder, watchdog_s, log):
        self.words, self.watchdog_s, self.log = words, watchdog_s, log
        self.said = []  # datagrams, over all of its lives
        self.lives = 0
        self.changed = threading.Condition()
        self.stops = False
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(folder / "notify"))
        self.process = None
        self._start()
        self.thread = threading.Thread(target=self._watch)
        self.thread.start()

    def _start(self):
        name = self.socket.getsockname()
        usec = str(int(self.watchdog_s * 1e6))
        self.lives += 1
        with open(self.log, "a", encoding="utf-8") as log:
            self.process = self._run(name, usec, log)

    def _run(self, name, usec, log):
        return subprocess.Popen(
            # The pid in WATCHDOG_PID is the program's own.
            ["sh", "-c", 'WATCHDOG_PID=$$ exec "$@"', "sh", *self.words],
            env=os.environ | {"NOTIFY_SOCKET": name, "WATCHDOG_USEC": usec},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=log,
        )

    def _watch(self):
        watched = False
        while True:
            has_ended = self.process.poll() is not None  # all that it has said lies there then
            ready, _, _ = select.select([self.socket], [], [], 0 if has_ended else self.watchdog_s if watched else 0.1)
            if ready:
                text = self.socket.recv(4096).decode()
                watched = (watched or "READY=1" in text) and "STOPPING=1" not in text
                with self.changed:
                    self.said.append(text)
                    self.changed.notify_all()
            elif watched and not has_ended:
                self.process.send_signal(signal.SIGABRT)
                self.process.send_signal(signal.SIGCONT)
            if has_ended and not ready:
                watched = False
                with self.changed:
                    if self.stops or self.process.returncode in (0, 1, 2):
                        self.changed.notify_all()
                        return
                    self._start()

    def wait_for(self, is_it, deadline_s):
        """Until is_it(what was said); returns whether it came to be."""
        with self.changed:
            return self.changed.wait_for(lambda: is_it(self.said), deadline_s)

    def kill(self, number):
        with self.changed:
            self.process.send_signal(number)

    def stop(self):
        with self.changed:
            self.stops = True
            if self.process.poll() is None:
                self.process.terminate()
        self.thread.join()
        self.process.wait()
        self.socket.close()
