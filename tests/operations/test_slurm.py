"""Jobs in a real Slurm of two nodes on this machine: the job file, prolog and epilog of admin/slurm."""

import json
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from cluster import Cluster, needs_slurm

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TUNDISH_BUILD", REPOSITORY / "build"))
EXAMPLES = REPOSITORY / "admin" / "slurm"
sys.path.insert(0, str(REPOSITORY / "scripts"))
from testing import frameworks  # noqa: E402

PYTHON = frameworks.machines_own()
ROWS, BATCH = 4000, 20
TRAINERS = 4
GATE, SAVED = 12, 10  # the step where trainers wait for the test, and the one that they have saved before
CLICKS = f"""\
seed: 1
streams:
  train:
    dataset: [range: {ROWS}, shuffle: {{buffer_size: 100, seed: 7}}, batch: {BATCH}]
    distribute: {{replicas: 2}}
    deliver: {{epochs: 1}}
"""
PMIX, MPIRUN = "pmix", "none"


def setUpModule():
    needs_slurm()
    if not (BUILD / "server" / "tundish-mpi.so").exists():
        raise unittest.SkipTest("this build has no MPI")
    if subprocess.call([PYTHON, "-c", "import numpy"], stderr=subprocess.DEVNULL):
        raise unittest.SkipTest(f"{PYTHON} has no NumPy")


class Job:
    """In a folder of its own, with the programs of this build."""

    def __init__(self, cluster):
        self.cluster = cluster
        self.path = Path(tempfile.mkdtemp(dir=cluster.path))
        (self.path / "clicks.yaml").write_text(CLICKS)
        (self.path / "train.py").symlink_to(Path(__file__).with_name("cluster_trainer.py"))
        (self.path / "checkpoints").mkdir()
        self.programs = self.path / "programs"
        self.programs.mkdir()
        (self.programs / "tundish-launch").symlink_to(REPOSITORY / "scripts" / "tundish-launch")
        (self.programs / "tundish").symlink_to(BUILD / "server" / "tundish")
        self.program("python3", f'exec {PYTHON} "$@"')
        self.environment = {
            "PATH": f"{self.programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(BUILD / "sdk" / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TUNDISH_BUILD": str(BUILD),
            "TMPDIR": str(self.path),
            # The nodes of this cluster have one network, the machine's own.
            "OMPI_MCA_oob_tcp_if_include": "lo",
            "OMPI_MCA_btl_tcp_if_include": "lo",
            "OMPI_MCA_btl": "self,tcp",
        }
        self.number = None

    def program(self, name, text):
        (self.programs / name).write_text(f"#!/bin/sh\n{text}\n")
        (self.programs / name).chmod(0o755)

    def submit(self, *options, script=EXAMPLES / "job.sbatch", **environment):
        self.number = self.cluster.submit(script, self.path, *options, **self.environment, **environment)

    def state(self):
        return self.cluster.job(self.number)

    def restarts(self):
        return int(self.cluster.job(self.number, "Restarts"))

    def log(self):
        return "\n".join(path.read_text(errors="replace") for path in sorted(self.path.glob("*.log")))

    def wait_for(self, name):
        """What each trainer has noted under this name, once all have."""
        files = [self.path / "checkpoints" / f"{name}.{rank}" for rank in range(TRAINERS)]
        self.wait_until(f"{name} of each trainer", lambda: all(file.exists() for file in files))
        return [json.loads(file.read_text()) for file in files]

    def wait_until(self, what, is_so):
        def look():
            if self.state() in ("FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"):
                raise AssertionError(f"the job has failed: {self.log()}")
            return is_so()

        self.cluster.wait_until(what, look)

    def await_state(self, state):
        try:
            self.cluster.wait_until(state, lambda: self.state() == state)
        except AssertionError as error:
            raise AssertionError(f"the job is {self.state()}: {self.log()}") from error


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def job(self, start=PMIX):
        """A job of the job file, once all its trainers stand in the midst of their epoch."""
        job = Job(self.cluster)
        job.submit(SLURM_MPI_TYPE=start, GATE=str(GATE))
        job.wait_for("waits")
        return job

    def jobs(self):
        """The same job file under srun with PMIx and under mpirun, at once."""
        return self.job(PMIX), self.job(MPIRUN)

    def assert_each_row_once(self, job, restarts, begins=0):
        rows = [row for of_one in job.wait_for("all") for row in of_one]
        self.assertEqual(sorted(rows), list(range(ROWS)), job.log())
        job.await_state("COMPLETED")
        self.assertEqual(job.restarts(), restarts, job.log())
        self.assertEqual(job.wait_for("began"), [begins] * TRAINERS)

    def assert_nothing_is_left(self):
        try:
            self.cluster.wait_until("the end of all", lambda: not self.cluster.left())
        except AssertionError as error:
            raise AssertionError(f"left: {self.cluster.left()}") from error


class OfTwoNodes(Jobs):
    """The job file, as it is."""

    def test_a_node_is_lost(self):
        jobs = self.jobs()
        self.cluster.kill("n2")
        self.cluster.declare_down("n2")
        self.cluster.boot("n2")
        for job in jobs:
            self.assert_each_row_once(job, restarts=1, begins=SAVED)
        self.assert_nothing_is_left()

    def test_the_time_is_nearly_over(self):
        jobs = self.jobs()
        for job in jobs:
            self.cluster.said("scancel", "--batch", "--signal=USR1", job.number)  # as --signal=B:USR1@60
        for job in jobs:
            self.assert_each_row_once(job, restarts=1, begins=GATE)
        self.assert_nothing_is_left()

    def test_the_texts_lines_for_launchers_that_srun_starts(self):
        lines = re.search("export SLURM_NTASKS.*\nsrun .*\n", (EXAMPLES / "README.md").read_text())[0]
        job = Job(self.cluster)
        (job.path / "job").write_text(f"#!/bin/sh\n{lines}")
        job.submit("--nodes=2", "--ntasks-per-node=4", script=job.path / "job")
        self.assert_each_row_once(job, restarts=0)

    def test_a_job_step_is_killed(self):
        job = self.job()
        self.cluster.said("scancel", "--signal=KILL", f"{job.number}.0")
        self.assert_each_row_once(job, restarts=1, begins=SAVED)
        self.assertIn("job.sbatch: goes back into the queue (status 137)", job.log())

    def test_a_signal_to_all_processes_is_the_trainers(self):
        job = self.job()
        self.cluster.said("scancel", "--signal=USR1", job.number)  # as --signal=USR1@60
        job.wait_for("signalled")
        self.cluster.said("scancel", "--signal=USR2", job.number)
        self.assert_each_row_once(job, restarts=0)

    def test_a_job_that_is_asked_to_end_saves_and_is_over(self):
        job = self.job()
        self.cluster.said("scancel", "--batch", "--signal=TERM", job.number)
        job.await_state("COMPLETED")
        self.assertEqual(job.restarts(), 0)
        saved = [job.path / "checkpoints" / f"{GATE}.{rank}" for rank in range(TRAINERS)]
        self.assertEqual([path for path in saved if not path.exists()], [])
        self.assert_nothing_is_left()

    def test_a_cancelled_job_is_over(self):
        job = self.job()
        self.cluster.said("scancel", job.number)
        job.await_state("CANCELLED")
        self.assert_nothing_is_left()
        self.assertEqual((job.state(), job.restarts()), ("CANCELLED", 0))

    def test_what_is_refused_does_not_go_back_into_the_queue(self):
        job = Job(self.cluster)
        (job.path / "clicks.yaml").write_text(CLICKS.replace("shuffle", "shufle"))
        job.submit()
        job.await_state("FAILED")
        self.assertIn("clicks.yaml:4", job.log())
        self.assert_nothing_is_left()

    def test_nodes_with_different_versions_are_refused(self):
        job = Job(self.cluster)
        version = re.search(r"version: '([^']+)'", (REPOSITORY / "meson.build").read_text())[1]
        other = version[:-1] + chr(ord(version[-1]) ^ 1)
        program = (BUILD / "server" / "tundish").read_bytes()
        (job.path / "other").write_bytes(program.replace(version.encode() + b"\0", other.encode() + b"\0"))
        (job.path / "other").chmod(0o755)
        (job.path / "tundish-mpi.so").symlink_to(BUILD / "server" / "tundish-mpi.so")
        job.program("tundish-of-node", '[ $SLURM_NODEID = 0 ] || exec ./other "$@"; exec tundish "$@"')
        script = job.path / "two"
        script.write_text(
            "#!/bin/sh\n#SBATCH --nodes=2\n"
            "exec tundish-launch clicks.yaml --replicas 2 --tundish tundish-of-node -- true\n"
        )
        job.submit(script=script)
        job.await_state("FAILED")
        self.assertIn("the version of Tundish", job.log())
        self.assert_nothing_is_left()


SYSTEMCTL = """\
# Stands in for systemd's: the service's files are in one folder, and nothing of it keeps a lock.
cd {folder}
exec 9>&-
echo "$@" >>calls
case $1 in
start)
    [ ! -e server ] || exit 0
    : >server.log
    setsid sh -c '{tundish} serve etc/clicks.yaml --socket {folder}/server; echo ended' >server.log 2>&1 &
    until grep -qE ' ready: |^ended' server.log; do sleep 0.05; done
    ! grep -q ^ended server.log
    ;;
stop) {tundish} stop --socket {folder}/server ;;
esac
"""


class SharedServer(Jobs):
    """Prolog and epilog, and two jobs on a node."""

    def setUp(self):
        self.service = Job(self.cluster)  # its folder is the service's, and its programs are the hooks'
        self.path = self.service.path
        (self.path / "etc").mkdir()
        (self.path / "systemctl").write_text(
            SYSTEMCTL.format(folder=self.path, tundish=BUILD / "server" / "tundish")
        )
        self.service.program("systemctl", f'exec sh {self.path}/systemctl "$@"')
        for hook in ("prolog", "epilog"):
            self.cluster.hook(hook, self.here((EXAMPLES / hook).read_text()))
            self.addCleanup(self.cluster.hook, hook, "#!/bin/sh\n")

    def here(self, text):
        """With folders of this test in place of the system's."""
        for systems, own in (
            ("PATH=/usr/sbin", f"PATH={self.service.programs}:/usr/sbin"),
            ("/etc/tundish", self.path / "etc"),
            ("/run/tundish-jobs", self.path / "jobs"),
            ("/run/tundish/$SLURM_JOB_PARTITION", self.path),
        ):
            text = text.replace(systems, str(own))
        return text

    def submit_both(self):
        jobs = Job(self.cluster), Job(self.cluster)
        for job in jobs:
            job.program("id", "exec /usr/bin/id -u")  # there is no user tundish
            script = job.path / "shared.sbatch"
            script.write_text(self.here((EXAMPLES / "shared.sbatch").read_text()))
            job.submit("--nodelist=n1", script=script)
        return jobs

    def test_jobs_of_a_node_share_it_and_the_last_one_stops_it(self):
        text = CLICKS.replace("{replicas: 2}", "{delivery: broadcast, groups: 2}")
        (self.path / "etc" / "clicks.yaml").write_text(text)
        for job in self.submit_both():
            rows = job.path / "checkpoints" / "all.0"
            job.wait_until("the rows", rows.exists)
            self.assertEqual(sorted(json.loads(rows.read_text())), list(range(ROWS)))
        calls = self.path / "calls"
        self.cluster.wait_until("the stop", lambda: "stop" in calls.read_text())
        self.assertEqual(sorted(calls.read_text().splitlines()),
                         ["start tundish@clicks", "start tundish@clicks", "stop tundish@clicks"])  # fmt: skip
        self.assert_nothing_is_left()

    def test_a_server_that_does_not_start_costs_no_node(self):
        (self.path / "etc" / "clicks.yaml").write_text("streams: {}\n")
        for job in self.submit_both():
            job.await_state("RUNNING")  # its trainer looks for a server
            self.cluster.said("scancel", job.number)
            job.await_state("CANCELLED")
        self.cluster.wait_until("n1 is idle", lambda: self.cluster.state("n1") == "IDLE")


if __name__ == "__main__":
    unittest.main()
