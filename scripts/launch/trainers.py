"""The trainers of a node: their environment and their supervision."""

import json
import os
import signal
import socket
import time

from .job import HELPERS, HELPER_KEY, LAUNCH_FOLDER, MPI_VARIABLES
from .processes import (
    ABORTED, ENDING, END_NOW, JOB_FAILED, LaunchError, PASSED_ON, URGENT, describe_exit, end, exit_status,
    failures, is_running, next_signal, parent_of, say, send, start,
)
from .restarts import SpreadTrainerGroup, TrainerGroup, trainers_of
from .slurm import slurm_meeting_point
from .tf_config import TF_KINDS, tf_config

ABORT_WAIT_S = 2  # longer than a node takes to end its server and tell mpirun how its trainers ended
# The server's words for trainers whose tasks share the server and have a session each.
SESSION_RELATIONS = ("sessions", "together")


def session_of(job, relation, replica):
    """Returns the name of the session of this trainer, or of its group, alone. None: it has none."""
    alone = relation == "sessions" and job.replicas > 1
    if "TUNDISH_SESSION" in os.environ or not (alone or (job.task and relation in SESSION_RELATIONS)):
        return None
    return (job.task or "trainer") + (f"-{replica}" if alone else "")


def make_groups(job, node, path, relation, barrier=None):
    """Returns the groups of a node. relation: between the trainers, as the server reports it."""
    together = relation not in ("alone", "sessions", "groups")

    def launch(replica, restarts):
        environment = trainer_environment(job, node, replica, path)
        environment["TORCHELASTIC_RESTART_COUNT"] = str(restarts)
        environment["TORCHELASTIC_MAX_RESTARTS"] = str(job.restarts)
        session = session_of(job, relation, replica)
        if session is not None:
            environment["TUNDISH_SESSION"] = session
            environment["TUNDISH_REPLICA"] = "0" if relation == "sessions" else str(replica)
        if relation == "groups" and "TUNDISH_GROUP" not in os.environ:
            environment["TUNDISH_GROUP"] = f"{job.task or 'trainer'}-{replica}"
            environment["TUNDISH_REPLICA"] = "0"
        return start(job.trainer, environment, signal.SIGKILL)

    all_replicas = range(job.replicas)
    if together and barrier is not None:
        return [SpreadTrainerGroup(launch, all_replicas, job.grace_s, job.restarts, barrier=barrier)]
    parts = [all_replicas] if together else [range(r, r + 1) for r in all_replicas]
    return [TrainerGroup(launch, part, job.grace_s, job.restarts) for part in parts]


def trainer_variables(environment):
    mine = (*MPI_VARIABLES, LAUNCH_FOLDER, HELPERS, HELPER_KEY)
    return {name: text for name, text in environment.items() if not name.startswith(mine)}


def trainer_environment(job, node, replica, path):
    environment = dict(
        trainer_variables(os.environ),
        TUNDISH_SERVER=path,
        TUNDISH_REPLICA=str(replica),
        RANK=str(node * job.replicas + replica),
        LOCAL_RANK=str(replica),
        WORLD_SIZE=str(job.world_size),
        LOCAL_WORLD_SIZE=str(job.replicas),
        GROUP_RANK=str(node),
    )
    if job.nodes == 1:
        environment.setdefault("MASTER_ADDR", "127.0.0.1")
        environment.setdefault("MASTER_PORT", str(job.port))
    elif "MASTER_ADDR" not in environment and "SLURM_JOB_NODELIST" in environment:
        environment = slurm_meeting_point() | environment
    if node < len(job.tasks):
        tasks = job.tasks[node]
        kind, index = tasks[replica * len(tasks) // job.replicas]
        if kind in TF_KINDS:
            config = dict(tf_config(), task={"type": kind, "index": index})
            environment["TF_CONFIG"] = json.dumps(config)
    if job.stream is not None:
        environment["TUNDISH_STREAM"] = job.stream
    return environment


def report_result(job, node, server, groups, result):
    """Name the process whose exit status is the job's."""
    where = f" on {socket.gethostname()} (rank {node})" if job.nodes > 1 else ""
    named = [(f"replica {replica}", process) for group in groups
             for replica, process in zip(group.replicas, group.processes)]
    for name, process in [*named, ("the server", server)]:
        code = process and process.poll()
        if code and exit_status(code) == result:
            say(f"{name}{where} {describe_exit(code)}")
            return


def supervise(server, groups, grace_s, front=None):
    """Wait until the trainers have ended, and restart those that may be restarted. Returns an exit
    status, and whether a signal asked for the end. server: None if another launcher watches it. front:
    that of a rank, which mpirun asks to end, and then kills, when another rank has failed."""
    while True:
        serves = server is None or is_running(server)
        if serves:
            for group in groups:
                group.advance()
        trainers = trainers_of(group for group in groups if not group.is_restarting())
        if not serves:
            failures(trainers)
        # Without trainers that have failed since: they may still be restarted.
        failed = [process.returncode for process in trainers if process.returncode]
        failed += failures([server] if server else [])
        if failed:
            first = first_failure(failed, trainers, grace_s)
            if front is not None and first > 0:
                wait_for_abort(front)
            return exit_status(first), False
        if not any(group.is_busy() for group in groups) and not failures(trainers):
            return 0, False
        if not serves and all(group.is_restarting() for group in groups if group.is_busy()):
            raise LaunchError("the server has ended, so no trainer is started again")
        number = next_signal(min(group.next_step() for group in groups) - time.monotonic())
        if front is not None and is_aborted_by_mpirun(number, front):
            report_failure(server, trainers, grace_s if number == ABORTED else min(1, grace_s))
        if number in ENDING or number == END_NOW:
            end(trainers_of(groups), grace_s, number if number in ENDING else signal.SIGTERM)
            return exit_status(next(iter(failures(trainers)), 0)), True
        if number in PASSED_ON:
            send(trainers, number)


def is_aborted_by_mpirun(number, front):
    """mpirun ends this rank because another has failed."""
    return number == ABORTED or parent_of(os.getppid()) != front


def wait_for_abort(front):
    """A trainer that ended with a status may only have missed one that was killed on another node. mpirun
    reports the rank that ends first, and that is to be the other one."""
    deadline = time.monotonic() + ABORT_WAIT_S
    number = None
    while not is_aborted_by_mpirun(number, front) and time.monotonic() < deadline:
        number = next_signal(deadline - time.monotonic())
        if number in ENDING or number == END_NOW:
            return


def report_failure(server, trainers, grace_s):
    """Let trainers hear from their server that another node's part of the job has failed, and end. mpirun
    leaves them a second: it kills the front then, which ends the waiting."""
    deadline = time.monotonic() + grace_s
    send([server], JOB_FAILED)
    while any(is_running(trainer) for trainer in trainers):
        if next_signal(deadline - time.monotonic()) in (None, *URGENT, END_NOW):
            return


def first_failure(failed, trainers, grace_s):
    """Returns the first failure, and ends the others. A trainer that was killed is missed by its siblings, whose
    own ends are seen with it, or even before the kernel has cleared it away."""
    if min(failed) > 0 and not end(trainers, grace_s):
        failed += [code for code in failures(trainers) if code == -signal.SIGKILL]
    return min(failed) if min(failed) < 0 else failed[0]
