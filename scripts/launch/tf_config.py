"""The tasks of TF_CONFIG's cluster."""

import json
import os
import shutil

from .channel import find_calls
from .job import LAUNCH_SECRET, is_here

# The types of tasks in TF_CONFIG; an evaluator is not part of the cluster.
TF_KINDS = ("chief", "master", "worker", "ps", "evaluator")


def tf_tasks():
    """Returns the tasks with input in TF_CONFIG's cluster, and this task's (type, index) or None."""
    config = tf_config()
    if not config.get("cluster") or not config.get("task"):
        return (), None
    cluster = config["cluster"]
    kinds = ["chief", "master", "worker"]
    tasks = tuple((kind, i) for kind in kinds for i in range(len(tf_addresses(cluster, kind))))
    return tasks, tf_role(cluster, config["task"])


def tf_config():
    try:
        config = json.loads(os.environ.get("TF_CONFIG") or "{}")
    except ValueError as error:
        raise ValueError(f"TF_CONFIG is not JSON: {error}") from error
    if not isinstance(config, dict) or not all(
            isinstance(config.get(part) or {}, dict) for part in ("cluster", "task")):
        raise ValueError('TF_CONFIG is not a cluster and a task: {"cluster": {"worker": '
                         '["HOST:PORT", ...]}, "task": {"type": "worker", "index": 0}}')
    return config


def tf_addresses(cluster, kind):
    """Returns HOST:PORT of each task of a kind."""
    addresses = cluster.get(kind, [])
    if not isinstance(addresses, list) or not all(
            isinstance(text, str) and all(text.rpartition(":")[::2]) for text in addresses):
        raise ValueError(f"TF_CONFIG: cluster.{kind} is not a list of HOST:PORT: {addresses}")
    return addresses


def tf_host(address):
    return address.rpartition(":")[0].strip("[]")


def tf_role(cluster, task):
    """Returns this task's (type, index)."""
    kind, index = task.get("type"), str(task.get("index"))
    if kind not in TF_KINDS:
        kinds = ", ".join(TF_KINDS)
        raise ValueError(f"TF_CONFIG: the task's type is one of {kinds}, not '{kind}'")
    if not (index.isascii() and index.isdigit()):
        raise ValueError(f"TF_CONFIG: the task's index is a number from 0, not '{index}'")
    count = len(tf_addresses(cluster, kind))
    if int(index) >= count and (count > 0 or kind != "evaluator"):
        raise ValueError(f"TF_CONFIG: the task is {kind} {index}, but the cluster has {count or 'no'} "
                         f"{kind}{'' if count == 1 else 's'}{', counted from 0' if count else ''}")
    return kind, int(index)


def tf_calls(options, cluster, hosts, at):
    """How the launchers of the tasks on these hosts reach each other; hosts[at] is this task's."""
    is_called = hosts[at] not in hosts[:at]  # others of the host come with the first
    calls = find_calls(options, cluster, hosts[at] if at > 0 and is_called else "")
    if at > 0 or calls is not None or "SLURM_JOB_ID" in os.environ or \
            "OMPI_MCA_plm_rsh_agent" in os.environ or shutil.which("ssh") or shutil.which("rsh"):
        return calls
    if any(host != hosts[0] and not is_here(host) for host in hosts):
        raise ValueError("TF_CONFIG has tasks on other hosts, and there is no ssh: give all launchers "
                         f"one secret, in ${LAUNCH_SECRET} or --secret-file, by which this one may "
                         "start them")
    return None


def tf_nodes(options, tasks, role):
    cluster = tf_config()["cluster"]
    if role[0] == "evaluator" or (role in tasks and (len(tasks) == 1 or "ps" in cluster)):
        return {"nodes": 1, **tf_sharing(cluster, role)}
    if role not in tasks:
        return {"nodes": 1, "replicas": 1, "input": False}
    hosts = tuple(tf_host(cluster[kind][index]) for kind, index in tasks)
    calls = tf_calls(options, cluster, hosts, tasks.index(role))
    if role != tasks[0]:
        return {"nodes": 1, "idle": True, "task": "-".join(map(str, role)), "calls": calls}
    nodes = tf_by_host(tasks, hosts, options.replicas)
    return {"nodes": len(nodes), "hosts": tuple(host for host, _ in nodes) if len(nodes) > 1 else (),
            "tasks": tuple(tuple(tasks) for _, tasks in nodes), "calls": calls}


def tf_by_host(tasks, hosts, replicas):
    """Returns each node's host and tasks. The tasks of a host are one node if every host has as many
    and `replicas`, the trainers of a node, is a multiple of them. Else each task is a node by itself."""
    shared = {}
    for task, host in zip(tasks, hosts):
        shared.setdefault(host, []).append(task)
    counts = {len(tasks) for tasks in shared.values()}
    if len(counts) == 1 and replicas and replicas % min(counts) == 0:
        return list(shared.items())
    return [(host, [task]) for task, host in zip(tasks, hosts)]


def tf_sharing(cluster, role):
    """Some fields of Job, for a worker that is not the only one on its host."""
    hosts = [tf_host(address) for address in tf_addresses(cluster, "worker")]
    if role[0] != "worker" or hosts.count(hosts[role[1]]) == 1:
        return {}
    others = [i for i, host in enumerate(hosts) if host == hosts[role[1]] and i != role[1]]
    return {"task": f"worker-{role[1]}", "workers": (role[1], *others)}
