"""The cache on disk of files at URLs: what came once does not come again, whatever is done to it."""

import random
import signal
import subprocess
import threading
import unittest

from rig import DEADLINE_S, TUNDISH, batches, may_mount, stop
from test_remote import LINES, RemoteRig, numbers


class RemoteCache(RemoteRig):
    def setUp(self):
        super().setUp()
        self.kept = self.path / "kept"

    def more(self, more=""):
        return f", cache: '{self.kept}', cache_bytes: 64MiB{more}"

    def put_lines(self):
        self.put_numbers("a.txt", 6000)
        self.put_numbers("b.txt", 700, 6000)

    def lines_there(self, more=""):
        return self.stream([stage.replace("{}", "s3://bucket") for stage in LINES], self.more(more))

    def lines_here(self):
        return self.rows(self.stream([stage.replace("{}", str(self.path)) for stage in LINES]))

    def fetched(self):
        """(file, range) of the requests for bytes since the last call."""
        found = [(target, span) for method, target, span in self.store.requests if span]
        self.store.requests.clear()
        return found

    def parts(self):
        return sorted(path for path in self.kept.glob("??/*"))

    def test_what_came_once_does_not_come_again(self):
        self.put_lines()
        here = self.lines_here()
        self.assertEqual(self.rows(self.lines_there()), here)
        self.assertGreater(len(self.fetched()), 6)
        self.assertEqual(self.rows(self.lines_there()), here)
        self.assertEqual(self.fetched(), [])
        self.store.put("/bucket/b.txt", (self.path / "a.txt").read_bytes())
        (self.path / "b.txt").write_bytes((self.path / "a.txt").read_bytes())
        self.assertEqual(self.rows(self.lines_there()), self.lines_here())
        self.assertEqual({target for target, _ in self.fetched()}, {"/bucket/b.txt"})
        self.assertEqual(self.store.refused, [])

    def test_what_is_damaged_comes_again(self):
        self.put_lines()
        here = self.lines_here()
        self.rows(self.lines_there())
        parts = self.parts()
        self.assertGreater(len(parts), 6)
        self.fetched()
        draw = random.Random(7)
        for number, part in enumerate(parts):
            data = bytearray(part.read_bytes())
            if number % 3 == 0:
                data[draw.randrange(len(data))] ^= 1
            elif number % 3 == 1:
                del data[draw.randrange(len(data)) :]
            else:
                data = draw.randbytes(len(data))
            part.write_bytes(data)
        self.assertEqual(self.rows(self.lines_there()), here)
        self.assertEqual(len(self.fetched()), len(parts))
        self.assertEqual(self.rows(self.lines_there()), here)
        self.assertEqual(self.fetched(), [])

    def test_a_part_under_another_s_name_is_not_taken(self):
        self.put_lines()
        here = self.lines_here()
        self.rows(self.lines_there())
        parts = self.parts()
        whole = [part.read_bytes() for part in parts]
        for part, data in zip(parts, whole[1:] + whole[:1]):
            part.write_bytes(data)
        self.assertEqual(self.rows(self.lines_there()), here)

    def test_a_server_that_is_killed_while_it_writes_loses_nothing(self):
        self.put_lines()
        file = self.stream(numbers("a.txt", "b.txt") + ["batch: 16"], self.more())
        expected = self.peek(file)[0]
        for part in self.parts():
            part.unlink()
        event = threading.Event()
        self.addCleanup(event.set)
        self.store.fail("hang", 999, "txt", event)
        server = self.start([TUNDISH, "serve", file])
        self.wait_for(lambda: any(part.suffix == ".new" and part.stat().st_size for part in self.parts()))
        stop(server, signal.SIGKILL)
        self.assertTrue(any(part.suffix == ".new" for part in self.parts()))
        self.store.faults.clear()
        event.set()
        self.serve(file)
        self.assertEqual(batches(self.lines(self.read())), expected)
        self.assertFalse(any(part.suffix == ".new" for part in self.parts()))

    def wait_for(self, is_so):
        event = threading.Event()
        for _ in range(DEADLINE_S * 10):
            if is_so():
                return
            event.wait(0.1)
        self.fail("never came")

    def test_servers_of_a_node_fetch_each_part_once(self):
        self.put_lines()
        here = self.lines_here()
        file = self.lines_there()
        command = [TUNDISH, "peek", file, "--json"]
        peeks = [subprocess.Popen(command, env=self.environment, stdout=subprocess.PIPE, text=True)
                 for _ in range(3)]
        for peek in peeks:
            out = peek.communicate(timeout=DEADLINE_S)[0]
            self.assertEqual([line for line in out.splitlines() if '"columns"' in line], here)
        fetched = self.fetched()
        self.assertEqual(len(fetched), len(set(fetched)))

    def test_it_stays_below_its_bound(self):
        self.put_lines()
        here = self.lines_here()
        more = f", cache: '{self.kept}', cache_bytes: 512KiB, connections: 1"
        file = self.stream([stage.replace("{}", "s3://bucket") for stage in LINES], more)
        self.assertEqual(self.rows(file), here)
        self.assertGreater((self.path / "a.txt").stat().st_size, 512 << 10)
        self.assertGreater(len(self.parts()), 3)
        self.assertLessEqual(sum(part.stat().st_size for part in self.parts()), 512 << 10)
        self.assertEqual(self.rows(file), here)

    @unittest.skipUnless(may_mount(), "mounts nothing")
    def test_a_full_disk_turns_it_off_and_loses_nothing(self):
        self.put_lines()
        file = self.stream(numbers("a.txt", "b.txt") + ["batch: 16"], self.more())
        expected = self.peek(file)[0]
        self.kept.rename(self.path / "before")
        self.kept.mkdir()
        self.serve_with_little(self.kept, "200k", file)
        self.assertEqual(batches(self.lines(self.read())), expected)
        log = (self.path / "log").read_text()
        self.assertEqual(log.count("is not written any more"), 1, log)

    def test_files_that_rows_name_come_once(self):
        for i in range(90):
            self.put(f"in/{i:03}.bin", random.Random(i).randbytes(i * 50))
        stages = ["list_files: {file_pattern: '{}/in/*.bin', shuffle: false}", "repeat: 3", "read_file",
                  "batch: 30"]
        here = self.rows(self.stream([stage.replace("{}", str(self.path)) for stage in stages]))
        there = self.stream([stage.replace("{}", "s3://bucket") for stage in stages], self.more())
        self.assertEqual(self.rows(there), here)
        self.assertLessEqual(len(self.fetched()), 91)  # the empty one is asked for again

    def test_a_folder_that_cannot_be_is_refused(self):
        self.put_lines()
        self.kept.write_text("a file")
        self.assertIn("cannot open the cache", self.complaint(self.lines_there()))
        self.assertIn("cache is a folder of this machine", self.complaint(
            self.stream(LINES, ", cache: 's3://bucket/x'")))


if __name__ == "__main__":
    unittest.main()
