"""Helpers, which are started again whenever they end."""

import os
import secrets
import select
import signal
import socket
import subprocess
import time

from .channel import SECRET_BYTES_MIN
from .job import HELPERS, HELPER_KEY, PROGRAM, is_here
from .processes import (
    ENDING, END_NOW, LaunchError, describe_exit, die_with_parent, exit_status, next_signal, say, start,
)
from .restarts import RESTART_DELAY_MAX_S, RESTART_DELAY_S


def start_helpers(job, helpers):
    """Start the helpers, append their processes, and tell servers their addresses."""
    if not job.helpers:
        return
    os.environ[HELPER_KEY] = secrets.token_hex(SECRET_BYTES_MIN)
    is_local = all(map(is_here, (*job.helpers, *job.hosts))) and not job.by_srun
    for host in job.helpers:
        host = "127.0.0.1" if is_local else socket.gethostname() if is_here(host) else host
        command = [*helper_prefix(job, host), *job.helper, "--listen",
                   f"{host if is_local else ''}:PORT"]
        helpers.append(start([str(PROGRAM), "--keep-helper", *command],
                             dict(os.environ), signal.SIGTERM, stdout=subprocess.PIPE))
        helpers[-1].host = host
    os.environ[HELPERS] = ",".join(f"{helper.host}:{port_of(helper)}" for helper in helpers)


def helper_prefix(job, host):
    """The command that runs another on that host; its end does not end the job."""
    if job.by_srun:
        return ("srun", "--mpi=none", "--overlap", "--nodes=1", "--ntasks=1", f"--nodelist={host}",
                "--cpu-bind=none")
    if is_here(host):
        return ()
    root = ("--allow-run-as-root",) if os.geteuid() == 0 else ()
    return ("mpirun", "--bind-to", "none", "-n", "1", *root, "--host", host, "-x", HELPER_KEY)


def port_of(helper):
    """Wait until the helper can be called."""
    while not select.select([helper.stdout], [], [], 0)[0]:
        number = next_signal(timeout_s=0.02)
        if number in ENDING or number == END_NOW:
            raise LaunchError("stopped before the helpers were ready", 128 + number)
    words = helper.stdout.readline().split()
    if not words:
        raise LaunchError(f"the helper on {helper.host} did not start", exit_status(helper.wait()) or 1)
    return int(words[1])


def run_helper(*command):
    """Run a helper, and start it again at its port whenever it has ended. Returns its exit status if
    it has never been ready, or ends well."""
    parent, port, delay = os.getpid(), "0", RESTART_DELAY_S
    while True:
        process = subprocess.Popen([word.replace(":PORT", f":{port}") for word in command],
                                   stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                   preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM))
        for line in process.stdout:
            words = line.decode(errors="replace").split()
            if len(words) == 2 and words[0] == "ready" and words[1].isdigit():
                if port == "0":
                    print("ready", words[1], flush=True)
                port, delay = words[1], RESTART_DELAY_S
        code = process.wait()
        if code == 0 or port == "0":
            return exit_status(code)
        say(f"a helper {describe_exit(code)}: it is started again in {delay:g} s")
        time.sleep(delay)
        delay = min(RESTART_DELAY_MAX_S, 2 * delay)
