"""A cluster of Slurm on this machine: its daemons, and nodes that a test kills and boots.

Ports, sockets, keys and spools are its own. All that runs in it ends with it: what outlives its parent is
adopted by the test, and so is found.
"""

import contextlib
import ctypes
import getpass
import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

DEADLINE_S = int(os.environ.get("TUNDISH_TEST_DEADLINE_S", "600"))
PR_SET_CHILD_SUBREAPER = 36
PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "srun", "scontrol", "squeue", "scancel")
NODES = ("n1", "n2")
# A job that goes back into the queue waits until its credential has expired: 5 s is the least that there is.
_SETTINGS = """\
ClusterName=tundish
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket,cred_expire=5
SlurmctldPidFile={folder}/slurmctld.pid
SlurmctldLogFile={folder}/slurmctld.log
StateSaveLocation={folder}/state
SlurmdPidFile={folder}/%n/pid
SlurmdLogFile={folder}/%n/log
SlurmdSpoolDir={folder}/%n
TmpFS={folder}/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SlurmdParameters=config_overrides
MpiDefault=none
SchedulerParameters=sched_interval=1,batch_sched_delay=0
ReturnToService=2
SlurmdTimeout={deadline}
KillWait=5
JobRequeue=1
Prolog={folder}/prolog
Epilog={folder}/epilog
PrologFlags=Alloc
{nodes}PartitionName=clicks Nodes=ALL Default=YES
"""


def needs_slurm():
    path = f"{os.environ['PATH']}:/usr/sbin:/sbin"  # where the daemons are
    os.environ["PATH"] = path
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        raise unittest.SkipTest(f"{', '.join(missing)}: not installed; scripts/setup --packaging installs "
                                "slurmctld, slurmd, slurm-client and munge")


class Cluster:
    def __init__(self):
        self.path = Path(tempfile.mkdtemp(prefix="tundish-slurm-", dir="/tmp"))  # sockets have short names
        self.log = open(self.path / "log", "wb")
        self.daemons = {}
        self.environment = dict(os.environ, SLURM_CONF=str(self.path / "slurm.conf"))
        ctypes.CDLL(None).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def _start(self):
        (self.path / "state").mkdir()
        for hook in ("prolog", "epilog"):
            self.hook(hook, "#!/bin/sh\n")
        ports = free_ports(1 + len(NODES))
        host = socket.gethostname().split(".")[0]
        lines = (
            f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} CPUs=4 RealMemory=100000\n"
            for name, port in zip(NODES, ports[1:])
        )
        text = _SETTINGS.format(host=host, port=ports[0], user=getpass.getuser(), folder=self.path,
                                deadline=DEADLINE_S, nodes="".join(lines))  # fmt: skip
        (self.path / "slurm.conf").write_text(text)
        self._start_munge()
        self._daemon("slurmctld", "slurmctld", "-D")
        for name in NODES:
            self.boot(name)

    def _start_munge(self):
        key = self.path / "munge.key"
        key.touch(0o600)
        key.write_bytes(secrets.token_bytes(1024))
        files = {name: f"{self.path}/munge.{name}" for name in ("socket", "pid", "log", "seed")}
        options = [f"--{name}{'' if name == 'socket' else '-file'}={path}" for name, path in files.items()]
        self._daemon("munged", "munged", "--foreground", "--force", f"--key-file={key}", *options)
        self.wait_until("munged listens", lambda: Path(files["socket"]).exists())

    def _daemon(self, name, *command):
        """Each has a folder of its own, by which it and its steps are known."""
        folder = self.path / name
        folder.mkdir(exist_ok=True)
        self.daemons[name] = subprocess.Popen(
            command, cwd=folder, env=self.environment, stdin=subprocess.DEVNULL, stdout=self.log, stderr=self.log
        )

    def hook(self, name, text):
        """Make `text` the prolog or the epilog of the jobs that start from now on."""
        new = self.path / f"{name}.new"
        new.write_text(text)
        new.chmod(0o755)
        new.rename(self.path / name)

    def boot(self, node):
        """With nothing that it had before, as what it keeps in /tmp."""
        shutil.rmtree(self.path / node, ignore_errors=True)
        self._daemon(node, "slurmd", "-D", "-N", node)
        self.wait_until(f"{node} is idle", lambda: self.state(node) == "IDLE")

    def kill(self, node):
        """As if its power had failed: nothing of it says goodbye. Slurm is told that it is down."""
        gone = self._processes_of(node)
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in gone:
                send(process, number)
        self.daemons.pop(node).wait()
        self.wait_until(f"{node} is gone", lambda: not any(map(is_alive, gone)))

    def declare_down(self, node):
        """Slurm would find it out after SlurmdTimeout."""
        self.said("scontrol", "update", f"nodename={node}", "state=down", "reason=killed")

    def _processes_of(self, node):
        """Its slurmd, the managers of its job steps, which work in its folder, and all that they started."""
        roots = [self.daemons[node].pid]
        roots += [process for process in children(os.getpid()) if folder_of(process) == self.path / node]
        return [process for root in roots for process in (root, *descendants(root))]

    def left(self):
        """The commands of all that runs here and is not a daemon, or slurmctld's own."""
        daemons = {daemon.pid for daemon in self.daemons.values()}
        daemons.update(descendants(self.daemons["slurmctld"].pid))
        running = [process for process in descendants(os.getpid()) if is_alive(process)]
        return [command_of(process) for process in running if process not in daemons]

    def said(self, *command):
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, timeout=DEADLINE_S)
        if done.returncode:
            raise AssertionError(f"status {done.returncode} of {' '.join(command)}: {done.stderr}")
        return done.stdout.strip()

    def state(self, node):
        done = subprocess.run(
            ["scontrol", "show", "node", node], env=self.environment, capture_output=True, text=True
        )
        return field(done.stdout, "State").partition("+")[0]

    def job(self, number, name="JobState"):
        return field(self.said("scontrol", "show", "job", number), name)

    def submit(self, script, folder, *options, **environment):
        command = ["sbatch", "--parsable", f"--output={folder}/job.log", *options, str(script)]
        done = subprocess.run(command, env={**self.environment, **environment}, cwd=folder, capture_output=True,
                              text=True, timeout=DEADLINE_S)  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    def wait_until(self, what, is_so):
        deadline = time.monotonic() + DEADLINE_S
        while not is_so():
            ended = [name for name, daemon in self.daemons.items() if daemon.poll() is not None]
            if ended or time.monotonic() > deadline:
                log = (self.path / "log").read_text(errors="replace")[-3000:]
                raise AssertionError(f"waited for: {what}; ended: {ended}\n{log}")
            time.sleep(0.05)

    def stop(self):
        """All that this process has started and adopted is the cluster's."""
        for daemon in self.daemons.values():
            daemon.terminate()
        while own := children(os.getpid()):
            for process in [*descendants(os.getpid())]:
                send(process, signal.SIGKILL)
            for process in own:
                with contextlib.suppress(ChildProcessError):
                    os.waitpid(process, 0)
        for daemon in self.daemons.values():
            daemon.returncode = 0  # has been waited for
        self.log.close()
        shutil.rmtree(self.path)


def free_ports(count):
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("", 0))
        return [probe.getsockname()[1] for probe in probes]


def field(text, name):
    """The value of NAME=VALUE in what scontrol shows; "" if it is not there."""
    found = [word.partition("=")[2] for word in text.split() if word.startswith(f"{name}=")]
    return found[0] if found else ""


def children(process):
    try:
        threads = list(Path(f"/proc/{process}/task").iterdir())
        return [int(child) for thread in threads for child in (thread / "children").read_text().split()]
    except OSError:
        return []


def descendants(process):
    found = children(process)
    return found + [further for child in found for further in descendants(child)]


def folder_of(process):
    try:
        return Path(os.readlink(f"/proc/{process}/cwd"))
    except OSError:
        return Path("/")


def command_of(process):
    try:
        return Path(f"/proc/{process}/cmdline").read_bytes().replace(b"\0", b" ").decode()
    except OSError:
        return ""


def is_alive(process):
    try:
        return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


def send(process, number):
    with contextlib.suppress(ProcessLookupError):
        os.kill(process, number)
