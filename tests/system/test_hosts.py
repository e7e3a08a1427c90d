"""Launchers of one TF_CONFIG on several hosts, each started by itself, where there is no ssh."""

import json
import os
import signal
import subprocess
import sys

from launcher_rig import LAUNCH, SHUFFLED, LauncherOfJobs, descendants, end
from network_rig import NetworkRig
from networks import ADDRESSES, why_not
from nodes_rig import main
from rig import DEADLINE_S, READER, TUNDISH

SECRET = "0123456789abcdef" * 4
PORT = 29600
# All of PATH that a task has.
PROGRAMS = ("cat", "env", "mpirun", "orted", "python3", "sh", "sleep", "touch", "unshare", "hostname")


class HostsRig(NetworkRig, LauncherOfJobs):
    STAGES = ["range: 3000", "shuffle: {buffer_size: 100}", "batch: 10"]

    def setUp(self):
        super().setUp()
        programs = self.path / "programs"
        programs.mkdir()
        for name in PROGRAMS:
            (programs / name).symlink_to(self.find(name))
        (self.path / "tmp").mkdir()
        self.environment = dict(self.environment, TMPDIR=str(self.path / "tmp"), READER=READER)
        self.started = {}

    def find(self, name):
        return subprocess.run(["which", name], capture_output=True, text=True, check=True).stdout.strip()

    def launch_on(self, host, name, file, script, *options, replicas=1, **environment):
        """A launcher on a host, whose trainers print to a file that their rank is in the name of."""
        into = f"exec >{self.path}/out.$RANK.$TORCHELASTIC_RESTART_COUNT; {script}"
        command = [
            self.on_node, str(host), "env", f"PATH={self.path}/programs",
            *(f"{key}={text}" for key, text in environment.items()), "python3", "-B", str(LAUNCH),
            file, "--tundish", TUNDISH, "--admin", "none", "--replicas", str(replicas), "--cache",
            str(self.path / "cache"), *options, "--", "sh", "-c", into]
        with open(self.path / f"log.{name}", "w", encoding="utf-8") as log:
            launcher = subprocess.Popen(command, env=self.environment, stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, stderr=log, text=True)
        self.processes.append(launcher)
        return launcher

    def task(self, index, file, script, *options, hosts=(0, 1), **more):
        workers = [f"{ADDRESSES[host]}:{2222 + i}" for i, host in enumerate(hosts)]
        config = {"cluster": {"worker": workers}, "task": {"type": "worker", "index": index}}
        more.setdefault("TUNDISH_LAUNCH_SECRET", SECRET)
        return self.launch_on(hosts[index], index, file, script, *options,
                              TF_CONFIG=json.dumps(config), **more)

    def log(self):
        return self.all_logs()

    def all_values(self, ranks=(0, 1)):
        lines = [line.split() for rank in ranks for line in self.outs(rank)]
        return sorted(int(word) for words in lines if words[0] == "batch" for word in words[3:])

    def remember(self, launchers):
        """What they have started, to see that it is gone afterwards."""
        for launcher in launchers:
            self.started.update(descendants(launcher.pid))
        for pid in self.started:
            self.addCleanup(end, pid)

    def wait_for_batches(self, launchers, ranks, count):
        self.wait_for(lambda: all(self.out(rank).count("batch ") >= count for rank in ranks)
                      or any(launcher.poll() is not None for launcher in launchers))
        self.assertEqual({launcher.poll() for launcher in launchers}, {None}, self.log())

    def assert_over(self, launchers, is_well=True):
        for launcher in launchers:
            status = self.status_of(launcher)
            self.assertEqual(status == 0, is_well, f"{status}: {self.log()}")
        self.assert_nothing_is_left(self.started)


class Hosts(HostsRig):
    def test_feed_all_workers_every_row_once(self):
        file = self.pipeline(self.STAGES)
        script = f"cat /proc/sys/kernel/hostname >{self.path}/host.$RANK; exec $READER"
        launchers = [self.task(index, file, script) for index in (1, 0)]
        self.assert_over(launchers)
        self.assertEqual(self.all_values(), list(range(3000)))
        for rank in (0, 1):
            self.assertEqual((self.path / f"host.{rank}").read_text(), f"tundish-{rank}\n")

    def test_share_a_server_on_each_host(self):
        """The second worker of a host has its trainer from the first one's launcher."""
        file = self.pipeline(self.STAGES, "{replicas: 2}")
        script = f"echo $TF_CONFIG >{self.path}/task.$RANK; exec $READER"
        launchers = [self.task(index, file, script, hosts=(0, 0, 1, 1), replicas=2)
                     for index in (3, 2, 1, 0)]
        self.assert_over(launchers)
        self.assertEqual(self.all_values(range(4)), list(range(3000)))
        self.assertEqual(self.all_logs().count("rank 1 of 2 nodes"), 1)
        for rank in range(4):
            config = json.loads((self.path / f"task.{rank}").read_text())
            self.assertEqual(config["task"], {"type": "worker", "index": rank})

    def begin(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 100000}")
        launchers = [self.task(index, file, "exec $READER --delay-ms 2") for index in (0, 1)]
        self.wait_for_batches(launchers, (0, 1), 3)
        self.remember(launchers)
        return launchers

    def test_end_together_when_a_trainer_is_killed(self):
        for rank in (0, 1):
            with self.subTest(rank=rank):
                launchers = self.begin()
                self.kill(launchers[rank], rank)
                self.assert_over(launchers, is_well=False)
                self.forget()

    def test_end_together_when_a_launcher_is_killed(self):
        for victim in (0, 1):
            with self.subTest(victim=victim):
                launchers = self.begin()
                launchers[victim].kill()
                self.assert_over(launchers, is_well=False)
                self.forget()

    def forget(self):
        for rank in (0, 1):
            (self.path / f"out.{rank}.0").unlink()

    def test_end_together_when_the_first_is_asked_to(self):
        launchers = self.begin()
        launchers[0].send_signal(signal.SIGTERM)
        self.assert_over(launchers, is_well=False)

    def test_start_again_together(self):
        """A trainer of each host is killed once."""
        file = self.pipeline(self.STAGES, deliver="{epochs: 1, slots: 16}")
        script = ("[ $RANK = 0 ] && n=20 || n=24; if [ $TORCHELASTIC_RESTART_COUNT -lt 2 ]; then exec"
                  " $READER --batches $n --hold; fi; exec $READER")
        launchers = [self.task(index, file, script, "--max-restarts", "2") for index in (0, 1)]
        for restart, victim in enumerate((1, 0)):
            self.wait_for(lambda: any(launcher.poll() is not None for launcher in launchers) or all(
                self.out(rank, restart).count("batch ") >= count
                for rank, count in enumerate((20, 24))))
            self.kill(launchers[victim], victim, restart)
        self.assert_over(launchers)
        steps = {}
        for rank in (0, 1):
            for line in self.outs(rank):
                if line.startswith("batch "):
                    _, _, step, *values = line.split()
                    self.assertEqual(steps.setdefault((rank, step), values), values)
        self.assertEqual(sorted(int(value) for values in steps.values() for value in values),
                         list(range(3000)))
        for rank in (0, 1):
            for restart, first in ((1, "batch 0 19 "), (2, "batch 0 38 ")):
                lines = [line for line in self.out(rank, restart).splitlines() if "batch" in line]
                self.assertTrue(lines[0].startswith(first), lines[0])

    def test_wait_for_a_launcher_that_comes_late(self):
        file = self.pipeline(self.STAGES)
        first = self.task(0, file, "exec $READER")
        self.wait_for(lambda: first.poll() is not None or "--call" in self.commands_of(first))
        self.assert_over([first, self.task(1, file, "exec $READER")])
        self.assertEqual(self.all_values(), list(range(3000)))

    def commands_of(self, launcher):
        return [word for command in descendants(launcher.pid).values() for word in command]


class Tasks(HostsRig):
    """Launchers that srun has started, one on each node, without PMI."""

    def setUp(self):
        super().setUp()
        scontrol = self.path / "programs/scontrol"
        scontrol.write_text("#!/bin/sh\n[ \"$*\" = 'show hostnames a[1-2]' ] && echo " +
                            " ".join(ADDRESSES[:2]) + "\n")
        scontrol.chmod(0o755)

    def srun(self, number, script, nodes=2, **more):
        variables = {"JOB_ID": 7, "STEP_ID": 0, "STEP_NUM_TASKS": 2, "STEP_NUM_NODES": nodes,
                     "NTASKS": 2, "JOB_NUM_NODES": nodes, "PROCID": number, "STEP_NODELIST": "a[1-2]"}
        file = self.pipeline(self.STAGES)
        return self.launch_on(number, number, file, script, **more,
                              **{f"SLURM_{name}": str(value) for name, value in variables.items()})

    def test_find_each_other(self):
        launchers = [self.srun(number, "exec $READER", TUNDISH_LAUNCH_SECRET=SECRET)
                     for number in (1, 0)]
        self.assert_over(launchers)
        self.assertEqual(self.all_values(), list(range(3000)))

    def test_end_together(self):
        script = "if [ $RANK = 1 ]; then exit 7; fi; exec $READER --batches 5 --hold"
        for launcher in [self.srun(number, script, TUNDISH_LAUNCH_SECRET=SECRET) for number in (0, 1)]:
            self.assertEqual(self.status_of(launcher), 7, self.log())

    def test_without_a_secret_are_refused(self):
        self.assert_over([self.srun(number, "exec $READER") for number in (0, 1)], is_well=False)
        self.assertEqual(self.log().count("use `srun --mpi=pmix`, or `export TUNDISH_LAUNCH_SECRET="), 2)

    def test_that_are_several_on_a_node_are_refused(self):
        launchers = [self.srun(number, "exec $READER", nodes=1) for number in (0, 1)]
        self.assert_over(launchers, is_well=False)
        self.assertEqual(self.log().count("start one on each (--ntasks-per-node=1)"), 2)


class Strangers(HostsRig):
    """Who does not know the secret."""

    def test_are_refused_at_once(self):
        self.assert_over([self.task(0, self.pipeline(self.STAGES), "true", TUNDISH_LAUNCH_SECRET="")],
                         is_well=False)
        self.assertIn("there is no ssh: give all launchers one secret", self.log())

    def test_of_a_short_secret_are_refused(self):
        self.assert_over([self.task(0, self.pipeline(self.STAGES), "true", TUNDISH_LAUNCH_SECRET="short")],
                         is_well=False)
        self.assertIn("has 5 bytes, fewer than 16", self.log())

    def test_of_a_file_for_everybody_are_refused(self):
        secret = self.path / "secret"
        secret.write_text(SECRET)
        secret.chmod(0o644)
        self.assert_over([self.task(0, self.pipeline(self.STAGES), "true", "--secret-file", str(secret))],
                         is_well=False)
        self.assertIn("is open to everybody: chmod o=", self.log())

    def test_do_no_harm(self):
        file = self.pipeline(self.STAGES)
        second = self.task(1, file, "exec $READER")
        self.wait_for(lambda: second.poll() is not None or self.hostile(b"") is not None)
        greeting = self.hostile(b"")
        self.assertNotIn(SECRET.encode(), greeting)
        for bytes_of in (b"GET / HTTP/1.0\r\n\r\n", b"\0" * 68, b"\xff" * 68, os.urandom(100_000),
                         bytes(64) + (1 << 18).to_bytes(4, "big") + bytes(1 << 18),
                         bytes(64) + (8).to_bytes(4, "big") + b'["orted"'):
            self.hostile(bytes_of)
        holders = [self.hostile_holder() for _ in range(40)]
        first = self.task(0, file, "exec $READER")
        self.assert_over([first, second])
        for holder in holders:
            holder.kill()
            holder.communicate()
        self.assertEqual(self.all_values(), list(range(3000)))

    def test_with_another_secret_are_nothing_to_a_launcher(self):
        file = self.pipeline(SHUFFLED)
        launchers = [self.task(0, file, "exec $READER", TUNDISH_LAUNCH_SECRET="f" * 64),
                     self.task(1, file, "exec $READER")]
        self.wait_for(lambda: "does not know this job's secret" in self.log())
        self.assertEqual([launcher.poll() for launcher in launchers], [None, None])
        self.remember(launchers)
        for launcher in launchers:
            launcher.send_signal(signal.SIGTERM)
            self.status_of(launcher)
        self.assert_nothing_is_left(self.started)
        self.assertEqual(list(self.path.glob("out.*")), [], "trainers were started")

    HOSTILE = (
        "import socket, sys\n"
        "try:\n"
        f"    s = socket.create_connection(('{ADDRESSES[1]}', {PORT}), timeout={DEADLINE_S})\n"
        "    sys.stdout.buffer.write(s.recv(1000))\n"
        "    s.sendall(sys.stdin.buffer.read())\n"
        "    s.shutdown(socket.SHUT_WR)\n"
        "    s.recv(1)\n"
        "except ConnectionRefusedError:\n"
        "    sys.exit(1)\n"
        "except OSError:\n"
        "    pass\n"
    )

    def hostile(self, text):
        """What one that sends this hears first; None: nobody listens."""
        done = subprocess.run([self.on_node, "0", sys.executable, "-c", self.HOSTILE], input=text,
                              capture_output=True, check=False)
        return done.stdout if done.returncode == 0 else None

    def hostile_holder(self):
        """It connects and says nothing."""
        holder = subprocess.Popen([self.on_node, "0", sys.executable, "-c", self.HOSTILE],
                                  stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        holder.stdout.read(16)
        self.addCleanup(holder.communicate)
        self.addCleanup(holder.kill)
        return holder


if __name__ == "__main__":
    main(why_not)
