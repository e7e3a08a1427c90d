"""The launcher: its processes, of which each ends those that a killed one has left."""

import os
import shutil
import signal
import sys
import tempfile

from .channel import call
from .helpers import run_helper, start_helpers
from .job import LAUNCH_COMMANDS, LAUNCH_FOLDER
from .mpi import is_rank, own_node, run_across
from .options import parse_arguments
from .processes import (
    AWAITED, END_NOW, LaunchError, PR_SET_CHILD_SUBREAPER, die_with_parent, end, end_descendants,
    exit_status, next_signal, prctl, read_commands, say, signal_when_readable, take_signals_from,
)
from .server import run_registered, wait_for_trainers


def main():
    if sys.argv[1:2] == ["--call"]:
        return call(*sys.argv[2:])
    if sys.argv[1:2] == ["--keep-helper"]:
        return run_helper(*sys.argv[2:])
    job = parse_arguments(sys.argv[1:])
    signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
    # Ranks on this machine keep their files in the folder of the launcher that ends last.
    folder = tempfile.mkdtemp(prefix="tundish-", dir=os.environ.get(LAUNCH_FOLDER))
    if is_rank():
        die_with_parent(os.getppid(), signal.SIGTERM)
    front = os.getpid()
    if os.environ.pop(LAUNCH_COMMANDS, None):
        signal_when_readable(0)
        os.kill(front, signal.SIGIO)  # something may be there already
    return watch_over(folder, lambda: watch_over(folder, lambda: run_job(job, folder, front)))


def watch_over(folder, work):
    """Run work() in a child and return its exit status. Removes its processes and the folder."""
    prctl(PR_SET_CHILD_SUBREAPER, 1)
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        os.setpgid(0, 0)
        die_with_parent(parent, END_NOW)
        take_signals_from(parent)
        os._exit(work())
    while True:
        number = next_signal()
        if number == signal.SIGIO:
            for order in read_commands():
                os.kill(child, order)
            continue
        if number != signal.SIGCHLD:
            os.kill(child, number)
            continue
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            end_descendants()
            shutil.rmtree(folder, ignore_errors=True)
            return exit_status(os.waitstatus_to_exitcode(status))


def run_job(job, folder, front):
    """Run the job in the keeper. Returns its exit status."""
    helpers = []
    try:
        prctl(PR_SET_CHILD_SUBREAPER, 1)
        if job.idle:
            return wait_for_trainers(job)
        start_helpers(job, helpers)
        if job.hosts or job.by_srun:
            return run_across(job, folder, helpers)
        return run_registered(job, own_node(), folder, front)
    except LaunchError as error:
        say(error)
        return error.status
    finally:
        end(helpers, min(1, job.grace_s))
        end_descendants()
