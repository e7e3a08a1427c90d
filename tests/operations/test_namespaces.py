"""Server and trainers in containers of their own, which share the folder of the socket and nothing else."""

import json
import os
import shutil
import signal
import subprocess
import sys
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("TUNDISH_BUILD", REPOSITORY / "build"))
os.environ["TUNDISH_PROGRAM"] = str(BUILD / "server" / "tundish")
os.environ["TUNDISH_READER"] = str(BUILD / "tests" / "system" / "reader")
sys.path.insert(0, str(REPOSITORY / "tests" / "system"))
from rig import READER, TUNDISH, Rig, batches  # noqa: E402

# Other processes, mounts, System V objects and host name, another /dev/shm.
CONTAINER = ["unshare", "--pid", "--fork", "--kill-child", "--mount", "--ipc", "--uts", "sh", "-euc"]
ENTER = 'mount -t proc proc /proc; mount -t tmpfs tmpfs /dev/shm; exec "$@"'
ROWS, BATCH = 1000, 10


def container(*options):
    return [CONTAINER[0], *options, *CONTAINER[1:], ENTER, "sh"]


class Containers(Rig):
    def setUp(self):
        super().setUp()
        if shutil.which("unshare") is None or subprocess.run(
            [*container(), "true"], capture_output=True
        ).returncode:
            self.skipTest("this user may make no namespaces")
        self.file = self.pipeline([f"range: {ROWS}", f"batch: {BATCH}"], "{replicas: 2}")

    def trainer(self, *options, replica):
        words = [*container(*options), READER, "--survive", "--delay-ms", "1"]
        return self.start(words, TUNDISH_REPLICA=str(replica))

    def assert_all_is_read(self, readers):
        values = [value for lines in self.all_lines(readers) for _, _, of in batches(lines) for value in of]
        self.assertEqual(sorted(values), list(range(ROWS)))

    def test_descriptors_pass_between_them(self):
        self.serve(self.file, before=container())
        self.assert_all_is_read([self.trainer(replica=replica) for replica in range(2)])

    def test_and_between_users_namespaces(self):
        self.serve(self.file, before=container())
        readers = [self.trainer("--user", "--map-root-user", replica=0), self.trainer(replica=1)]
        self.assert_all_is_read(readers)

    def test_from_a_server_in_a_users_namespace(self):
        self.serve(self.file, before=container("--user", "--map-root-user"))
        self.assert_all_is_read([self.trainer(replica=replica) for replica in range(2)])

    def test_sealed_memory_passes_too(self):
        text = Path(self.file).read_text()
        Path(self.file).write_text(text.replace("{epochs: 1}", "{epochs: 1, memory: memfd}"))
        self.serve(self.file, before=container())
        self.assert_all_is_read([self.trainer(replica=replica) for replica in range(2)])

    def test_a_death_is_noticed_without_a_process_number(self):
        """The server sees 0 for the number of a process that its own namespace does not have."""
        self.serve(self.file, before=container())
        first = self.trainer(replica=0)
        self.wait_for_line(first, "batch ")  # else nobody of the group is left, and all begin again together
        held = 5  # of which four are given back
        words = [*container(), READER, "--batches", str(held), "--hold"]
        killed = self.start(words, TUNDISH_REPLICA="1")
        self.wait_for_line(killed, "place ")
        killed.send_signal(signal.SIGKILL)
        self.wait_for_log("replica 1")
        successor = self.trainer(replica=1)
        lines = self.all_lines([first, successor])
        rows = [value for _, _, values in batches(lines[1]) for value in values]
        self.assertEqual(len(rows), ROWS // 2 - (held - 1) * BATCH // 2)

    def test_its_life_and_death_are_seen_from_outside(self):
        """Each first process of a container has the number 1."""
        server = self.serve(self.file, before=container())
        self.assertEqual(self.status(), (0, True))
        server.kill()
        server.wait()
        self.assertEqual(self.status(), (3, False))

    def status(self):
        """(exit status, whether the server is alive), as `tundish status` in another container has it."""
        words = [*container(), TUNDISH, "status", "--json", "--interval", "1"]
        done = subprocess.run(words, env=self.environment, capture_output=True, text=True)
        server = json.loads(done.stdout)["server"]
        return done.returncode, server["alive"]

    def test_a_server_that_has_no_number_here_is_named(self):
        self.serve(self.file, before=container())
        for words in (["serve", self.file], ["stop"]):
            command = [*container(), TUNDISH, *words]
            done = subprocess.run(command, env=self.environment, capture_output=True, text=True)
            self.assertEqual(done.returncode, 3, done.stderr)
            self.assertIn("in another container", done.stderr)


if __name__ == "__main__":
    unittest.main()
