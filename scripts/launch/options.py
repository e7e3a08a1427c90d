"""The command line, and where the job runs."""

import argparse
import os
from pathlib import Path

from .channel import CALL_PORT
from .job import HELPERS, HELPER_KEY, LAUNCH_SECRET, PROGRAM, Job, free_port
from .mpi import is_rank, node_on_host, rank_count, tasks_of_ranks
from .processes import output_of
from .shared import meeting_file
from .slurm import slurm_nodes, srun_tasks
from .tf_config import tf_nodes, tf_tasks

DESCRIPTION = """Serve a pipeline file and run a trainer for each replica, on one node or on many.

tundish-launch starts `tundish serve FILE` and then N trainers. They find the server through
TUNDISH_SERVER, TUNDISH_STREAM and TUNDISH_REPLICA. RANK, LOCAL_RANK, WORLD_SIZE, LOCAL_WORLD_SIZE,
GROUP_RANK, MASTER_ADDR and MASTER_PORT are set as torchrun sets them. N must equal the number in
FILE's `distribute: {replicas: N}`. Any number of trainers can read a queue, a broadcast (each trainer
is a group) and evaluations. With `from_function: true` and without replicas, each trainer has a
session of its own (TUNDISH_SESSION), and N is free too. tundish-admin runs beside each server and
prints the address of its page. Options that are not listed here go to `tundish serve`.

Several nodes: --nodes a:4,b:4 starts a server and four trainers on each through mpirun (--nodes 2:
two servers on this machine). Inside a Slurm allocation of several nodes tundish-launch uses srun, or
mpirun if srun lacks pmix, or if SLURM_MPI_TYPE names another (none); sbatch --ntasks-per-node is then
the number of trainers on each node, if --replicas is not given. A process that is already a rank, of
`mpirun -n 2 tundish-launch ...` or of srun with one task a node, runs its node's part.

--helpers c,d starts a helper (`tundish helper`) on each of these hosts, through mpirun or srun, and
--helpers N starts N on this machine, or in a Slurm allocation on its last N nodes, which then have no
trainers. Servers whose trainers wait have helpers make parts of their batches. A helper that ends is
started again, and the job does not depend on it.

With TF_CONFIG the launcher of the chief (or worker 0) starts chief and workers through mpirun. The
launchers of the other tasks stay as long as their trainers and exit with their status. Tasks of one
host share a server, as its replicas, if --replicas is a multiple of their number on each host.
Otherwise each task has a server of its own, as each of TensorFlow's workers has its own pipeline. An
evaluator has a server of its own, and so has the chief beside parameter servers; ps gets none.
Workers beside parameter servers that TF_CONFIG places on one host share the server of the first that
starts. Its launcher stays until the last worker has ended, or for 30 s if not all have started. Each
row of a queue goes to one of these workers; otherwise each has a session of its own.

Hosts may be unable to reach each other by ssh, as in Kubernetes, or srun may start a launcher on each
node without PMI (--mpi=none). Then give the launchers of a TF_CONFIG, or of an srun, a secret of at
least 16 bytes: in TUNDISH_LAUNCH_SECRET, or in the FILE of --secret-file, which other users must not
be able to read. The first task's launcher then calls the launcher of each other host at --call-port
(29600) and hands mpirun's command over. Each side proves by HMAC-SHA256 that it knows the secret,
which is never sent, and only mpirun's daemon can be run this way. Without a secret no launcher
listens. Trainers do not get the secret. These messages are not encrypted, nor are MPI's own: use a
network that belongs to the job.

Signals are passed on to the trainers. Trainers that have not ended after the grace period, or when a
second signal comes that is not SIGHUP, are killed. Under nohup, SIGHUP is ignored. The first failure ends the job and sets its exit status, unless
--max-restarts allows a restart. A trainer that fails is started again after a delay that doubles each
time, up to 8 s. Replicas of one group are ended and started again together. The server gives their
successors the batches that were not released, if they attach within `deliver: {rejoin: 30s}`.
TORCHELASTIC_RESTART_COUNT holds the number of restarts. A group of several nodes is ended and started
again on all of them, at the first step that one of its replicas has not released; the servers stay.
If the launcher ends for any reason, SIGKILL included, all processes that it started end too.
"""


def make_parser():
    parser = argparse.ArgumentParser(
        usage="%(prog)s FILE --replicas N [OPTION ...] -- TRAINER [ARGUMENT ...]",
        description=DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("file", metavar="FILE", help="the pipeline file")
    parser.add_argument("--replicas", type=int, metavar="N", help="trainers to run on each node")
    parser.add_argument("--nodes", metavar="LIST", help="HOST:N,HOST:N ... with N trainers on each")
    parser.add_argument("--helpers", metavar="LIST", help="HOST,HOST ..., or a number: helpers, which make "
                        "parts of batches")
    parser.add_argument("--stream", metavar="S", help="the stream to read, if FILE has several")
    parser.add_argument("--grace", type=float, default=10, metavar="S",
                        help="seconds that trainers have to end before they are killed (10)")
    parser.add_argument("--max-restarts", type=int, default=0, metavar="N",
                        help="restarts of each trainer or group that fails (0)")
    parser.add_argument("--secret-file", metavar="FILE", help="a file with the secret that launchers "
                        "of several hosts without ssh share, instead of $" + LAUNCH_SECRET)
    parser.add_argument("--call-port", type=int, default=CALL_PORT, metavar="PORT",
                        help=f"the port where such launchers listen ({CALL_PORT})")
    parser.add_argument("--tundish", metavar="PROGRAM",
                        help="the server to run (default: the one beside this launcher)")
    parser.add_argument(
        "--admin",
        metavar="HOST:PORT",
        default="127.0.0.1:0",
        help="where tundish-admin listens (a free port of loopback); nodes on one host count up "
        "from PORT; none: it is not started",
    )
    return parser


def parse_arguments(arguments):
    parser = make_parser()
    own, trainer = arguments, []
    if "--" in arguments:
        border = arguments.index("--")
        own, trainer = arguments[:border], arguments[border + 1 :]
    options, for_server = parser.parse_known_args(own)
    if not trainer:
        parser.error("the trainer's command is missing: end with -- TRAINER [ARGUMENT ...]")
    try:
        where = find_nodes(options)
        where["helpers"] = find_helpers(options, where)
    except ValueError as error:
        parser.error(str(error))
    os.environ.pop(LAUNCH_SECRET, None)  # it is not for those that are started
    replicas = where.pop("replicas", None) or options.replicas
    if replicas is None or replicas < 1:
        parser.error("--replicas must be at least 1, or said in --nodes, or by sbatch --ntasks-per-node")
    if where.get("task") or where.get("tasks"):
        where["meeting"] = meeting_file(options, for_server)
    if options.max_restarts < 0:
        parser.error("--max-restarts must be at least 0")
    program = options.tundish or find_tundish()
    server = [program, "serve", options.file, *for_server]
    if where["nodes"] > 1 or "SLURM_NTASKS" in os.environ:
        server += ["--expect-nodes", str(where["nodes"])]
    only = f"{options.stream}=" if options.stream is not None else ""
    server += ["--expect-trainers", f"{only}{replicas}"]
    return Job(
        server=server if where.pop("input", True) else [],
        trainer=trainer,
        replicas=replicas,
        stream=options.stream,
        grace_s=options.grace,
        restarts=options.max_restarts,
        admin=admin_command(program, options.admin),
        again=command_for_ranks(options, replicas, for_server, trainer),
        port=free_port(),
        helper=helper_command(program, options.file, for_server),
        **where,
    )


def command_for_ranks(options, replicas, for_server, trainer):
    command = [str(PROGRAM), options.file, "--replicas", str(replicas)]
    for name in ("stream", "grace", "max_restarts", "tundish", "admin"):
        if getattr(options, name) is not None:
            command += [f"--{name.replace('_', '-')}", str(getattr(options, name))]
    return (*command, *for_server, "--", *trainer)


def find_nodes(options):
    """The nodes, and who starts them: some fields of Job."""
    tasks, role = tf_tasks()
    if is_rank():
        count = rank_count()
        return {"nodes": count, "tasks": tasks_of_ranks(tasks, count)}
    if options.nodes is not None:
        hosts, replicas = parse_nodes(options.nodes)
        if replicas and options.replicas not in (None, replicas):
            raise ValueError(f"--replicas {options.replicas}, but --nodes says {replicas}")
        return {"nodes": len(hosts), "replicas": replicas, "hosts": hosts if len(hosts) > 1 else ()}
    if role is not None:
        return tf_nodes(options, tasks, role)
    return srun_tasks(options) or slurm_nodes(options)


def find_helpers(options, where):
    """Returns the hosts of helpers, and takes them from the nodes of a Slurm allocation."""
    if options.helpers is None:
        return ()
    if is_rank() or where.get("tasks") or where.get("task"):
        raise ValueError("--helpers goes with --nodes, one node, or a Slurm allocation. Elsewhere start "
                         f"`tundish helper` where they are to be, and set {HELPERS} and {HELPER_KEY}")
    count = int(options.helpers) if options.helpers.isdigit() else None
    named = tuple(options.helpers.split(","))
    if "SLURM_JOB_ID" not in os.environ or options.nodes is not None:
        return named if count is None else ("localhost",) * count
    hosts = output_of("scontrol", "show", "hostnames").split()
    helpers = named if count is None else tuple(hosts[len(hosts) - count:])
    rest = tuple(host for host in hosts if host not in helpers)
    if not helpers or not rest or len(rest) + len(helpers) != len(hosts):
        raise ValueError(f"--helpers {options.helpers} leaves no nodes, or names others, of this "
                         f"allocation: {' '.join(hosts)}")
    where["nodes"] = len(rest)
    if not where.get("by_srun"):
        where["hosts"] = rest if len(rest) > 1 else ()
    return helpers


def helper_command(program, file, for_server):
    """The command of a helper that finds the same files as the servers."""
    command = [program, "helper", file, "--ready-fd", "1"]
    for option, value in zip(for_server, [*for_server[1:], ""]):
        name, _, told = option.partition("=")
        if name in ("--root", "--cache", "--analysis"):
            command += [name, told or value]
    return tuple(command)


def parse_nodes(text):
    """HOST[:N],... or a number. Returns the hosts, and N or None."""
    if text.isdigit():
        return ("localhost",) * int(text), None
    hosts, counts = [], set()
    for item in text.split(","):
        host, _, count = item.partition(":")
        if not host or (count and not count.isdigit()):
            raise ValueError(f"--nodes wants HOST:TRAINERS,..., not '{item}'")
        hosts.append(host)
        counts.add(int(count) if count else None)
    if len(counts) != 1:
        raise ValueError(f"every node needs as many trainers as the others, unlike in '{text}'")
    return tuple(hosts), counts.pop()


def find_tundish():
    """Returns the server of $TUNDISH_BUILD, of this installation, of this source tree, or of PATH."""
    here = PROGRAM.parent
    candidates = [here / "tundish", here.parent / "build" / "server" / "tundish"]
    if os.environ.get("TUNDISH_BUILD"):
        candidates.insert(0, Path(os.environ["TUNDISH_BUILD"], "server", "tundish").resolve())
    for candidate in candidates:
        if candidate.is_file() and os.access(candidate, os.X_OK):
            return str(candidate)
    return "tundish"


def admin_command(server, address):
    """Returns the command of the admin that is installed or built beside the server."""
    here = Path(server).parent
    for program in (here / "tundish-admin", here.parent / "admin" / "tundish-admin"):
        if address != "none" and program.is_file() and os.access(program, os.X_OK):
            return (str(program), "--listen", admin_address(address))
    return ()


def admin_address(address):
    """The address of this node's admin: nodes that share a host count up from the given port."""
    host, _, port = address.rpartition(":")
    if not port.isdigit() or int(port) == 0:
        return address
    return f"{host}:{int(port) + node_on_host()}"
