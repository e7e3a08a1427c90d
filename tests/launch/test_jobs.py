"""tundish-launch runs a job to its end and leaves nothing behind, whoever is killed."""

import contextlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

from program import LAUNCH

SERVER = Path(__file__).resolve().with_name("fake_server.py")
TRAINER = shlex.quote(str(Path(__file__).resolve().with_name("fake_trainer.py")))
DEADLINE_S = 600  # against a hang


class LaunchRig(unittest.TestCase):
    nodes = 1

    def setUp(self):
        scratch = tempfile.TemporaryDirectory()
        self.addCleanup(scratch.cleanup)
        self.folder = Path(scratch.name)
        (self.folder / "tmp").mkdir()

    def start(self, trainer, *options, replicas=2, stderr=subprocess.PIPE, pass_fds=(), **environment):
        command = [LAUNCH, "pipeline.yaml", "--tundish", SERVER]
        if replicas is not None:
            command += ["--replicas", str(replicas)]
        if "--grace" not in options:  # the usual one might be over on a machine that is busy
            command += ["--grace", str(DEADLINE_S)]
        process = subprocess.Popen(
            [*command, *options, "--", "sh", "-c", trainer],
            cwd=self.folder,
            env=dict(os.environ, TMPDIR=str(self.folder / "tmp"), **environment),
            stdout=subprocess.PIPE,
            stderr=stderr,
            pass_fds=pass_fds,
            text=True,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def status_of(self, process):
        out, err = process.communicate(timeout=DEADLINE_S)
        self.assert_nothing_is_left()
        return process.returncode, out, err

    def run_job(self, *arguments, **more):
        return self.status_of(self.start(*arguments, **more))

    def wait_for(self, *names):
        """Each name is a file that a process of the job writes its pid to first."""
        deadline = time.monotonic() + DEADLINE_S
        while not all(self.is_noted(name) for name in names):
            self.assertLess(time.monotonic(), deadline, f"waiting for {names}")
            time.sleep(0.01)

    def wait_for_all(self, *forms):
        """The same of every trainer, two on a node."""
        self.wait_for(*(form.format(rank) for form in forms for rank in range(2 * self.nodes)))

    def wait_until_taken(self, pid, number):
        """Until the process sleeps, and the signal is not pending."""
        deadline = time.monotonic() + DEADLINE_S
        while True:
            about = dict(line.split(":", 1) for line in Path(f"/proc/{pid}/status").open(encoding="utf-8"))
            is_pending = int(about["ShdPnd"], 16) >> (number - 1) & 1
            if not is_pending and about["State"].split()[0] == "S":
                return
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.01)

    def is_noted(self, name):
        path = self.folder / name
        return path.is_file() and path.read_text().endswith("\n")

    def pids(self):
        """Of every process of the job that noted its pid in a file."""
        noted = [path.name for path in self.folder.glob("*.txt") if self.is_noted(path.name)]
        return [int((self.folder / name).read_text().split()[0]) for name in noted]

    def assert_nothing_is_left(self):
        deadline = time.monotonic() + DEADLINE_S
        while any(is_alive(pid) for pid in self.pids()) or list((self.folder / "tmp").iterdir()):
            if time.monotonic() > deadline:
                alive = [pid for pid in self.pids() if is_alive(pid)]
                self.fail(f"left behind: {alive}, {list((self.folder / 'tmp').iterdir())}")
            time.sleep(0.02)


class Launch(LaunchRig):
    def test_trainers_are_told_who_they_are(self):
        variables = "$TUNDISH_STREAM $TUNDISH_REPLICA $RANK $LOCAL_RANK $WORLD_SIZE"
        trainer = f"test -S $TUNDISH_SERVER && echo {variables}"
        status, out, _ = self.run_job(trainer, "--stream", "train", replicas=3)
        self.assertEqual(status, 0)
        expected = [f"train {replica} {replica} {replica} 3" for replica in range(3)]
        self.assertEqual(sorted(out.splitlines()), expected)

    def test_other_options_go_to_the_server(self):
        self.run_job("true", "--root", "data", "--threads=2")
        arguments = (self.folder / "server.txt").read_text().split()[1:]
        self.assertEqual(arguments[:5], ["serve", "pipeline.yaml", "--root", "data", "--threads=2"])

    def test_the_server_is_the_rank_that_mpich_hears(self):
        read_end, write_end = os.pipe()
        with open(read_end, encoding="utf-8") as ranks:
            job = self.start("true", pass_fds=[write_end], FAKE_SERVER="rank", PMI_FD=str(write_end))
            os.close(write_end)
            self.assertEqual(self.status_of(job)[0], 0)
            self.assertEqual(ranks.read(), "a rank\n")

    def test_a_descriptor_of_another_job_is_left_alone(self):
        for number in ("990", "-1", "", "9" * 30, "x"):
            self.assertEqual(self.run_job("true", PMI_FD=number)[0], 0, number)

    def test_trainers_wait_for_a_slow_server(self):
        self.assertEqual(self.run_job("test -S $TUNDISH_SERVER", FAKE_SERVER="slow")[0], 0)

    def test_the_first_failure_ends_the_others_and_is_the_status(self):
        trainer = "if [ $RANK = 1 ]; then exit 7; fi; echo $$ >$RANK.txt; exec sleep 10000"
        self.assertEqual(self.run_job(trainer, replicas=3)[0], 7)

    def test_death_by_a_signal_is_128_and_its_number(self):
        self.assertEqual(self.run_job("kill -SEGV $$", replicas=1)[0], 128 + signal.SIGSEGV)

    def test_a_server_that_fails_ends_the_job(self):
        status, _, err = self.run_job("true", FAKE_SERVER="fail")
        self.assertEqual(status, 3)
        self.assertIn("the server did not start", err)

    def test_a_server_that_dies_later_ends_the_job(self):
        process = self.start("echo $$ >$RANK.txt; exec sleep 10000")
        self.wait_for_all("{}.txt")
        os.kill(int((self.folder / "server.txt").read_text().split()[0]), signal.SIGKILL)
        self.assertEqual(self.status_of(process)[0], 128 + signal.SIGKILL)

    def test_an_absent_trainer_is_named(self):
        status, _, err = self.run_job("exec ./not-there")
        self.assertEqual(status, 127)
        self.assertIn("not-there", err)

    def test_an_absent_trainer_is_told_before_a_server_starts(self):
        command = [LAUNCH, "pipeline.yaml", "--tundish", SERVER, "--replicas", "2", "--", "./not-there"]
        done = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, timeout=DEADLINE_S)
        self.assertEqual(done.returncode, 127)
        self.assertIn("cannot run ./not-there", done.stderr)
        self.assertFalse((self.folder / "server.txt").exists())

    def test_a_standard_error_that_nobody_reads_does_not_keep_the_job(self):
        read_end, write_end = os.pipe()
        self.addCleanup(os.close, read_end)
        self.addCleanup(os.close, write_end)
        os.set_blocking(write_end, False)
        with contextlib.suppress(BlockingIOError):
            while True:
                os.write(write_end, b"." * 4096)
        os.set_blocking(write_end, True)
        self.assertEqual(self.status_of(self.start("exit 3", stderr=write_end))[0], 3)

    def test_signals_reach_the_trainers_and_what_they_started(self):
        trainer = f"sh -c 'echo $$ >child$RANK.txt; exec sleep 10000' & exec {TRAINER} TERM=5"
        process = self.start(trainer)
        self.wait_for_all("{}.txt", "child{}.txt")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status_of(process)[0], 5)

    def test_trainers_that_end_well_when_asked_are_no_failure(self):
        process = self.start(f"exec {TRAINER} INT=0")
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.status_of(process)[0], 0)

    def test_user_signals_are_passed_on_and_end_nothing(self):
        process = self.start(f"exec {TRAINER} USR1=0")
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.status_of(process)[0], 0)
        self.assertEqual(len(list(self.folder.glob("USR1*"))), 2)

    def test_a_signal_to_the_launchers_own_processes_too_is_one_signal(self):
        """Slurm sends a signal to all processes of a job step."""
        process = self.start(f"exec {TRAINER} TERM=keep USR2=0", "--grace", str(2 * DEADLINE_S))
        self.wait_for_all("{}.txt")
        between = only_child_of(process.pid)
        keeper = only_child_of(between)
        process.send_signal(signal.SIGTERM)
        self.wait_for_all("TERM{}")
        for launcher in (between, keeper):
            os.kill(launcher, signal.SIGTERM)
            os.kill(launcher, signal.SIGINT)
        for rank in (0, 1):
            os.kill(int((self.folder / f"{rank}.txt").read_text()), signal.SIGUSR2)
        self.assertEqual(self.status_of(process)[0], 0)
        self.assertEqual(len(list(self.folder.glob("USR2*"))), 2)

    def test_a_group_that_failed_is_started_again_without_what_it_left(self):
        trainer = (
            "if [ $TORCHELASTIC_RESTART_COUNT = 1 ]; then exit 0; fi;"
            " sh -c 'echo $$ >child$RANK.txt; exec sleep 10000' & echo $$ >$RANK.txt;"
            " until [ -e child0.txt -a -e child1.txt ]; do sleep 0.01; done;"
            " if [ $RANK = 1 ]; then exit 7; fi; wait"
        )
        status, _, err = self.run_job(trainer, "--max-restarts", "1")
        self.assertEqual(status, 0, err)
        self.assertIn("replica 1 ended with status 7: the group is started again", err)

    def test_trainers_deaf_to_signals_are_killed_after_the_grace(self):
        process = self.start(f"exec {TRAINER} TERM=keep", "--grace", "0.3")
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status_of(process)[0], 128 + signal.SIGKILL)

    def test_a_second_signal_does_not_wait_for_the_grace(self):
        process = self.start(f"exec {TRAINER} TERM=keep", "--grace", str(2 * DEADLINE_S))
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGTERM)
        self.wait_for_all("TERM{}")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status_of(process)[0], 128 + signal.SIGKILL)

    def test_a_terminal_that_closes_twice_leaves_the_grace(self):
        # Also where the tests are run by nohup.
        self.addCleanup(signal.signal, signal.SIGHUP, signal.signal(signal.SIGHUP, signal.SIG_DFL))
        process = self.start(f"exec {TRAINER} HUP=keep USR2=0")
        self.wait_for_all("{}.txt")
        between = only_child_of(process.pid)
        process.send_signal(signal.SIGHUP)
        self.wait_for_all("HUP{}")
        process.send_signal(signal.SIGHUP)
        for launcher in (process.pid, between, only_child_of(between)):
            self.wait_until_taken(launcher, signal.SIGHUP)
        for rank in (0, 1):
            os.kill(int((self.folder / f"{rank}.txt").read_text()), signal.SIGUSR2)
        self.assertEqual(self.status_of(process)[0], 0)

    def test_after_nohup_a_terminal_may_close(self):
        usual = signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.addCleanup(signal.signal, signal.SIGHUP, usual)
        process = self.start(f"exec {TRAINER} HUP=5 USR1=0")
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGHUP)
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.status_of(process)[0], 0)

    def test_nothing_outlives_a_killed_launcher(self):
        # The second child leaves its trainer's process group and session.
        trainer = (
            "sh -c 'echo $$ >child$RANK.txt; exec sleep 10000' &"
            " setsid sh -c 'echo $$ >away$RANK.txt; exec sleep 10000' & echo $$ >$RANK.txt; wait"
        )
        process = self.start(trainer)
        self.wait_for_all("{}.txt", "child{}.txt", "away{}.txt")
        process.kill()
        self.assertEqual(self.status_of(process)[0], -signal.SIGKILL)

    def test_nothing_outlives_a_killed_keeper(self):
        process = self.start("setsid sleep 10000 & echo $! >$RANK.txt; wait")
        self.wait_for_all("{}.txt")
        os.kill(only_child_of(process.pid), signal.SIGKILL)
        self.assertEqual(self.status_of(process)[0], 128 + signal.SIGKILL)

    def test_nothing_outlives_a_launcher_and_a_keeper_killed_at_once(self):
        trainer = (
            "sh -c 'echo $$ >child$RANK.txt; exec sleep 10000' &"
            " setsid sh -c 'echo $$ >away$RANK.txt; exec sleep 10000' & echo $$ >$RANK.txt; wait"
        )
        process = self.start(trainer)
        self.wait_for_all("{}.txt", "child{}.txt", "away{}.txt")
        keeper = parent_of(int((self.folder / "0.txt").read_text()))
        for pid in (process.pid, keeper):  # neither has a turn in between
            os.kill(pid, signal.SIGSTOP)
        for pid in (process.pid, keeper):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.status_of(process)[0], -signal.SIGKILL)

    def test_stopping_before_the_server_is_ready_stops_it(self):
        process = self.start("true", FAKE_SERVER="slow")
        self.wait_for("server.txt")
        process.send_signal(signal.SIGINT)
        self.assertEqual(self.status_of(process)[0], 128 + signal.SIGINT)

    def test_wrong_arguments_are_refused(self):
        for arguments in (["a.yaml"], ["a.yaml", "--replicas", "0", "--", "x"],
                          ["a.yaml", "--replicas", "1"],
                          ["a.yaml", "--replicas", "1", "--max-restarts", "-1", "--", "x"]):
            done = subprocess.run([LAUNCH, *arguments], capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done)


WHO = "echo $RANK $LOCAL_RANK $WORLD_SIZE $LOCAL_WORLD_SIZE $GROUP_RANK ${OMPI_COMM_WORLD_RANK-none}"


@unittest.skipUnless(shutil.which("mpirun"), "there is no mpirun")
class LaunchOnNodes(LaunchRig):
    """Two nodes, on this machine."""

    nodes = 2

    test_the_first_failure_ends_the_others = (
        Launch.test_the_first_failure_ends_the_others_and_is_the_status
    )
    test_a_server_that_fails_ends_the_job = Launch.test_a_server_that_fails_ends_the_job
    test_signals_reach_the_trainers = Launch.test_signals_reach_the_trainers_and_what_they_started
    test_a_second_signal_is_obeyed = Launch.test_a_second_signal_does_not_wait_for_the_grace
    test_nothing_outlives_a_killed_launcher = Launch.test_nothing_outlives_a_killed_launcher
    test_nothing_outlives_a_killed_keeper = Launch.test_nothing_outlives_a_killed_keeper

    def start(self, trainer, *options, replicas=2, **environment):
        if "--nodes" not in options:
            options = ("--nodes", "2", *options)
        return super().start(trainer, *options, replicas=replicas, **environment)

    def ranks(self, replicas=2):
        return [f"{n * replicas + r} {r} {2 * replicas} {replicas} {n} none"
                for n in range(2) for r in range(replicas)]

    def test_trainers_are_told_who_they_are(self):
        status, out, _ = self.run_job(f"test -S $TUNDISH_SERVER && {WHO}", replicas=3)
        self.assertEqual(status, 0)
        self.assertEqual(sorted(out.splitlines()), self.ranks(3))

    def test_other_options_go_to_the_server(self):
        self.run_job("true", "--root", "data", "--threads=2")
        for rank in (0, 1):
            arguments = (self.folder / f"server{rank}.txt").read_text().split()[1:]
            self.assertEqual(arguments[:7], ["serve", "pipeline.yaml", "--root", "data",
                                             "--threads=2", "--expect-nodes", "2"])

    def test_a_server_that_dies_later_ends_the_job(self):
        process = self.start("echo $$ >$RANK.txt; exec sleep 10000")
        self.wait_for_all("{}.txt")
        os.kill(int((self.folder / "server1.txt").read_text().split()[0]), signal.SIGKILL)
        status, _, err = self.status_of(process)
        self.assertEqual(status, 128 + signal.SIGKILL)
        self.assertIn("(rank 1) was killed by signal 9", err)
        self.assertTrue((self.folder / "USR1server0").exists(), "the other server was not told")

    def test_a_job_that_is_ended_has_not_failed(self):
        process = self.start(f"exec {TRAINER} TERM=0")
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status_of(process)[0], 0)
        self.assertEqual(list(self.folder.glob("USR1server*")), [])

    def test_user_signals_are_passed_on_and_end_nothing(self):
        process = self.start(f"exec {TRAINER} USR1=0")
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.status_of(process)[0], 0)
        self.assertEqual(len(list(self.folder.glob("USR1[0-9]"))), 4)

    def test_admins_of_nodes_on_one_host_have_ports_of_their_own(self):
        programs = self.folder / "programs"
        programs.mkdir()
        (programs / "tundish").symlink_to(SERVER)
        admin = programs / "tundish-admin"
        admin.write_text(f"#!/bin/sh\necho $2 >>{self.folder}/listens\nexec sleep {DEADLINE_S}\n")
        admin.chmod(0o755)
        options = ("--tundish", str(programs / "tundish"), "--admin", "127.0.0.1:7000")
        listens = self.folder / "listens"
        listens.touch()
        trainer = f"until [ $(wc -l <{listens}) = 2 ]; do sleep 0.01; done"
        status, _, err = self.run_job(trainer, *options, replicas=1)
        self.assertEqual(status, 0, err)
        self.assertEqual(sorted(listens.read_text().split()), ["127.0.0.1:7000", "127.0.0.1:7001"])

    def test_hosts_are_listed_with_their_trainers(self):
        here = socket.gethostname()
        job = self.run_job(WHO, "--nodes", f"{here}:2,{here}:2")
        self.assertEqual(sorted(job[1].splitlines()), self.ranks())

    def test_trainers_meet_where_the_first_is(self):
        out = self.run_job("echo $MASTER_ADDR $MASTER_PORT")[1].splitlines()
        self.assertEqual(len(out), 4)
        self.assertEqual(len(set(out)), 1)
        self.assertGreater(int(out[0].split()[1]), 0)

    def test_ranks_of_mpirun_run_their_nodes_part(self):
        command = ["mpirun", "--oversubscribe", "-n", "2"]
        if os.geteuid() == 0:
            command.append("--allow-run-as-root")
        command += [LAUNCH, "pipeline.yaml", "--tundish", SERVER, "--replicas", "2", "--"]
        done = subprocess.run([*command, "sh", "-c", WHO], cwd=self.folder, capture_output=True,
                              text=True, env=dict(os.environ, TMPDIR=str(self.folder / "tmp")))
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(done.stdout.splitlines()), self.ranks())

    def cluster(self, kind, index, **cluster):
        return json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})

    def run_task(self, kind, index, trainer, **cluster):
        return self.status_of(LaunchRig.start(self, trainer, replicas=1,
                                           TF_CONFIG=self.cluster(kind, index, **cluster)))

    def test_the_first_of_tf_configs_workers_starts_all(self):
        workers = ["localhost:1", "localhost:2"]
        status, out, _ = self.run_task("worker", 0, "echo $RANK $TF_CONFIG", worker=workers)
        self.assertEqual(status, 0)
        tasks = {line[0]: json.loads(line[2:])["task"] for line in out.splitlines()}
        self.assertEqual(tasks, {"0": {"type": "worker", "index": 0},
                                 "1": {"type": "worker", "index": 1}})
        status, out, _ = self.run_task("worker", 1, "echo no", worker=workers)
        self.assertEqual((status, "no" in out.splitlines()), (0, False))

    def task(self, index, trainer, workers):
        return LaunchRig.start(self, trainer, replicas=1,
                               TF_CONFIG=self.cluster("worker", index, worker=workers))

    def test_each_task_of_tf_config_stays_as_long_as_its_trainers(self):
        workers = [f"localhost:{port}" for port in (1, 2)]
        for order, statuses in (((1, 0), (0, 0)), ((0, 1), (0, 0)), ((1, 0), (0, 5))):
            with self.subTest(order=order, statuses=statuses):
                trainer = ("echo $$ >$RANK.txt; until [ -e go ]; do sleep 0.02; done;"
                           f" if [ $RANK = 1 ]; then exit {statuses[1]}; fi")
                launchers = {index: self.task(index, trainer, workers) for index in order}
                self.wait_for("0.txt", "1.txt")
                self.assertEqual([launchers[index].poll() for index in order], [None, None])
                (self.folder / "go").touch()
                first = self.status_of(launchers[0])[0]
                self.assertEqual((first, self.status_of(launchers[1])[0]),
                                 (statuses[1], statuses[1]))
                for path in (*self.folder.glob("*.txt"), self.folder / "go"):
                    path.unlink()

    def test_a_signal_to_any_task_reaches_its_trainers(self):
        workers = ["localhost:1", "localhost:2"]
        launchers = [self.task(index, f"exec {TRAINER} USR1=0 TERM=0", workers) for index in (0, 1)]
        self.wait_for("0.txt", "1.txt")
        launchers[1].send_signal(signal.SIGUSR1)
        self.wait_for("USR11")
        launchers[0].send_signal(signal.SIGTERM)
        for launcher in launchers:
            self.assertEqual(self.status_of(launcher)[0], 0)

    def test_a_task_that_waits_for_its_trainers_may_be_ended(self):
        process = self.task(1, "true", ["localhost:1", "localhost:2"])
        self.assertIn("starts this task", process.stderr.readline())
        process.send_signal(signal.SIGTERM)
        self.assertEqual(self.status_of(process)[0], 128 + signal.SIGTERM)

    def test_tasks_beside_parameter_servers_are_on_their_own(self):
        cluster = {"chief": ["h:1"], "worker": ["h:2", "i:3"], "ps": ["h:4"]}
        for kind, served in (("ps", False), ("chief", True), ("worker", True), ("evaluator", True)):
            with self.subTest(kind=kind):
                status, out, _ = self.run_task(kind, 0, "echo ${TUNDISH_SERVER:+served} end", **cluster)
                self.assertEqual((status, out.split()), (0, ["served"] * served + ["end"]))

    def test_a_task_that_the_cluster_does_not_have_is_refused(self):
        cluster = {"chief": ["h:1"], "worker": ["h:2", "h:3"], "ps": ["h:4"]}
        for kind, index, words in (
            ("wroker", 0, "the task's type is one of chief, master, worker, ps, evaluator, not 'wroker'"),
            ("worker", 2, "the task is worker 2, but the cluster has 2 workers, counted from 0"),
            ("ps", 1, "the task is ps 1, but the cluster has 1 ps, counted from 0"),
            ("master", 0, "the task is master 0, but the cluster has no masters"),
            ("worker", -1, "the task's index is a number from 0, not '-1'"),
            ("worker", 0.5, "the task's index is a number from 0, not '0.5'"),
            ("worker", None, "the task's index is a number from 0, not 'None'"),
        ):
            with self.subTest(kind=kind, index=index):
                status, out, err = self.run_task(kind, index, "echo started", **cluster)
                self.assertEqual((status, out), (2, ""))
                self.assertIn(words, err)

    def test_a_cluster_that_is_none_is_refused(self):
        for text, words in (("{", "is not JSON"), ("[]", "is not a cluster and a task"),
                            ('{"cluster": {"worker": "h:1"}, "task": {"type": "worker", "index": 0}}',
                             "cluster.worker is not a list of HOST:PORT"),
                            ('{"cluster": {"worker": ["h"]}, "task": {"type": "worker", "index": 0}}',
                             "cluster.worker is not a list of HOST:PORT")):
            with self.subTest(text=text):
                process = LaunchRig.start(self, "echo started", replicas=1, TF_CONFIG=text)
                status, out, err = self.status_of(process)
                self.assertEqual((status, out), (2, ""))
                self.assertIn(words, err)

    def test_whole_names_of_hosts_reach_mpirun(self):
        mpirun = self.folder / "mpirun"
        mpirun.write_text("#!/bin/sh\necho \"$@\" >mpirun.args\n")
        mpirun.chmod(0o755)
        (self.folder / "ssh").symlink_to("mpirun")
        hosts = ["a.example.org", "b.example.org"]
        path = f"{self.folder}:{os.environ['PATH']}"
        self.status_of(LaunchRig.start(self, "true", "--nodes", ",".join(hosts), PATH=path))
        config = self.cluster("worker", 0, worker=[f"{host}:1" for host in hosts])
        by_nodes = (self.folder / "mpirun.args").read_text()
        self.status_of(LaunchRig.start(self, "true", PATH=path, TF_CONFIG=config))
        for arguments in (by_nodes, (self.folder / "mpirun.args").read_text()):
            self.assertIn("--mca orte_keep_fqdn_hostnames 1 ", arguments)
            self.assertIn("--host a.example.org:1,b.example.org:1 ", arguments)

    def in_allocation(self, trainer, *options, replicas=None, **slurm):
        """A launcher in a Slurm job of two nodes, with the stand-in for srun."""
        srun = self.folder / "srun"
        if not srun.exists():
            srun.symlink_to(Path(__file__).with_name("fake_srun.py"))
        variables = {"SLURM_JOB_ID": "7", "SLURM_JOB_NUM_NODES": "2", "SLURM_NTASKS": "4", **slurm}
        own = {"PATH": f"{self.folder}:{os.environ['PATH']}"}
        return LaunchRig.start(self, trainer, *options, replicas=replicas, **variables, **own)

    def test_an_allocation_of_slurm_is_used_through_srun(self):
        process = self.in_allocation("echo $RANK $WORLD_SIZE $TUNDISH_LAUNCH_ORDERS", replicas=2)
        out = self.status_of(process)[1]
        self.assertEqual(sorted(out.splitlines()), [f"{rank} 4" for rank in range(4)])
        self.assertIn("--ntasks-per-node=1", (self.folder / "srun.args").read_text())

    def test_an_allocation_says_how_many_trainers_a_node_has(self):
        for variables in ({"SLURM_NTASKS_PER_NODE": "3", "SLURM_NTASKS": "6"},
                          {"SLURM_TASKS_PER_NODE": "3(x2)", "SLURM_NTASKS": "6"}):
            with self.subTest(**variables):
                status, out, err = self.status_of(self.in_allocation("echo $RANK", **variables))
                self.assertEqual(status, 0, err)
                self.assertEqual(sorted(out.split()), list("012345"))
        one_node = {"SLURM_JOB_NUM_NODES": "1", "SLURM_NTASKS_PER_NODE": "3", "SLURM_NTASKS": "3"}
        out = self.status_of(self.in_allocation("echo $RANK", **one_node))[1]
        self.assertEqual(sorted(out.split()), list("012"))

    def test_an_allocation_with_other_numbers_of_trainers_is_refused(self):
        for variables, words in (
            ({"SLURM_TASKS_PER_NODE": "2,1", "SLURM_NTASKS": "3"}, "Slurm would run 2,1 tasks on the nodes"),
            ({"SLURM_NTASKS_PER_NODE": "0"}, "--replicas must be at least 1"),
            ({"SLURM_TASKS_PER_NODE": "1(x2)", "SLURM_NTASKS": ""}, "sbatch --ntasks-per-node"),
        ):
            with self.subTest(**variables):
                status, out, err = self.status_of(self.in_allocation("echo started", **variables))
                self.assertEqual((status, out), (2, ""))
                self.assertIn(words, err)

    def test_mpirun_starts_the_ranks_where_slurms_kind_of_mpi_is_another(self):
        (self.folder / "mpirun").write_text("#!/bin/sh\nexit 5\n")
        (self.folder / "mpirun").chmod(0o755)
        for kind, status in (("none", 5), ("pmi2", 5), ("pmix_v4", 0)):
            with self.subTest(kind=kind):
                process = self.in_allocation("true", replicas=2, SLURM_MPI_TYPE=kind)
                self.assertEqual(self.status_of(process)[0], status)

    def test_trainers_under_srun_end_in_good_order(self):
        process = self.in_allocation(f"exec {TRAINER} TERM=0", replicas=2)
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGTERM)
        status, _, err = self.status_of(process)
        self.assertEqual(status, 0, err)
        self.assertEqual(len(list(self.folder.glob("TERM[0-9]"))), 4)

    def test_user_signals_under_srun_reach_trainers_alone(self):
        process = self.in_allocation(f"exec {TRAINER} USR1=0", replicas=2)
        self.wait_for_all("{}.txt")
        process.send_signal(signal.SIGUSR1)
        self.assertEqual(self.status_of(process)[0], 0)
        self.assertEqual(len(list(self.folder.glob("USR1[0-9]"))), 4)
        self.assertEqual(list(self.folder.glob("USR1server*")), [])

    def test_ranks_of_srun_meet_on_its_first_node(self):
        scontrol = self.folder / "scontrol"
        scontrol.write_text("#!/bin/sh\n[ $3 = 'n[1-2]' ] && printf 'n1\\nn2\\n'\n")
        scontrol.chmod(0o755)
        ranks = [self.in_allocation("echo $MASTER_ADDR $MASTER_PORT", replicas=1, PMIX_RANK=str(rank),
                                    SLURM_NTASKS="2", SLURM_JOB_NODELIST="n[0-2]",
                                    SLURM_STEP_NODELIST="n[1-2]") for rank in (0, 1)]
        self.assertEqual([self.status_of(rank)[1] for rank in ranks], ["n1 20007\n"] * 2)

    def test_wrong_arguments_are_refused(self):
        for nodes in ("a:1,b:2", "a:x", ":3", "a:2"):
            command = [LAUNCH, "a.yaml", "--replicas", "3", "--nodes", nodes, "--", "x"]
            done = subprocess.run(command, capture_output=True, text=True)
            self.assertEqual(done.returncode, 2, done)


def only_child_of(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text())


def parent_of(pid):
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])


def is_alive(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return False
    return state != "Z"


if __name__ == "__main__":
    unittest.main()
