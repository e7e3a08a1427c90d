"""Suites that wait most of their time, run by a process of their own beside the others."""

import concurrent.futures
import contextlib
import multiprocessing
import os
import resource
import sys
import tempfile
import time

from . import suites
from .tally import failure

SUITES = ("install", "operations")  # leave a core idle most of the time; one after the other, as both write dist/
_NICE = 5  # the suites of the main process go first


def run(name):
    """The tally of a suite, and the seconds that it took, which it prints."""
    start, used = time.monotonic(), _processor_s()
    tally = suites.ALL[name]()
    wall, used = time.monotonic() - start, _processor_s() - used
    print(f"== {name}: {tally} in {wall:.0f} s, {used:.0f} s of the processors", flush=True)
    return tally, wall


def _processor_s():
    """The seconds of all processes that have ended and were waited for, without the builds ahead."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime - suites.ahead_s


class Beside:
    """Runs suites one after another, and keeps what they print until each has ended."""

    def __init__(self, names, run=run):
        self.waiting, self.run = list(names), run
        self.started = []  # (name, future), of those that `ended` has not returned
        self.process = None

    def begin(self):
        if self.waiting and not self.process:
            context = multiprocessing.get_context("spawn")  # a fork would copy the threads' locks
            self.process = concurrent.futures.ProcessPoolExecutor(1, context, os.nice, (_NICE,))
        self.started += [(name, self.process.submit(_captured, self.run, name)) for name in self.waiting]
        self.waiting = []

    def ended(self, all_of_them=False):
        """(name, tally, seconds or None, printed) of those that have ended, each once; waits for all if told to."""
        while self.started and (all_of_them or self.started[0][1].done()):
            name, future = self.started.pop(0)
            try:
                yield name, *future.result()
            except (Exception, SystemExit) as error:  # as that its process was killed
                yield name, failure(f"{name}: {error!r}"), None, ""


def _captured(run, name):
    with tempfile.TemporaryFile("w+", errors="replace") as file:
        with _printing_to(file):
            tally, seconds = run(name)
        file.seek(0)
        return tally, seconds, file.read()


@contextlib.contextmanager
def _printing_to(file):
    """Send the output of this process and of those that it starts into the file."""
    sys.stdout.flush()
    kept = [os.dup(number) for number in (1, 2)]
    for number in (1, 2):
        os.dup2(file.fileno(), number)
    try:
        yield
    finally:
        sys.stdout.flush()
        for number, copy in zip((1, 2), kept):
            os.dup2(copy, number)
            os.close(copy)
