"""A node's server with its trainers, run to the end."""

import contextlib
import math
import os
import select
import shutil
import signal

from .channel import ControlSocket
from .job import LATE_WORKERS_S
from .mpi import is_mpirun_rank, rank_descriptor
from .processes import (
    ABORTED, ENDING, END_NOW, LaunchError, PASSED_ON, end, exit_status, next_signal, say, start,
)
from .restarts import RestartBarrier, TrainerGroup, trainers_of
from .shared import SharedServer, TrainerRegistry
from .trainers import make_groups, report_result, supervise, trainer_variables


def run_registered(job, node, folder, front):
    """run_node, with an Attendance for each other launcher whose task runs here."""
    tasks = job.tasks[node] if node < len(job.tasks) else ()
    registries = [TrainerRegistry(f"{job.meeting}.{kind}-{index}") for kind, index in tasks
             if (kind, index) != job.tasks[0][0]]
    for registry in registries:
        registry.begin(front)
    status = 1
    try:
        status = run_node(job, node, folder, front)
        return status
    finally:
        for registry in registries:
            registry.end(front, status)


def wait_for_trainers(job):
    """Stay as long as the trainers of a task that the first task's launcher starts. Returns their
    exit status."""
    registry = TrainerRegistry(f"{job.meeting}.{job.task}")
    control = ControlSocket(job.calls) if job.calls is not None and job.calls.host else None
    say("the first task's launcher (the chief's, or worker 0's) starts this task: waits for it"
        + (f" to call at port {job.calls.port}" if control is not None else ""))
    try:
        return follow_trainers(registry, control)
    finally:
        if control is not None:
            control.end(job.grace_s)


def follow_trainers(registry, control):
    """Pass signals on to the trainers until they have ended. Returns their exit status."""
    was_there = False
    while True:
        is_finished = control is not None and control.look()
        process, status = registry.look()
        if status is not None:
            return status
        if was_there and process is None:
            raise LaunchError("this task's trainers were killed with the launcher that ran them")
        if is_finished and process is None:
            raise LaunchError("the first task's launcher has ended this task before its trainers began")
        was_there = process is not None
        number = next_signal(timeout_s=0.05)
        if number in PASSED_ON or number == END_NOW:
            if process is not None:
                with contextlib.suppress(ProcessLookupError):  # it may be ending
                    os.kill(process, END_NOW if number == ABORTED else number)
            elif number in ENDING or number == END_NOW:
                if control is not None:
                    control.disconnect()
                return 128 + number


def run_node(job, node, folder, front):
    """Run one node's server and trainers to the end. Returns an exit status."""
    if not job.server:
        return run_alone(job)
    shared = SharedServer(job.meeting, job.workers) if job.workers else None
    if shared is not None and not shared.enter():
        return run_readers(job, node, *shared.words())
    if shutil.which(job.trainer[0]) is None:  # said before a server has read anything
        raise LaunchError(f"cannot run {job.trainer[0]}: there is no such program, or it may not be executed", 127)
    path = os.path.join(folder, "server")
    ready, announce = os.pipe()
    barrier = RestartBarrier(job.nodes) if job.nodes > 1 and job.restarts > 0 else None
    command, descriptors = [*job.server, "--socket", path, "--ready-fd", str(announce)], [announce]
    if barrier is not None:
        command += ["--crew-fd", str(barrier.servers.fileno())]
        descriptors.append(barrier.servers.fileno())
    server = start(command, dict(os.environ), signal.SIGTERM, pass_fds=[*descriptors, *rank_descriptor()])
    os.close(announce)
    if barrier is not None:
        barrier.servers.close()
    groups = []
    admins = []  # its failure does not end the job
    result, asked = 1, True
    try:
        relation = wait_until_ready(server, ready)
        groups = make_groups(job, node, path, relation, barrier)
        if shared is not None:
            shared.open_to_others(relation, path)
        if job.admin:
            admins = [start([*job.admin, "--socket", path], dict(os.environ), signal.SIGTERM)]
        for group in groups:
            group.start()
        result, asked = supervise(server, groups, job.grace_s, front if is_mpirun_rank(job) else None)
        report_result(job, node, server, groups, result)
        return result
    finally:
        end(trainers_of(groups), job.grace_s)
        if shared is not None:
            shared.leave(server, LATE_WORKERS_S if result == 0 else 0, asked)
        end(admins, job.grace_s)
        end([server], server_grace(job, result))


def run_readers(job, node, relation, path):
    """Run trainers that read from a server which another launcher has started."""
    groups = make_groups(job, node, path, relation)
    try:
        for group in groups:
            group.start()
        result, _ = supervise(None, groups, job.grace_s)
        report_result(job, node, None, groups, result)
        return result
    finally:
        end(trainers_of(groups), job.grace_s)


def server_grace(job, result):
    """The servers of several nodes end together: one waits for the others. But if a node fails, the
    others must learn of it soon."""
    if job.nodes == 1:
        return job.grace_s
    return math.inf if result == 0 else min(1, job.grace_s)


def run_alone(job):
    """Run the command of a task without input to its end."""
    def launch(*_):
        return start(job.trainer, trainer_variables(os.environ), signal.SIGKILL)

    group = TrainerGroup(launch, range(1), job.grace_s)
    try:
        group.start()
        return supervise(group.processes[0], [group], job.grace_s)[0]
    finally:
        end(group.processes, job.grace_s)


def wait_until_ready(server, announcement):
    """Wait without a limit: the user sees that the server runs, and can stop it. Returns the relation
    between the trainers."""
    with open(announcement, encoding="utf-8") as pipe:
        while not select.select([pipe], [], [], 0)[0]:
            number = next_signal(timeout_s=0.02)
            if number in ENDING or number == END_NOW:
                raise LaunchError("stopped before the server was ready", 128 + number)
        words = pipe.readline().split()
        if not words:  # it has closed the pipe, so it has ended or is about to
            raise LaunchError("the server did not start", exit_status(server.wait()) or 1)
        return words[-1]
