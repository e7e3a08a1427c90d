"""Starting, signalling and ending processes."""

import contextlib
import ctypes
import fcntl
import math
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

PR_SET_PDEATHSIG = 1
PR_SET_CHILD_SUBREAPER = 36
# Ends a job in good order, as SIGTERM does. mpirun passes this signal on, but handles SIGTERM itself.
# The keeper also gets it when the front dies.
END_NOW = signal.SIGPWR
# From mpirun, which ends all ranks when one has failed. A user's request comes as END_NOW.
ABORTED = signal.SIGTERM
# To a server: tell the trainers that the job has failed.
JOB_FAILED = signal.SIGUSR1
# A terminal that closes may send SIGHUP twice, itself and by the shell: it never asks for haste.
URGENT = {signal.SIGINT, signal.SIGTERM, signal.SIGQUIT}
# After nohup a SIGHUP means nothing. Blocked it would be kept, so it must not be awaited.
ENDING = URGENT if signal.getsignal(signal.SIGHUP) == signal.SIG_IGN else URGENT | {signal.SIGHUP}
PASSED_ON = ENDING | {signal.SIGUSR1, signal.SIGUSR2}
# Blocked in the whole launcher and taken one at a time, so that none arrives between two steps.
AWAITED = PASSED_ON | {signal.SIGCHLD, signal.SIGIO, END_NOW}
STDERR_WAIT_S = 1  # the longest wait for a standard error that is full
_libc = ctypes.CDLL(None, use_errno=True)


class LaunchError(Exception):
    """The job cannot run. Holds the exit status of the launcher."""

    def __init__(self, message, status=1):
        super().__init__(message)
        self.status = status


def take_signals_from(process):
    global _signaller
    _signaller = process


_signaller = None  # the only process that this one takes signals from; None: it takes them from any


def next_signal(timeout_s=None):
    """Returns the next signal to the launcher, or None after the timeout, if there is one."""
    deadline = math.inf if timeout_s is None else time.monotonic() + max(0, timeout_s)
    while True:
        if deadline == math.inf:
            info = signal.sigwaitinfo(AWAITED)
        else:
            info = signal.sigtimedwait(AWAITED, max(0, deadline - time.monotonic()))
        if info is None:
            return None
        if info.si_signo not in PASSED_ON or info.si_pid == _signaller or _signaller is None:
            return info.si_signo


def read_commands():
    """Returns the signals that have come over standard input."""
    try:
        numbers = os.read(0, 1 << 12)
    except OSError:
        return []
    return [number for number in numbers if number in PASSED_ON or number == END_NOW]


def signal_when_readable(file):
    """Let next_signal return SIGIO when this file has something to read."""
    flags = fcntl.fcntl(file, fcntl.F_GETFL)
    fcntl.fcntl(file, fcntl.F_SETOWN, os.getpid())
    fcntl.fcntl(file, fcntl.F_SETFL, flags | os.O_ASYNC | os.O_NONBLOCK)


def start(command, environment, last_signal, pass_fds=(), stdin=subprocess.DEVNULL, stdout=None):
    """Start a command in its own process group; it gets last_signal if this process dies."""
    parent = os.getpid()

    def prepare():
        os.setpgid(0, 0)
        die_with_parent(parent, last_signal)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, AWAITED)

    try:
        return subprocess.Popen(
            command,
            stdin=stdin,
            stdout=stdout,
            env=environment,
            pass_fds=pass_fds,
            preexec_fn=prepare,
        )
    except OSError as error:
        raise LaunchError(f"cannot run {command[0]}: {error.strerror}", 127) from error


def send(processes, number):
    """Signal whole process groups: a trainer's own children belong to it."""
    for process in processes:
        if is_running(process):
            os.killpg(process.pid, number)


def end(processes, grace_s, number=signal.SIGTERM):
    """Ask the process groups to end, and kill them after the grace period. Returns whether it had to."""
    deadline = time.monotonic() + grace_s
    must_kill = False
    send(processes, number)
    while not must_kill and any(is_running(process) for process in processes):
        must_kill = next_signal(deadline - time.monotonic()) in (None, *URGENT)
    if must_kill:
        send(processes, signal.SIGKILL)
    for process in processes:
        process.wait()
    return must_kill


def is_running(process):
    return process.poll() is None


def failures(processes):
    return [process.returncode for process in processes if process.poll() not in (None, 0)]


def end_descendants():
    """Kill all children, and the orphans adopted meanwhile, until none is left."""
    while True:
        for child in children():
            os.kill(child, signal.SIGKILL)
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def kill_leftovers(groups):
    """Kill the other processes in the process groups of trainers that have ended."""
    while left := [child for child in children() if os.getpgid(child) in groups]:
        for child in left:
            os.kill(child, signal.SIGKILL)
        for child in left:
            os.waitpid(child, 0)


def wait_for_orphans(grace_s):
    """mpirun kills ranks of this machine after a second; their keepers still end in good order."""
    deadline = time.monotonic() + grace_s
    while children() and time.monotonic() < deadline:
        try:
            os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return
        time.sleep(0.01)


def parent_of(process):
    """Returns the number of a process's parent, or None if the process has gone."""
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[1])
    except (OSError, IndexError):
        return None


def children():
    path = f"/proc/self/task/{os.getpid()}/children"
    return [int(child) for child in Path(path).read_text().split()]


def die_with_parent(parent, number):
    """Have the kernel send this process a signal when its parent dies, even if it just has."""
    prctl(PR_SET_PDEATHSIG, number)
    if os.getppid() != parent:
        os.kill(os.getpid(), signal.SIGKILL)


def prctl(option, argument):
    if _libc.prctl(option, argument, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def exit_status(returncode):
    return 128 - returncode if returncode < 0 else returncode


def describe_exit(code):
    return f"was killed by signal {-code}" if code < 0 else f"ended with status {code}"


def say(text):
    """Tell the user. The job must end even if nobody reads standard error."""
    line = f"tundish-launch: {text}\n".encode()
    writer = threading.Thread(target=write_error, args=(line,), daemon=True)
    writer.start()
    writer.join(STDERR_WAIT_S)


def write_error(line):
    with contextlib.suppress(OSError):
        os.write(sys.stderr.fileno(), line)


def output_of(*command):
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except OSError:
        return ""
    return done.stdout + done.stderr
