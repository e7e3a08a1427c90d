"""Calls the tundish program for one case and reads what it prints."""

import json
import os
import re
import signal
import subprocess
from collections import defaultdict
from dataclasses import dataclass, field


@dataclass
class WorkerRun:
    """What one worker delivered: per replica and epoch the list of its steps."""

    steps: dict = field(default_factory=lambda: defaultdict(lambda: defaultdict(list)))
    end: object = None


@dataclass
class Run:
    element_spec: dict | None = None
    workers: dict = field(default_factory=lambda: defaultdict(WorkerRun))
    refusal: list | None = None  # the errors of a refused pipeline file

    @property
    def absent_stage(self):
        """The stage that this build leaves out, if that is why it refused the file."""
        found = re.search(r"stage [`'\"]?(\w+)[`'\"]? is not in this build", "\n".join(self.refusal or []))
        return found and found.group(1)


class Crash(Exception):
    """The program was killed, took too long, or printed what nobody can read."""


class AbsentCommand(Exception):
    """This build has no such command."""


class Tundish:
    """Calls take the folder that the case finds as ${CASE_FOLDER}."""

    def __init__(self, program, timeout_s, cache):
        self.program = program
        self.timeout_s = timeout_s
        self.environment = dict(os.environ, TUNDISH_CACHE=str(cache))

    def peek(self, case, folder, analysis=None):
        arguments = ["peek", *_common(case, analysis), "--json"]
        arguments += ["--num-workers", str(len(case.workers)), "--epochs", str(case.epochs)]
        if case.max_steps is not None:
            arguments += ["--steps", str(case.max_steps)]
        out, err, _ = self._call(arguments, folder)
        return parse(out, err)

    def analyze(self, case, folder, analysis):
        """Learn the case's statistics. Returns what a failure had to say, or None."""
        out, err, status = self._call(["analyze", *_common(case, analysis)], folder)
        if status == 0:
            return None
        if re.search(r"unknown command|there is no command", err, re.IGNORECASE):
            raise AbsentCommand("this build has no `tundish analyze`")
        return (err + out).strip()

    def _call(self, arguments, folder):
        process = subprocess.Popen(
            [self.program, *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(self.environment, CASE_FOLDER=str(folder)),
            start_new_session=True,
        )
        try:
            out, err = process.communicate(timeout=self.timeout_s)
        except subprocess.TimeoutExpired:
            raise Crash(f"no end after {self.timeout_s} s") from None
        finally:
            _kill_group(process)
        err = err.decode("utf-8", "replace")
        if process.returncode < 0:
            name = signal.Signals(-process.returncode).name
            raise Crash(f"killed by {name}: {_tail(err)}")
        if "Sanitizer" in err or "runtime error:" in err:
            raise Crash(f"a sanitizer spoke: {_sanitizer_lines(err)}")
        return out.decode("utf-8", "replace"), err, process.returncode


def parse(out, err=""):
    """The lines of `tundish peek --json` as a Run."""
    run = Run()
    for line in out.split("\n"):  # splitlines() would also cut at U+2028 and others
        if not line:
            continue
        try:
            _take(run, json.loads(line))
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Crash(f"unreadable line {line[:120]!r}: {_tail(err)}") from None
    if run.refusal is None and not run.workers:
        raise Crash(f"printed no end: {_tail(err)}")
    return run


def _take(run, line):
    if "element_spec" in line:
        run.element_spec = line["element_spec"]
    elif "columns" in line:
        _require_columns(line["columns"])
        steps = run.workers[line["worker"]].steps[line["replica"]][line["epoch"]]
        steps.append(line["columns"])
    elif "epoch_end" in line:
        run.workers[line["worker"]]  # a worker without rows is a worker too
    elif "worker" in line:
        run.workers[line["worker"]].end = line["end"]
    else:
        run.refusal = line["end"]["errors"]


def _require_columns(columns):
    for name, column in columns.items():
        if not isinstance(column["dtype"], str) or not isinstance(column["values"], list):
            raise TypeError(f"column {name} lacks dtype or values")


def _common(case, analysis):
    arguments = [str(case.path), "--stream", "case", "--root", str(case.root)]
    return arguments + (["--analysis", str(analysis)] if analysis else [])


def _kill_group(process):
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        pass
    process.wait()


def _tail(text):
    lines = text.strip().splitlines()
    return " | ".join(lines[-3:]) if lines else "nothing on standard error"


def _sanitizer_lines(text):
    lines = [line for line in text.splitlines() if "Sanitizer" in line or "runtime error:" in line]
    return " | ".join(lines[:3])
