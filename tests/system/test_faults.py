"""Faults in real processes; after each, rows are counted and nothing is left behind."""

import base64
import contextlib
import gzip
import os
import shutil
import signal
import subprocess
import unittest
from pathlib import Path

from rig import DEADLINE_S, TUNDISH, Rig, batches, may_mount, sleep, stop

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
STEPS = 63
HAS_SANITIZER = any(name in Path(TUNDISH).read_bytes() for name in (b"__asan_init", b"__tsan_init"))


@contextlib.contextmanager
def full_pipe():
    """What writes to it waits."""
    read_end, write_end = os.pipe()
    os.set_blocking(write_end, False)
    with contextlib.suppress(BlockingIOError):
        while True:
            os.write(write_end, b"." * 4096)
    os.set_blocking(write_end, True)
    try:
        yield write_end
    finally:
        os.close(write_end)
        os.close(read_end)


class Faults(Rig):
    def check_nothing_is_left(self):
        left = {name for name in os.listdir(self.path)} - {"pipeline.yaml", "log", "cache"}
        self.assertEqual(left - {"data"}, set())
        self.assertEqual(self.left_in_shared_memory(), [])

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_a_full_dev_shm_is_said_and_memfd_taken(self):
        file = self.pipeline(SHUFFLED)
        expected = self.peek(file)[0]
        server = self.serve_with_little("/dev/shm", "16k", file)
        self.assertEqual(batches(self.lines(self.read())), expected)
        self.assertEqual(stop(server), 0)
        self.assertIn("/dev/shm has ", self.log())
        self.assertEqual(self.log().count("using memfd"), 1, self.log())
        self.check_nothing_is_left()

    def test_segments_of_dead_servers_are_swept_at_start_and_counted(self):
        dead = subprocess.Popen(["true"])
        dead.wait()
        left = Path(f"/dev/shm/tundish-{dead.pid}-0123")
        self.addCleanup(left.unlink, missing_ok=True)
        file = self.pipeline(SHUFFLED)
        for _ in range(20):  # a server of another test may start now and be the one that sweeps
            left.touch(mode=0o600)
            server = self.serve(file)
            self.assertFalse(left.exists())
            if "of dead servers" in self.log():
                break
            stop(server)
        self.assertRegex(self.log(), r"removed \d+ shared memory segments? of dead servers")

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_a_full_disk_for_the_cache_costs_time_only(self):
        (self.path / "data").write_text("".join(f"{i}\n" for i in range(20000)))
        (self.path / "cache").mkdir(mode=0o700)
        stages = [
            "csv: {filenames: data, record_defaults: [int64], column_names: [value]}",
            "batch: 500",
        ]
        file = self.pipeline(stages)
        server = self.serve_with_little(self.path / "cache", "4k", file)
        rows = [v for _, _, values in batches(self.lines(self.read())) for v in values]
        self.assertEqual(rows, list(range(20000)))
        self.assertEqual(stop(server), 0)

    def test_a_server_that_stands_still_goes_on(self):
        file = self.pipeline(SHUFFLED)
        expected = self.peek(file)[0]
        server = self.serve(file)
        reader = self.read("--delay-ms", "2")
        self.wait_for_line(reader, "batch 0 5 ")
        server.send_signal(signal.SIGSTOP)
        sleep(0.5)
        server.send_signal(signal.SIGCONT)
        self.assertEqual(batches(self.whole(reader)), expected)
        self.assertEqual(stop(server), 0)
        self.check_nothing_is_left()

    def test_a_trainer_that_stands_still_is_not_dead(self):
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 1, rejoin: 100ms}")
        expected = self.peek(file)
        server = self.serve(file)
        still, other = [self.read("--delay-ms", "2", replica=replica) for replica in range(2)]
        self.wait_for_line(still, "batch 0 5 ")
        still.send_signal(signal.SIGSTOP)
        sleep(1)
        still.send_signal(signal.SIGCONT)
        for replica, reader in enumerate((still, other)):
            self.assertEqual(batches(self.whole(reader)), expected[replica])
        self.assertNotIn("has died", self.log())
        self.assertEqual(stop(server), 0)
        self.check_nothing_is_left()

    def change_while_served(self, change):
        """The last lines of a trainer whose file was changed when it had a few batches."""
        path = self.path / "data"
        path.write_text("".join(f"{i:08}\n" for i in range(200000)))
        stages = [
            "csv: {filenames: data, record_defaults: [int64], column_names: [value]}",
            "batch: 100",
        ]
        server = self.serve(self.pipeline(stages, deliver="{epochs: 1, slots: 3}"))
        reader = self.read_paced()
        reader.take(5)
        change(path)
        lines = reader.finish()
        rows = [v for _, _, values in batches(lines) for v in values]
        self.assertEqual(rows, list(range(len(rows))))
        self.assertIsNone(server.poll())
        return lines[-1], len(rows)

    def test_the_wait_in_which_a_trainer_died_stays_counted(self):
        self.serve(self.pipeline(["range: 1000", "batch: 10"], "{replicas: 2}"))
        self.read_paced(replica=1)
        reader = self.read()  # it waits for ever: the other takes nothing
        before = self.waited_s(lambda figures: figures["attached"] and figures["wait_seconds"] > 0.1)
        stop(reader, signal.SIGKILL)
        after = self.waited_s(lambda figures: not figures["attached"])
        self.assertGreaterEqual(after, before)

    def waited_s(self, is_it):
        """Of the trainer of replica 0, when its figures are so."""
        while True:
            for figures in self.figures()["readers"]:
                if figures["replica"] == "0" and is_it(figures):
                    return figures["wait_seconds"]
            sleep(0.01)

    def test_a_file_that_was_cut_short_is_an_error_or_all_was_read(self):
        last, rows = self.change_while_served(lambda path: os.truncate(path, 1000))
        self.assertTrue("E_DATA" in last and "data" in last, last)
        self.assertLess(rows, 200000)

    def test_a_file_that_was_deleted_is_read_to_its_end(self):
        last, rows = self.change_while_served(os.unlink)
        self.assertTrue(rows == 200000 or "E_" in last, last)

    def test_a_file_that_was_replaced_is_never_mixed(self):
        def replace(path):
            other = path.with_name("cache-other")
            other.write_text("".join(f"{i:08}\n" for i in range(500000, 700000)))
            other.rename(path)

        last, rows = self.change_while_served(replace)
        self.assertTrue(rows == 200000 or "E_" in last, last)

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_the_memory_of_its_control_groups_is_a_limit_with_the_arithmetic(self):
        serve = [TUNDISH, "serve", self.pipeline(["range: 100", "batch: 10"])]
        for line, folder, limits in (
            ("0::/job/step", "job/step", ("memory.max", "memory.current")),
            ("0::/job/step", "job", ("memory.max", "memory.current")),
            ("4:memory:/job/step", "memory/job/step",
             ("memory.limit_in_bytes", "memory.usage_in_bytes")),
            ("4:memory:/job/step", "memory/job",
             ("memory.limit_in_bytes", "memory.usage_in_bytes")),
            ("4:cpu,memory:/of/the/host", "cpu,memory",
             ("memory.limit_in_bytes", "memory.usage_in_bytes")),
        ):
            with self.subTest(line=line, folder=folder):
                limit, used = (f"{folder}/{name}" for name in limits)
                done = self.in_groups(line, {limit: 3000, used: 1000}, *serve)
                said = done.stderr
                self.assertEqual(done.returncode, 3, said)
                self.assertRegex(said, "1 lanes of 8 slots need .* room for 2000 .*control group "
                                 f"/sys/fs/cgroup/{folder} has a limit of 3000, of which 1000 are")
                self.assertNotIn("ready", said)

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_the_memory_of_a_job_of_slurm_is_a_limit_with_the_option_that_sets_it(self):
        serve = [TUNDISH, "serve", self.pipeline(["range: 100", "batch: 10"])]
        for line, folder, limits in (
            ("0::/system.slice/slurmstepd.scope/job_7/step_0/user/task_0",
             "system.slice/slurmstepd.scope/job_7", ("memory.max", "memory.current")),
            ("4:memory:/slurm/uid_1000/job_7/step_batch", "memory/slurm/uid_1000/job_7",
             ("memory.limit_in_bytes", "memory.usage_in_bytes")),
        ):
            with self.subTest(line=line):
                limit, used = (f"{folder}/{name}" for name in limits)
                said = self.in_groups(line, {limit: 3000, used: 1000}, *serve).stderr
                self.assertRegex(said, f"/{folder} has a limit of 3000, of which 1000 are in use; "
                                 "it is what --mem asks Slurm for")

    @unittest.skipUnless(may_mount(), "mounting is not permitted here")
    def test_a_batch_that_the_plan_finds_too_large_is_refused(self):
        plan = [TUNDISH, "plan", self.pipeline(["range: 50000000", "batch: 40000000"])]
        files = {"job/memory.max": "100000000", "job/memory.current": "0"}
        done = self.in_groups("0::/job/step", files, *plan)
        self.assertEqual(done.returncode, 3)
        self.assertRegex(done.stderr, "40000000 rows needs 320000000 bytes .* room for 100000000 ")
        files["job/memory.max"] = "max"
        done = self.in_groups("0::/job/step", files, *plan)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        for key in ("max_batch_bytes", "memory_limit"):
            for command in ("plan", "serve"):
                file = self.pipeline(["range: 100", "batch: 50"], deliver=f"{{{key}: 399}}")
                done = subprocess.run([TUNDISH, command, file], env=self.environment,
                                      capture_output=True, text=True, timeout=DEADLINE_S)
                self.assertEqual(done.returncode, 3)
                self.assertIn(f"room for 399 ({key})", done.stderr)

    def test_a_batch_of_all_rows_of_a_small_data_set_is_served(self):
        for stages in (["range: 10", "repeat: 2", "batch: 1000000000"],
                       ["range: 10", "batch: 1000000000", "repeat: 2"]):
            with self.subTest(stages=stages):
                file = self.pipeline(stages, "{replicas: 2}", "{epochs: 1, memory_limit: 1MiB}")
                done = subprocess.run([TUNDISH, "plan", file], env=self.environment,
                                      capture_output=True, text=True, timeout=DEADLINE_S)
                self.assertEqual(done.returncode, 0, done.stderr)
                expected = self.peek(file)
                server = self.serve(file)
                readers = [self.read(replica=replica) for replica in range(2)]
                for replica, reader in enumerate(readers):
                    self.assertEqual(batches(self.whole(reader)), expected[replica])
                self.assertEqual(stop(server), 0)

    def test_what_is_unpacked_stays_within_the_limits(self):
        packed = base64.urlsafe_b64encode(gzip.compress(bytes(64 << 20))).decode()
        (self.path / "rows.txt").write_text(f"{packed}\n" * 4)
        stages = ["text_line: {filenames: rows.txt}", "decode_base64",
                  "decode_compressed: {compression_type: GZIP}", "string_length", "batch: 4"]
        for key, size, said in (("memory_limit", "1MiB", "exceeds the 1048576 bytes"),
                                ("max_batch_bytes", "1MiB", "exceeds the 1048576 bytes"),
                                ("memory_limit", "100MiB", "texts of 4 rows exceed"),
                                ("memory_limit", "256MiB", None)):
            with self.subTest(key=key, size=size):
                file = self.pipeline(stages, deliver=f"{{{key}: {size}}}")
                done = subprocess.run([TUNDISH, "peek", file], env=self.environment,
                                      capture_output=True, text=True, timeout=DEADLINE_S)
                self.assertEqual(done.returncode, 1 if said else 0, done.stdout)
                self.assertIn(said or "67108864, 67108864", done.stdout)

    def test_threads_unpack_within_one_budget(self):
        """Batches of which each fits, and two do not, are all served; one that does not fit is said."""
        packed = base64.urlsafe_b64encode(gzip.compress(bytes(1 << 20))).decode()
        (self.path / "rows.txt").write_text(f"{packed}\n" * 40)
        for rows, said in ((4, None), (8, "texts of 8 rows exceed 5242880 bytes")):
            with self.subTest(rows=rows):
                file = self.pipeline(
                    ["text_line: {filenames: rows.txt}", "decode_base64",
                     "decode_compressed: {compression_type: GZIP}", "string_length",
                     "cast: int64", f"batch: {rows}"],
                    deliver="{epochs: 1, memory_limit: 8MiB}")
                server = self.serve(file, "--threads", "4")
                lines = self.lines(self.read())
                if said is None:
                    self.assertEqual([values for _, _, values in batches(lines)],
                                     [[1 << 20] * rows] * (40 // rows))
                else:
                    self.assertIn(said, lines[-1])
                self.assertEqual(stop(server), 0)

    @unittest.skipIf(HAS_SANITIZER, "a sanitizer takes most of the address space for itself")
    def test_little_address_space_is_said(self):
        """Whatever the limit is: a server says what it lacks, or serves."""
        file = self.pipeline(SHUFFLED)
        script = 'exec prlimit --as="$1" "$2" serve "$3" --threads 3 --ready-fd 1 2>&1'
        served, said = 0, 0
        for megabytes in (*range(60, 400, 20), *range(400, 560, 10), 4096):
            server = self.start(
                ["sh", "-c", script, "sh", str(megabytes << 20), TUNDISH, file])
            lines = []
            for line in server.stdout:
                lines.append(line)
                if line == "ready\n":
                    served += 1
                    server.terminate()
            status = server.wait(timeout=DEADLINE_S)
            self.assertIn(status, (0, 3, 127), lines)  # no signal; 127: nothing can be loaded
            said += status == 3
            self.assertTrue(status == 0 or lines, megabytes)
        self.assertGreater(served, 0)
        self.assertGreater(said, 0)

    def test_figures_that_were_cut_short_stop_nothing(self):
        file = self.pipeline(SHUFFLED, deliver="{epochs: 1, slots: 3}")
        expected = self.peek(file)[0]
        server = self.serve(file)
        reader = self.read_paced()
        reader.take(5)
        os.truncate(f"{self.socket}.stats", 0)
        self.assertEqual(batches(reader.finish()), expected)
        self.wait_for_log("server.stats: metrics are not available")
        self.assertEqual(stop(server), 0)
        self.check_nothing_is_left()

    def test_a_table_that_was_cut_short_is_an_error_and_built_again(self):
        (self.path / "data").write_text("".join(f"{i}\n" for i in range(50000)))
        stages = ["range: 50000", "integer_lookup: {columns: value, vocabulary: data}", "batch: 50"]
        file = self.pipeline(stages, deliver="{epochs: 1, slots: 3}")
        expected = self.peek(file)[0]
        server = self.serve(file)
        reader = self.read_paced()
        reader.take(5)
        (table,) = (self.path / "cache").glob("vocab-text-*")
        os.truncate(table, 4096)
        lines = reader.finish()
        self.assertEqual(batches(lines), expected[:len(batches(lines))])
        self.assertIn(f"{table.name} while it was in use", lines[-1])
        self.assertEqual(stop(server), 0)
        server = self.serve(file)
        self.assertEqual(batches(self.lines(self.read())), expected)
        self.assertEqual(stop(server), 0)

    def test_a_standard_error_that_nobody_reads_stops_nothing(self):
        file = self.pipeline(SHUFFLED)
        expected = self.peek(file)[0]
        with full_pipe() as stderr:
            server = self.serve(file, stderr=stderr)
            self.assertEqual(batches(self.lines(self.read())), expected)
            self.assertEqual(stop(server), 0)

    def test_a_socket_path_too_long_is_refused(self):
        self.environment["TUNDISH_SERVER"] = str(self.path / ("x" * 120))
        process = self.start([TUNDISH, "serve", self.pipeline(SHUFFLED)])
        self.assertNotEqual(process.wait(), 0)
        self.check_nothing_is_left()


if __name__ == "__main__":
    unittest.main()
