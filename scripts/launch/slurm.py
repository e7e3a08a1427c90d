"""The nodes and tasks of a Slurm allocation."""

import os

from .channel import find_calls
from .job import LAUNCH_SECRET
from .processes import output_of


def slurm_meeting_point():
    """The same for launchers that srun or mpirun has started, which cannot ask each other."""
    nodes = os.environ["SLURM_JOB_NODELIST"]
    if "OMPI_COMM_WORLD_RANK" not in os.environ:
        nodes = os.environ.get("SLURM_STEP_NODELIST", nodes)
    first = output_of("scontrol", "show", "hostnames", nodes).split("\n")[0]
    port = 20000 + int(os.environ["SLURM_JOB_ID"]) % 10000  # below those that the kernel gives out
    return {"MASTER_ADDR": first, "MASTER_PORT": str(port)} if first else {}


def slurm_step():
    return [os.environ.get(name) for name in ("SLURM_JOB_ID", "SLURM_STEP_ID")]


def srun_tasks(options):
    """Some fields of Job, for a launcher that srun has started beside others, without PMI."""
    count, nodes = (int(os.environ.get(name) or 1)
                    for name in ("SLURM_STEP_NUM_TASKS", "SLURM_STEP_NUM_NODES"))
    if count == 1:
        return None
    if count != nodes:
        raise ValueError(f"srun has started {count} launchers on {nodes} node{'s'[:nodes > 1]}, without "
                         "PMI: start one on each (--ntasks-per-node=1), and trainers with --replicas")
    hosts = tuple(output_of("scontrol", "show", "hostnames", os.environ["SLURM_STEP_NODELIST"]).split())
    if len(hosts) != nodes:
        raise ValueError(f"`scontrol show hostnames` does not name the {nodes} hosts of this srun: "
                         f"{' '.join(hosts)}")
    number = int(os.environ["SLURM_PROCID"])
    calls = find_calls(options, slurm_step(), hosts[number] if number > 0 else "")
    if calls is None:
        raise ValueError(f"srun has started {count} launchers without PMI, which do not know of each "
                         f"other: use `srun --mpi=pmix`, or `export {LAUNCH_SECRET}=$(openssl rand -hex "
                         "32)` before, by which the first starts the others' part")
    if number > 0:
        return {"nodes": 1, "idle": True, "task": f"task-{number}", "calls": calls}
    tasks = tuple((("task", i),) for i in range(count))
    return {"nodes": count, "hosts": hosts, "tasks": tasks, "calls": calls}


def slurm_nodes(options):
    """Some fields of Job, for an allocation of several nodes in which nothing else runs yet."""
    nodes = int(os.environ.get("SLURM_JOB_NUM_NODES") or os.environ.get("SLURM_NNODES") or 1)
    if "SLURM_JOB_ID" not in os.environ:
        return {"nodes": 1}
    found = {"nodes": nodes}
    if options.replicas is None:
        found["replicas"] = slurm_replicas()
    if nodes == 1:
        return found
    asked = os.environ.get("SLURM_MPI_TYPE", "pmix")
    if asked.startswith("pmix") and "pmix" in output_of("srun", "--mpi=list"):
        return dict(found, by_srun=True)
    hosts = output_of("scontrol", "show", "hostnames").split()
    return dict(found, hosts=tuple(hosts) if len(hosts) == nodes else ("*",) * nodes)


def slurm_replicas():
    """The tasks that Slurm was asked to run on each node, or None."""
    tasks = os.environ.get("SLURM_NTASKS_PER_NODE", "")
    if tasks.isdigit():
        return int(tasks)
    counts = os.environ.get("SLURM_TASKS_PER_NODE", "")  # "2(x3)", or "2,1" where they differ
    if not os.environ.get("SLURM_NTASKS") or not counts:
        return None
    if "," in counts:
        raise ValueError(f"Slurm would run {counts} tasks on the nodes of this job, and every node needs as "
                         "many trainers as the others: use sbatch --ntasks-per-node, or --replicas")
    return int(counts.partition("(")[0])


def srun_command(job):
    others = [f"--exclude={','.join(job.helpers)}"] if job.helpers else []
    return ["srun", "--mpi=pmix", "--kill-on-bad-exit=1", f"--nodes={job.nodes}",
            f"--ntasks={job.nodes}", "--ntasks-per-node=1", "--cpu-bind=none", *others]
