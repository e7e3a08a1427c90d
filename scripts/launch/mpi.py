"""The launchers of several nodes, as ranks that mpirun or srun starts."""

import contextlib
import json
import math
import os
import signal
import socket
import subprocess
import time

from .job import (
    LAUNCH_COMMANDS, LAUNCH_FOLDER, LAUNCH_TASKS, MPI_VARIABLES, PROGRAM, free_port, is_here,
)
from .processes import (
    ENDING, END_NOW, LaunchError, PASSED_ON, URGENT, end, exit_status, is_running, next_signal, start,
    wait_for_orphans,
)
from .slurm import srun_command

# Variables that belong to one machine and are not passed to others.
LOCAL_VARIABLES = (*MPI_VARIABLES, "SLURM_", "SSH_", "XDG_", "DBUS_", "HOSTNAME", "DISPLAY", "TMPDIR",
                   "PWD", "OLDPWD", "SHLVL", "TERM", "_")


def is_rank():
    return any(name in os.environ for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"))


def own_node():
    for name in ("OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"):
        if name in os.environ:
            return int(os.environ[name])
    return 0


def rank_count():
    for name in ("OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_NTASKS"):
        if name in os.environ:
            return int(os.environ[name])
    return 1


def node_on_host():
    """Returns the number of this node among those on its host."""
    for name in ("OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "PMI_LOCAL_RANK", "SLURM_LOCALID"):
        if is_rank() and os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def rank_descriptor():
    """That by which a rank talks with MPICH's mpiexec, if it does. The server is the rank."""
    try:
        number = int(os.environ.get("PMI_FD", ""))
        os.fstat(number)
    except (ValueError, OverflowError, OSError):
        return []
    return [number]


def is_mpirun_rank(job):
    return job.nodes > 1 and "OMPI_COMM_WORLD_RANK" in os.environ


def tasks_of_ranks(tasks, count):
    """The tasks of each rank: from the launcher that started the ranks, or one for each rank."""
    told = json.loads(os.environ.pop(LAUNCH_TASKS, "[]"))
    if told:
        return tuple(tuple(map(tuple, node)) for node in told)
    return tuple((task,) for task in tasks) if len(tasks) == count else ()


def run_across(job, folder, helpers):
    """Run this program on every node, as a rank. Returns an exit status."""
    environment = dict(os.environ, **meeting_point(job), **{LAUNCH_TASKS: json.dumps(job.tasks)})
    if job.by_srun:
        environment[LAUNCH_COMMANDS] = "yes"
    command = srun_command(job) if job.by_srun else mpirun_command(job, environment)
    if job.hosts and all(is_here(host) for host in job.hosts):
        environment[LAUNCH_FOLDER] = folder
        command += ["--mca", "orte_tmpdir_base", folder]
    if job.calls is not None:
        command += call_options(job, folder)
    ranks = start([*command, *job.again], environment, signal.SIGTERM,
                  stdin=subprocess.PIPE if job.by_srun else subprocess.DEVNULL)
    deadline, asked = math.inf, False
    while is_running(ranks):
        number = next_signal(deadline - time.monotonic())
        if number is None or (asked and number in URGENT):
            break
        if number in ENDING or number == END_NOW:
            asked, deadline = True, time.monotonic() + job.grace_s + 10
            number = END_NOW
        if number in PASSED_ON or number == END_NOW:
            broadcast(job, ranks, number)
    end([ranks], 0)
    end(helpers, min(1, job.grace_s))
    wait_for_orphans(job.grace_s)
    return exit_status(ranks.returncode)


def broadcast(job, ranks, number):
    """Send a signal to the launchers of all nodes. srun kills what it has started when it is asked to end,
    and sends other signals to servers and trainers too: these launchers read it from standard input."""
    with contextlib.suppress(BrokenPipeError, ProcessLookupError):  # srun or mpirun is ending
        if job.by_srun:
            os.write(ranks.stdin.fileno(), bytes([number]))
        else:
            os.kill(ranks.pid, number)


def mpirun_command(job, environment):
    """The command that starts one rank on each node, which may use the whole node."""
    slots = {}
    for host in job.hosts:
        slots[host] = slots.get(host, 0) + 1
    command = ["mpirun", "--mca", "ess_base_forward_signals", f"SIGUSR1,SIGUSR2,{int(END_NOW)}"]
    command += ["--oversubscribe", "--bind-to", "none", "-n", str(job.nodes)]
    if any("." in host for host in job.hosts):  # they would be cut at the first dot
        command += ["--mca", "orte_keep_fqdn_hostnames", "1"]
    if os.geteuid() == 0:
        command.append("--allow-run-as-root")
    if slots.keys() - {"*"}:
        command += ["--host", ",".join(f"{host}:{count}" for host, count in slots.items())]
    if not all(is_here(host) for host in job.hosts):
        for name in sorted(environment):
            if not name.startswith(LOCAL_VARIABLES):
                command += ["-x", name]
    return command


def call_options(job, folder):
    """Options that make `call` mpirun's remote shell: one for each host, as long as its daemon."""
    known = os.path.join(folder, "calls")
    calls = {"secret": job.calls.secret.hex(), "job": job.calls.job, "port": job.calls.port}
    file = os.open(known, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with open(file, "w", encoding="ascii") as text:
        json.dump(calls, text)
    words = (str(PROGRAM), "--call", known)
    if any(set(" :") & set(word) for word in words):
        raise LaunchError(f"mpirun cannot call other hosts through {words[0]} and {known}: a path (of "
                          "TMPDIR, say) has a space or a colon")
    settings = {"plm": "rsh", "plm_rsh_agent": " ".join(words), "plm_rsh_no_tree_spawn": "1",
                "plm_rsh_num_concurrent": str(job.nodes), "ras": "^slurm",
                "orte_leave_session_attached": "1"}
    return [word for name, value in settings.items() for word in ("--mca", name, value)]


def meeting_point(job):
    """The address and port where the trainers of the job meet."""
    first = job.hosts[0] if job.hosts and job.hosts[0] != "*" else socket.gethostname()
    address = "127.0.0.1" if all(is_here(host) for host in job.hosts) and job.hosts else first
    return {
        "MASTER_ADDR": os.environ.get("MASTER_ADDR", address),
        "MASTER_PORT": os.environ.get("MASTER_PORT") or str(free_port() if is_here(first) else 29500),
    }
