"""The job, and names that all modules share."""

import socket
import sys
from dataclasses import dataclass
from pathlib import Path

PROGRAM = Path(sys.argv[0]).resolve()  # runs on the nodes too, as mpirun's remote shell, and beside helpers

# Variables that mark a process as a rank. A trainer does not get them, though it may use MPI itself.
MPI_VARIABLES = ("OMPI_", "PMIX_", "PMI_", "ORTE_", "PRTE_")
LAUNCH_FOLDER = "TUNDISH_LAUNCH_FOLDER"
LAUNCH_SECRET = "TUNDISH_LAUNCH_SECRET"
LAUNCH_TASKS = "TUNDISH_LAUNCH_TASKS"
LAUNCH_COMMANDS = "TUNDISH_LAUNCH_ORDERS"
HELPERS = "TUNDISH_HELPERS"
HELPER_KEY = "TUNDISH_HELPER_KEY"
LATE_WORKERS_S = 30  # the wait for other workers of this host: alone they would read all rows again


@dataclass(frozen=True)
class Calls:
    """How launchers of a job reach each other without ssh."""

    secret: bytes
    job: str  # a digest; another job with the same secret refuses this one's calls
    port: int
    host: str = ""  # the address to listen on; "": this launcher does not listen


@dataclass(frozen=True)
class Job:
    """The job to run; the same on every node."""

    server: list  # the command, but for --socket
    trainer: list
    replicas: int  # on each node
    nodes: int
    stream: str | None
    grace_s: float
    restarts: int = 0  # of each trainer, or group
    admin: tuple = ()  # its command, but for --socket; (): no admin runs
    hosts: tuple = ()  # the hosts of several nodes that are started from here
    by_srun: bool = False
    tasks: tuple = ()  # for each node the tasks of TF_CONFIG's cluster, or of srun, that it runs
    again: tuple = ()  # the command of this launcher, to run on the nodes
    port: int = 0  # MASTER_PORT of the trainers of one node
    task: str = ""  # the name of a worker that shares a server with others of its host
    workers: tuple = ()  # the indexes of all such workers, this one first
    meeting: str = ""  # the file through which launchers of a cluster find each other
    idle: bool = False  # another launcher starts this task's trainers
    calls: Calls | None = None
    helper: tuple = ()  # the command of a helper, but for --listen
    helpers: tuple = ()  # the hosts of helpers

    @property
    def world_size(self):
        return self.nodes * self.replicas


def is_here(host):
    return host in ("localhost", "127.0.0.1", "::1", socket.gethostname())


def free_port():
    with socket.socket() as probe:
        probe.bind(("", 0))
        return probe.getsockname()[1]
