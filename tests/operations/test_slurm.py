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


class Jobs(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.cluster = Cluster()
        cls.addClassCleanup(cls.cluster.stop)

    def setUp(self):
        self.path = Path(tempfile.mkdtemp(dir=self.cluster.path))
        (self.path / "clicks.yaml").write_text(CLICKS)
        (self.path / "train.py").symlink_to(Path(__file__).with_name("cluster_trainer.py"))
        (self.path / "checkpoints").mkdir()
        programs = self.path / "programs"
        programs.mkdir()
        (programs / "tundish-launch").symlink_to(REPOSITORY / "scripts" / "tundish-launch")
        (programs / "tundish").symlink_to(BUILD / "server" / "tundish")
        (programs / "python3").write_text(f'#!/bin/sh\nexec {PYTHON} "$@"\n')
        (programs / "python3").chmod(0o755)
        self.environment = {
            "PATH": f"{programs}:{os.environ['PATH']}",
            "PYTHONPATH": str(BUILD / "sdk" / "python"),
            "PYTHONDONTWRITEBYTECODE": "1",
            "TUNDISH_BUILD": str(BUILD),
            "TMPDIR": str(self.path),
            # The nodes of this cluster have one network, the machine's own.
            "OMPI_MCA_oob_tcp_if_include": "lo",
            "OMPI_MCA_btl_tcp_if_include": "lo",
            "OMPI_MCA_btl": "self,tcp",
        }

    def submit(self, start=PMIX, *options, script=EXAMPLES / "job.sbatch"):
        self.number = self.cluster.submit(
            script, self.path, *options, **self.environment, SLURM_MPI_TYPE=start, GATE="12"
        )

    def log(self):
        path = self.path / "job.log"
        return path.read_text(errors="replace") if path.exists() else ""

    def wait_for(self, name):
        """Until each trainer has noted this."""
        files = [self.path / "checkpoints" / f"{name}.{rank}" for rank in range(TRAINERS)]
        self.wait_until(f"{name} of each trainer", lambda: all(file.exists() for file in files))
        return [json.loads(file.read_text()) for file in files]

    def wait_until(self, what, is_so):
        def look():
            if self.cluster.job(self.number) in ("FAILED", "TIMEOUT", "CANCELLED", "NODE_FAIL"):
                self.fail(f"the job has failed: {self.log()}")
            return is_so()

        self.cluster.wait_until(what, look)

    def await_state(self, state):
        try:
            self.cluster.wait_until(state, lambda: self.cluster.job(self.number) == state)
        except AssertionError as error:
            raise AssertionError(f"the job is {self.cluster.job(self.number)}: {self.log()}") from error

    def assert_each_row_once(self, restarts):
        rows = [row for of_one in self.wait_for("all") for row in of_one]
        self.assertEqual(sorted(rows), list(range(ROWS)), self.log())
        self.await_state("COMPLETED")
        self.assertEqual(self.cluster.job(self.number, "Restarts"), str(restarts))
        self.assert_nothing_is_left()

    def assert_nothing_is_left(self):
        try:
            self.cluster.wait_until("the end of all", lambda: not self.cluster.left())
        except AssertionError as error:
            raise AssertionError(f"left: {self.cluster.left()}") from error


class OfTwoNodes(Jobs):
    """The job file, as it is."""

    def lose_a_node(self, start):
        self.submit(start)
        self.wait_for("waits")
        self.cluster.kill("n2")
        self.cluster.declare_down("n2")
        self.cluster.boot("n2")
        self.assert_each_row_once(restarts=1)
        self.assertEqual(self.wait_for("began"), [10] * TRAINERS)

    def test_a_node_is_lost_under_pmix(self):
        self.lose_a_node(PMIX)

    def test_a_node_is_lost_under_mpirun(self):
        self.lose_a_node(MPIRUN)

    def run_out_of_time(self, start):
        self.submit(start)
        self.wait_for("waits")
        self.cluster.said("scancel", "--batch", "--signal=USR1", self.number)  # as --signal=B:USR1@60 does
        self.assert_each_row_once(restarts=1)
        self.assertEqual(self.wait_for("began"), [12] * TRAINERS)

    def test_the_time_is_nearly_over_under_pmix(self):
        self.run_out_of_time(PMIX)

    def test_the_time_is_nearly_over_under_mpirun(self):
        self.run_out_of_time(MPIRUN)

    def test_a_job_step_is_killed(self):
        self.submit()
        self.wait_for("waits")
        self.cluster.said("scancel", "--signal=KILL", f"{self.number}.0")
        self.assert_each_row_once(restarts=1)
        self.assertIn("job.sbatch: goes back into the queue (status 137)", self.log())

    def test_a_signal_to_all_processes_is_the_trainers(self):
        self.submit()
        self.wait_for("waits")
        self.cluster.said("scancel", "--signal=USR1", self.number)  # as --signal=USR1@60 does
        self.wait_for("signalled")
        self.cluster.said("scancel", "--signal=USR2", self.number)
        self.assert_each_row_once(restarts=0)

    def test_a_cancelled_job_is_over(self):
        self.submit()
        self.wait_for("waits")
        self.cluster.said("scancel", self.number)
        self.await_state("CANCELLED")
        self.assert_nothing_is_left()
        self.assertEqual(self.cluster.job(self.number, "Restarts"), "0")

    def test_what_is_refused_does_not_go_back_into_the_queue(self):
        (self.path / "clicks.yaml").write_text(CLICKS.replace("shuffle", "shufle"))
        self.submit()
        self.await_state("FAILED")
        self.assertIn("clicks.yaml:4", self.log())
        self.assert_nothing_is_left()

    def test_nodes_with_different_versions_are_refused(self):
        version = re.search(r"version: '([^']+)'", (REPOSITORY / "meson.build").read_text())[1]
        other = version[:-1] + chr(ord(version[-1]) ^ 1)
        program = (BUILD / "server" / "tundish").read_bytes()
        (self.path / "other").write_bytes(program.replace(version.encode() + b"\0", other.encode() + b"\0"))
        (self.path / "other").chmod(0o755)
        (self.path / "tundish-mpi.so").symlink_to(BUILD / "server" / "tundish-mpi.so")
        script = self.path / "tundish-of-node"
        script.write_text('#!/bin/sh\n[ $SLURM_NODEID = 0 ] || exec ./other "$@"\nexec tundish "$@"\n')
        script.chmod(0o755)
        script = self.path / "two"
        script.write_text(
            "#!/bin/sh\n#SBATCH --nodes=2\n"
            "exec tundish-launch clicks.yaml --replicas 2 --tundish ./tundish-of-node -- true\n"
        )
        self.submit(script=script)
        self.await_state("FAILED")
        self.assertIn("the version of Tundish", self.log())
        self.assert_nothing_is_left()


SYSTEMCTL = """\
#!/bin/sh
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
        super().setUp()
        (self.path / "etc").mkdir()
        (self.path / "programs" / "systemctl").write_text(
            SYSTEMCTL.format(folder=self.path, tundish=BUILD / "server" / "tundish")
        )
        (self.path / "programs" / "systemctl").chmod(0o755)
        (self.path / "programs" / "id").write_text("#!/bin/sh\nexec /usr/bin/id -u\n")  # no user tundish here
        (self.path / "programs" / "id").chmod(0o755)
        for hook in ("prolog", "epilog"):
            self.cluster.hook(hook, self.here((EXAMPLES / hook).read_text()))
            self.addCleanup(self.cluster.hook, hook, "#!/bin/sh\n")

    def here(self, text):
        """With folders of this test in place of the system's."""
        for systems, own in (("PATH=/usr/sbin", f"PATH={self.path}/programs:/usr/sbin"),
                             ("/etc/tundish", self.path / "etc"), ("/run/tundish-jobs", self.path / "jobs"),
                             ("/run/tundish/$SLURM_JOB_PARTITION", self.path)):  # fmt: skip
            text = text.replace(systems, str(own))
        return text

    def submit_both(self):
        script = self.path / "shared.sbatch"
        script.write_text(self.here((EXAMPLES / "shared.sbatch").read_text()))
        self.numbers = []
        for name in ("first", "second"):
            (self.path / name).mkdir()
            self.numbers.append(self.cluster.submit(
                script, self.path, "--nodelist=n1", f"--output={self.path}/{name}.log", **self.environment,
                CHECKPOINTS=str(self.path / name),
            ))  # fmt: skip

    def test_jobs_of_a_node_share_it_and_the_last_one_stops_it(self):
        text = CLICKS.replace("{replicas: 2}", "{delivery: broadcast, groups: 2}")
        (self.path / "etc" / "clicks.yaml").write_text(text)
        self.submit_both()
        for name, number in zip(("first", "second"), self.numbers):
            rows = self.path / name / "all.0"
            self.number = number
            self.cluster.wait_until(f"{name}'s rows", lambda: rows.exists() or self.state() == "FAILED")
            self.assertTrue(rows.exists(), self.logs())
            self.assertEqual(sorted(json.loads(rows.read_text())), list(range(ROWS)))
        calls = self.path / "calls"
        self.cluster.wait_until("the stop", lambda: "stop" in calls.read_text())
        self.assertEqual(sorted(calls.read_text().splitlines()),
                         ["start tundish@clicks", "start tundish@clicks", "stop tundish@clicks"])  # fmt: skip
        self.assert_nothing_is_left()

    def state(self):
        return self.cluster.job(self.number)

    def logs(self):
        return "\n".join(path.read_text() for path in (*self.path.glob("*.log"), self.path / "calls"))

    def test_a_server_that_does_not_start_costs_no_node(self):
        (self.path / "etc" / "clicks.yaml").write_text("streams: {}\n")
        self.submit_both()
        for self.number in self.numbers:
            self.await_state("RUNNING")  # its trainer looks for a server
            self.cluster.said("scancel", self.number)
            self.await_state("CANCELLED")
        self.cluster.wait_until("n1 is idle", lambda: self.cluster.state("n1") == "IDLE")


if __name__ == "__main__":
    unittest.main()
