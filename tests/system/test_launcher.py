"""tundish-launch with a real server and real trainers, killed at the worst moment."""

import json
import os
import signal
import sys
import time
import unittest

from launcher_rig import (LAUNCH, SHUFFLED, LauncherOfJobs, LauncherRig, descendants, end, processes,
                          variable_of)
from nodes_rig import why_not
from rig import DEADLINE_S, READER, TUNDISH


class Launcher(LauncherRig):
    def test_that_is_killed_takes_everything_with_it(self):
        launcher, started = self.launch()
        self.assertEqual(len(self.pids(started, READER)), 2)
        self.assertEqual(len(self.pids(started, TUNDISH, "serve")), 1)
        launcher.kill()
        launcher.wait()
        self.assert_nothing_is_left(started)

    def test_whose_keeper_is_killed_takes_everything_with_it(self):
        launcher, started = self.launch()
        keeper = next(pid for pid, (parent, _, _) in processes().items() if parent == launcher.pid)
        os.kill(keeper, signal.SIGKILL)
        self.assertEqual(launcher.wait(timeout=DEADLINE_S), 128 + signal.SIGKILL)
        self.assert_nothing_is_left(started)

    def test_whose_trainer_is_killed_ends_the_others_and_says_so(self):
        launcher, started = self.launch()
        os.kill(self.pids(started, READER)[0], signal.SIGKILL)
        self.assertEqual(launcher.wait(timeout=DEADLINE_S), 128 + signal.SIGKILL)
        self.assert_nothing_is_left(started)


class LauncherAndFile(LauncherOfJobs):
    """How many trainers there are is said once."""

    def refused(self, distribute, replicas, *options, **environment):
        file = self.pipeline(["range: 64", "batch: 8"], distribute)
        status = self.status_of(self.job(file, replicas, "exec $READER", *options, **environment))
        self.assertNotEqual(status, 0)
        self.assertEqual(list(self.path.glob("out.*")), [], "trainers were started")
        return self.log()

    def test_other_replicas_than_the_files_are_refused_at_once(self):
        for of_file, trainers in ((4, 2), (2, 3), (1, 2)):
            with self.subTest(of_file=of_file, trainers=trainers):
                log = self.refused(f"{{replicas: {of_file}}}", trainers)
                self.assertRegex(log, rf"pipeline.yaml:\d+:\d+: .*replicas: {of_file}, but the "
                                      rf"launcher starts {trainers} trainers")

    def test_replicas_that_the_file_leaves_out_are_one(self):
        self.assertIn("has replicas: 1, but the launcher starts 2", self.refused("{}", 2))

    def test_a_stream_that_is_not_there_is_refused_at_once(self):
        self.assertIn("there is no stream 'other'",
                      self.refused("{replicas: 2}", 2, "--stream", "other"))

    def test_readers_of_a_queue_may_be_any_number(self):
        file = self.pipeline(["range: 64", "batch: 8"], "{delivery: queue}")
        self.assertEqual(self.status_of(self.job(file, 3, "exec $READER")), 0, self.log())
        self.assertEqual(self.all_rows(range(3)), list(range(64)))

    def test_each_reader_of_a_broadcast_is_a_group(self):
        file = self.pipeline(["range: 64", "batch: 8"], "{delivery: broadcast, groups: 3}")
        self.assertEqual(self.status_of(self.job(file, 3, "exec $READER")), 0, self.log())
        for rank in range(3):
            self.assertEqual(self.all_rows([rank]), list(range(64)))

    def test_sessions_of_their_own_are_for_any_number(self):
        file = self.pipeline(["range: 64", "batch: 8"], "{from_function: true}")
        self.assertEqual(self.status_of(self.job(file, 3, "exec $READER")), 0, self.log())
        for rank in range(3):
            self.assertEqual(self.all_rows([rank]), list(range(64)))

    def test_the_stream_that_is_read_is_what_counts(self):
        file = self.path / "pipeline.yaml"
        streams = "".join(f"  {name}:\n    dataset: [{{range: 64}}, {{batch: 8}}]\n"
                          f"    distribute: {{replicas: {replicas}}}\n    deliver: {{epochs: 1}}\n"
                          for name, replicas in (("train", 2), ("test", 1)))
        file.write_text(f"streams:\n{streams}")
        for replicas, options in ((2, ()), (2, ("--stream", "train")), (1, ("--stream", "test"))):
            script = f"TUNDISH_STREAM={'train' if replicas == 2 else 'test'} exec $READER"
            status = self.status_of(self.job(str(file), replicas, script, *options))
            self.assertEqual(status, 0, self.log())
        self.assertNotEqual(self.status_of(self.job(str(file), 1, "exec $READER")), 0)
        self.assertIn("name another stream with --stream", self.log())


class LauncherRestarts(LauncherOfJobs):
    """What is killed is started again, and every row counted."""

    STAGES = ["range: 3000", "shuffle: {buffer_size: 100}", "batch: 10"]

    def mortal(self, victims, batches, lives=1):
        """A script: some ranks take so many batches in each of their first lives and hold the last;
        then all read once they may."""
        return (f"case $RANK in [{victims}]) if [ $TORCHELASTIC_RESTART_COUNT -lt {lives} ]; then"
                f" exec $READER --batches {batches} --hold; fi;; esac;"
                f" until [ -e {self.path}/go ]; do sleep 0.02; done; exec $READER")

    def let_go(self):
        (self.path / "go").touch()

    def test_readers_of_a_queue_one_after_the_other(self):
        file = self.pipeline(self.STAGES, "{delivery: queue}")
        launcher = self.job(file, 3, self.mortal("012", 5), "--max-restarts", "1")
        for rank in range(3):
            self.kill(launcher, rank, batches=5)
        self.let_go()
        self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertEqual(self.all_rows(range(3)), list(range(3000)))
        for rank in range(3):
            self.assertIn(f"replica {rank} was killed by signal 9: it is started again", self.log())

    def test_of_one_reader_end_at_the_limit(self):
        file = self.pipeline(self.STAGES, "{delivery: queue}", "{epochs: null}")
        launcher = self.job(file, 2, "exec $READER --delay-ms 10", "--max-restarts", "2")
        for restart in range(3):
            self.kill(launcher, 0, restart)
        self.assertEqual(self.status_of(launcher), 128 + signal.SIGKILL)

    def test_of_sessions_of_their_own(self):
        file = self.pipeline(self.STAGES, "{from_function: true}")
        launcher = self.job(file, 2, self.mortal("0", 10), "--max-restarts", "1")
        self.kill(launcher, 0, batches=10)
        self.let_go()
        self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertTrue(self.out(0, 1).startswith("first 0 9\n"), self.out(0, 1)[:20])
        self.assertEqual(self.out(1, 1), "", "its sibling has nothing to do with it")
        for rank in range(2):
            self.assertEqual(self.rows_of(rank), list(range(3000)))

    def test_of_evaluators(self):
        file = self.pipeline(self.STAGES, "{evaluation_shards: 6, auto_shard: DATA}")
        launcher = self.job(file, 2, self.mortal("1", 10), "--max-restarts", "1")
        self.kill(launcher, 1, batches=10)
        self.let_go()
        self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertEqual(self.out(0, 1), "", "its sibling has nothing to do with it")
        self.assertEqual(sorted({*self.rows_of(0), *self.rows_of(1)}), list(range(3000)))

    def test_of_a_group_are_of_all_its_replicas_at_its_place(self):
        file = self.pipeline(self.STAGES, "{replicas: 2}")
        launcher = self.job(file, 2, self.mortal("01", 20, lives=2), "--max-restarts", "2")
        for restart, victim in enumerate((1, 0)):
            while self.out(1 - victim, restart).count("batch ") < 20:
                self.assertIsNone(launcher.poll(), self.log())
                time.sleep(0.02)
            self.kill(launcher, victim, restart, batches=20)
        self.let_go()
        self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertIn("the group is started again", self.log())
        for rank in range(2):
            firsts = [self.out(rank, restart).split("\n")[0] for restart in (1, 2)]
            self.assertEqual(firsts, ["first 0 19", "first 0 38"])
        self.assertEqual(sorted(self.rows_of(0) + self.rows_of(1)), list(range(3000)))

    @unittest.skipIf(why_not(), why_not())
    def test_of_a_group_of_nodes_are_of_all_its_replicas_at_its_place(self):
        """They stand at different steps, and the node that was killed is not always the last."""
        for name, counts in (("killed is behind", (25, 24, 21, 20)), ("is ahead", (20, 21, 24, 25))):
            with self.subTest(name):
                self.forget()
                script = "".join(f" {rank}) n={count};;" for rank, count in enumerate(counts))
                launcher = self.job(
                    self.pipeline(self.STAGES, "{replicas: 2}", "{epochs: 2, slots: 16}"), 2,
                    f"case $RANK in{script} esac; {self.mortal('0123', '$n', lives=2)}",
                    "--nodes", "2", "--max-restarts", "2")
                for restart, victim in enumerate((3, 1)):
                    self.wait_for_all_of(launcher, restart, counts)
                    self.kill(launcher, victim, restart, batches=counts[victim])
                self.let_go()
                self.assertEqual(self.status_of(launcher), 0, self.log())
                for rank in range(4):
                    firsts = [self.first_batch(rank, restart) for restart in (1, 2)]
                    self.assertEqual(firsts, [["0", "19"], ["0", "38"]], self.log())
                rows = sorted(sum((self.rows_of(rank) for rank in range(4)), []))
                self.assertEqual(rows, sorted(2 * list(range(3000))))

    @unittest.skipIf(why_not(), why_not())
    def test_of_a_group_of_nodes_may_go_back_to_an_earlier_epoch(self):
        """Each node has rows of its own files, and not as many as the other."""
        for i in range(4):
            (self.path / f"part-{i}.csv").write_text("".join(f"{i * 20 + n}\n" for n in range(20)))
        file = self.pipeline([
            'list_files: {file_pattern: "part-*.csv", seed: 3}',
            "interleave: {dataset: [text_line], cycle_length: 2}", "shuffle: {buffer_size: 10}",
            "decode_csv: {record_defaults: [int64], column_names: [value]}", "batch: 8",
        ], "{replicas: 1}", "{epochs: 6, slots: 32}")
        launcher = self.job(file, 1, f"[ $RANK = 0 ] && n=4 || n=14; {self.mortal('01', '$n')}",
                            "--nodes", "2", "--max-restarts", "1")
        self.wait_for_all_of(launcher, 0, (4, 14))
        self.kill(launcher, 0, batches=4)
        self.let_go()
        self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertEqual([self.first_batch(rank, 1) for rank in (0, 1)], [["0", "3"]] * 2, self.log())
        self.assertEqual(sorted(self.rows_of(0) + self.rows_of(1)), sorted(6 * list(range(80))))

    def first_batch(self, rank, restart):
        """Its epoch and step."""
        lines = self.out(rank, restart).splitlines()
        return next((line.split()[1:3] for line in lines if line.startswith("batch ")), None)

    def wait_for_all_of(self, launcher, restart, counts):
        while any(self.out(rank, restart).count("batch ") < count for rank, count in enumerate(counts)):
            self.assertIsNone(launcher.poll(), self.log())
            time.sleep(0.02)

    def forget(self):
        for path in (*self.path.glob("out.*"), *self.path.glob("go")):
            path.unlink()

    @unittest.skipIf(why_not(), why_not())
    def test_are_of_nodes_that_had_read_all(self):
        """Those of the first have ended well when the second one's last is killed."""
        launcher = self.job(
            self.pipeline(self.STAGES, "{replicas: 1}"), 1,
            "if [ $RANK$TORCHELASTIC_RESTART_COUNT = 10 ]; then exec $READER --batches 140 --hold; fi;"
            f" $READER && touch {self.path}/read.$RANK", "--nodes", "2", "--max-restarts", "1")
        while not (self.path / "read.0").exists() or self.out(1).count("batch ") < 140:
            self.assertIsNone(launcher.poll(), self.log())
            time.sleep(0.02)
        self.kill(launcher, 1, batches=140)
        self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertEqual(sorted(self.rows_of(0) + self.rows_of(1)), list(range(3000)))
        for rank in (0, 1):
            self.assertEqual(self.first_batch(rank, 1), ["0", "139"])

    @unittest.skipIf(why_not(), why_not())
    def test_of_a_group_of_nodes_end_at_the_limit(self):
        launcher = self.job(self.pipeline(self.STAGES, "{replicas: 1}", "{epochs: 100000}"), 1,
                            "exec $READER --delay-ms 5", "--nodes", "2", "--max-restarts", "2")
        for restart in range(3):
            self.wait_for_all_of(launcher, restart, (1, 1))
            self.kill(launcher, restart % 2, restart)
        self.assertEqual(self.status_of(launcher), 128 + signal.SIGKILL, self.log())

    def rows_of(self, rank):
        """Each once, however often a step was printed."""
        found = {}
        for line in self.outs(rank):
            if line.startswith("batch "):
                _, epoch, step, *values = line.split()
                found[epoch, step] = [int(value) for value in values]
        return sorted(sum(found.values(), []))

    def test_do_not_outlast_a_signal(self):
        file = self.pipeline(self.STAGES, "{delivery: queue}", "{epochs: null}")
        launcher = self.job(file, 1, "exit 3", "--max-restarts", "1000")
        while "is started again" not in self.log():
            self.assertIsNone(launcher.poll())
            time.sleep(0.02)
        launcher.send_signal(signal.SIGTERM)
        self.status_of(launcher)
        self.assertEqual(list((self.path / "tmp").iterdir()), [])


class ClusterRig(LauncherOfJobs):
    """Tasks of one TF_CONFIG, each under a launcher of its own, on one host."""

    def file(self, train="{delivery: queue}"):
        file = self.path / "pipeline.yaml"
        streams = {"train": ("3000", train),
                   "test": ("100", "{evaluation_shards: 4, auto_shard: DATA}")}
        text = "".join(f"  {name}:\n    dataset: [{{range: {rows}}}, {{batch: 10}}]\n"
                       f"    distribute: {distribute}\n    deliver: {{epochs: 1}}\n"
                       for name, (rows, distribute) in streams.items())
        file.write_text(f"seed: 1\nstreams:\n{text}")
        return str(file)

    def launchers(self):
        return [process for process in self.processes if process.args[0] == sys.executable]

    def servers(self):
        return [pid for launcher in self.launchers()
                for pid in self.pids(descendants(launcher.pid), TUNDISH, "serve")]

    def end_well(self, launchers):
        for launcher in launchers:
            self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertEqual(list((self.path / "tmp").iterdir()), [])

    def wait_for_file(self, name):
        while not (self.path / name).exists():
            self.assertEqual({process.poll() for process in self.launchers()}, {None})
            time.sleep(0.02)


class LauncherOfCluster(ClusterRig):
    """A queue's workers beside parameter servers."""

    CLUSTER = {"chief": ["localhost:1"], "worker": ["localhost:2", "localhost:3"],
               "ps": ["localhost:4"]}

    def task(self, file, kind, index, script, *options):
        """Its trainer prints to a file that is named after it."""
        config = json.dumps({"cluster": self.CLUSTER, "task": {"type": kind, "index": index}})
        into = f"exec >{self.path}/out.{kind}-{index}.$TORCHELASTIC_RESTART_COUNT; {script}"
        return self.job(file, 1, into, *options, TF_CONFIG=config)

    def wait_for_batches(self, task, restart, count):
        while self.out(task, restart).count("batch ") < count:
            self.assertEqual({process.poll() for process in self.launchers()}, {None})
            time.sleep(0.02)

    def test_counts_every_row_though_a_worker_is_killed_twice(self):
        file = self.file()
        mortal = (f"if [ $TORCHELASTIC_RESTART_COUNT -lt 2 ]; then exec $READER --batches 5 --hold; fi;"
                  f" until [ -e {self.path}/go ]; do sleep 0.02; done; exec $READER --delay-ms 1")
        evaluate = "exec $READER"
        chief = self.task(file, "chief", 0, evaluate, "--stream", "test")
        evaluator = self.task(file, "evaluator", 0, evaluate, "--stream", "test")
        ps = self.task(file, "ps", 0, f"until [ -e {self.path}/end ]; do sleep 0.02; done")
        workers = [self.task(file, "worker", index, mortal, "--stream", "train", "--max-restarts", "2")
                   for index in range(2)]
        for done in (chief, evaluator):
            self.assertEqual(self.status_of(done), 0, self.log())
        for kind in ("chief-0", "evaluator-0"):
            self.assertEqual(self.all_rows([kind]), list(range(100)))
        self.processes = [process for process in self.processes if process not in (chief, evaluator)]
        for restart in range(2):
            for index in range(2):
                self.wait_for_batches(f"worker-{index}", restart, 5)
            self.assertEqual(len(self.servers()), 1, "workers of one host share a server")
            for launcher in workers:
                for pid in self.pids(descendants(launcher.pid), READER):
                    os.kill(pid, signal.SIGKILL)
        (self.path / "go").touch()
        for launcher in workers:
            self.assertEqual(self.status_of(launcher), 0, self.log())
        self.assertEqual(self.all_rows(["worker-0", "worker-1"]), list(range(3000)))
        (self.path / "end").touch()
        self.end_well([ps])

    def test_keeps_a_server_as_long_as_any_worker_reads(self):
        file, gate = self.file(), "until [ -e {} ]; do sleep 0.02; done"
        first = self.task(file, "worker", 0, f"$READER --batches 5; {gate.format(self.path / 'go')};"
                                             f" touch {self.path}/ended", "--stream", "train")
        self.wait_for_batches("worker-0", 0, 5)
        second = self.task(file, "worker", 1, f"touch {self.path}/begun;"
                           f" {gate.format(self.path / 'ended')}; exec $READER", "--stream", "train")
        self.wait_for_file("begun")
        (self.path / "go").touch()
        self.end_well([second, first])
        self.assertEqual(self.all_rows(["worker-0", "worker-1"]), list(range(3000)))

    def test_tells_a_worker_that_comes_late_that_a_queue_is_over(self):
        file = self.file()
        first = self.task(file, "worker", 0, "exec $READER", "--stream", "train")
        while "end_of_stream" not in self.out("worker-0"):
            self.assertIsNone(first.poll(), self.log())
            time.sleep(0.02)
        second = self.task(file, "worker", 1, "exec $READER", "--stream", "train")
        self.end_well([second, first])
        self.assertEqual(self.all_rows(["worker-0", "worker-1"]), list(range(3000)))
        self.assertNotIn("batch", self.out("worker-1"))

    def test_gives_each_worker_all_rows_where_there_is_no_queue(self):
        for train in ("{}", "{from_function: true}"):
            with self.subTest(train=train):
                file = self.file(train)
                gate = f"touch {self.path}/$TUNDISH_SESSION; until [ -e {self.path}/worker-0 -a -e" \
                       f" {self.path}/worker-1 ]; do sleep 0.02; done; exec $READER"
                workers = [self.task(file, "worker", index, gate, "--stream", "train")
                           for index in range(2)]
                self.end_well(workers)
                for index in range(2):
                    self.assertEqual(self.all_rows([f"worker-{index}"]), list(range(3000)))
                    (self.path / f"worker-{index}").unlink()
                    (self.path / f"out.worker-{index}.0").unlink()

    def test_waits_for_nobody_when_it_is_told_to_end(self):
        leave = "trap 'exit 0' TERM; touch $1; while :; do sleep 0.02; done"
        first = self.task(self.file(), "worker", 0, leave.replace("$1", f"{self.path}/here"),
                          "--stream", "train")
        self.wait_for_file("here")
        first.send_signal(signal.SIGTERM)
        self.end_well([first])
        self.assertNotIn("have not come", self.log())

    def test_serves_anew_after_a_launcher_that_was_killed(self):
        file = self.file()
        first = self.task(file, "worker", 0, "exec $READER --batches 5 --hold", "--stream", "train")
        self.wait_for_batches("worker-0", 0, 5)
        first.kill()
        first.wait()
        (self.path / "out.worker-0.0").unlink()
        self.end_well([self.task(file, "worker", index, "exec $READER", "--stream", "train")
                       for index in range(2)])
        self.assertEqual(self.all_rows(["worker-0", "worker-1"]), list(range(3000)))


class LauncherOfHost(ClusterRig):
    """Workers that all have the same batches, without parameter servers."""

    def launch_tasks(self, script):
        """The second comes first. Trainers print to a file that is named after their rank."""
        file, workers = self.file("{replicas: 2}"), {"worker": ["localhost:2", "localhost:3"]}
        configs = [json.dumps({"cluster": workers, "task": {"type": "worker", "index": index}})
                   for index in (1, 0)]
        return [self.job(file, 2, script, "--stream", "train", TF_CONFIG=config) for config in configs]

    def test_share_a_server_whose_replicas_they_are(self):
        launchers = self.launch_tasks(
            f"echo $TF_CONFIG >{self.path}/task.$RANK; touch {self.path}/begun.$RANK;"
            f" until [ -e {self.path}/go ]; do sleep 0.02; done; exec $READER")
        for rank in (0, 1):
            self.wait_for_file(f"begun.{rank}")
        self.assertEqual(len(self.servers()), 1)
        (self.path / "go").touch()
        self.end_well(launchers)
        rows = [self.all_rows([rank]) for rank in (0, 1)]
        self.assertEqual([len(of_one) for of_one in rows], [1500, 1500])
        self.assertEqual(sorted(rows[0] + rows[1]), list(range(3000)))
        for rank in (0, 1):
            config = json.loads((self.path / f"task.{rank}").read_text())
            self.assertEqual(config["task"], {"type": "worker", "index": rank})

    def test_end_with_the_first_that_fails(self):
        launchers = self.launch_tasks("if [ $RANK = 1 ]; then exit 7; fi; exec $READER --batches 5 --hold")
        for launcher in launchers:
            self.assertEqual(self.status_of(launcher), 7, self.log())
        self.assertEqual(list((self.path / "tmp").iterdir()), [])


@unittest.skipIf(why_not(), why_not())
class LauncherOfNodes(LauncherRig):
    """A server of several is killed: all that read from the others are told why their job ends."""

    def launch_nodes(self, count, **environment):
        (self.path / "tmp").mkdir()
        file = self.pipeline(SHUFFLED, "{replicas: 1}", "{epochs: 100000}")
        script = f"exec {READER} --delay-ms 2 >{self.path}/out.$RANK"
        launcher = self.start(
            [sys.executable, "-B", str(LAUNCH), file, "--tundish", TUNDISH, "--nodes", str(count),
             "--replicas", "1", "--admin", "none", "--cache", str(self.path / "cache"), "--", "sh",
             "-c", script],
            TMPDIR=str(self.path / "tmp"), **environment,
        )
        while not all("batch 0 5 " in self.out(rank) for rank in range(count)):
            self.assertIsNone(launcher.poll())
            time.sleep(0.02)
        started = descendants(launcher.pid)
        for pid in started:
            self.addCleanup(end, pid)
        return launcher, started

    def out(self, rank):
        path = self.path / f"out.{rank}"
        return path.read_text() if path.exists() else ""

    def lose_a_server(self, count, **environment):
        # Between mpirun's signals; a second is little on a machine that is busy.
        launcher, started = self.launch_nodes(
            count, OMPI_MCA_odls_base_sigkill_timeout="3", **environment)
        servers = self.pids(started, TUNDISH, "serve")
        self.assertEqual(len(servers), count)
        ranks = {rank_of(pid): pid for pid in servers}
        os.kill(ranks[count - 1], signal.SIGKILL)
        self.assertEqual(launcher.wait(timeout=DEADLINE_S), 128 + signal.SIGKILL)
        for rank in range(count - 1):
            # From the launcher's word to the server, or by its silence, whichever is first.
            last = self.out(rank).splitlines()[-1]
            self.assertTrue(last.startswith("status E_PEER_LOST "), f"rank {rank}: {last}")
        self.assert_nothing_is_left(started)

    def test_tells_the_other_nodes_trainers_of_a_killed_server(self):
        self.lose_a_server(2)

    def test_tells_two_others_over_a_connection_that_breaks(self):
        self.lose_a_server(3, OMPI_MCA_btl="self,tcp", OMPI_MCA_btl_tcp_if_include="lo")


def rank_of(pid):
    return int(variable_of(pid, "OMPI_COMM_WORLD_RANK"))


if __name__ == "__main__":
    unittest.main()
