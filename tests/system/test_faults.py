"""Faults in real processes; after each, rows are counted and nothing is left behind."""

import contextlib
import os
import signal
import unittest

from rig import DEADLINE_S, TUNDISH, Rig, batches, may_mount, sleep, stop

SHUFFLED = ["range: 1000", "shuffle: {buffer_size: 100}", "batch: 16"]
STEPS = 63


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
        self.check_nothing_is_left()

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
        self.wait_for_log("server.stats was cut short")
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
        self.assertIn(f"{table.name} was cut short", lines[-1])
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
