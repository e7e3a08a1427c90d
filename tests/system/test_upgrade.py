"""Servers and trainers of this tree and of the last release work together, or refuse with a sentence."""

import os
import platform
import socket
import struct
import subprocess
import tarfile
import threading
import unittest
from pathlib import Path

from rig import READER, TUNDISH, Rig, batches, place, stop

RECORDED = Path(__file__).parent / "last_release" / f"{platform.machine()}.tar.xz"
ROWS, BATCH = 1000, 10
STAGES = [f"range: {ROWS}", "shuffle: {buffer_size: 100, seed: 3}", f"batch: {BATCH}"]

# As sdk/shm/channel.h has them: a message's head, and WELCOME.
HEAD, WELCOME = struct.Struct("<IHHiIQQQ"), struct.Struct("<HHIQQQIIIIQQ128sq")
MAGIC, WELCOMES = 0x43444E54, 64


class FakeServer:
    """Lets a trainer in with a protocol of later days."""

    def __init__(self, path, protocol):
        self.listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.listener.bind(path)
        self.listener.listen()
        self.welcome = WELCOME.pack(protocol, *[0] * 11, b"train", -1)
        self.thread = threading.Thread(target=self.welcome_one)

    def welcome_one(self):
        connection, _ = self.listener.accept()
        with connection:
            connection.recv(1 << 14)
            connection.send(HEAD.pack(MAGIC, WELCOMES, 0, 0, len(self.welcome), 0, 0, 0) + self.welcome)
            connection.recv(1 << 14)

    def __enter__(self):
        self.thread.start()

    def __exit__(self, *_):
        self.thread.join()
        self.listener.close()


class Upgrade(Rig):
    def setUp(self):
        super().setUp()
        if not RECORDED.exists():
            self.skipTest(f"no release is recorded for {platform.machine()}")
        self.old = self.path / "old"
        with tarfile.open(RECORDED) as archive:
            archive.extractall(self.old)
        # Their run paths lead to the tree's own library.
        self.libraries = {"LD_LIBRARY_PATH": str(self.old)}
        said = self.run_old("tundish", "--version")
        if said.returncode:
            self.skipTest(f"the last release does not run here: {said.stderr.strip()}")
        self.file = self.pipeline(STAGES, "{replicas: 2}", "{epochs: 2}")

    def run_old(self, program, *words):
        environment = self.environment | self.libraries
        return subprocess.run([self.old / program, *words], env=environment, capture_output=True, text=True)

    def serve_old(self, *options):
        return self.start_until([str(self.old / "tundish"), "serve", self.file, *options], "log",
                                lambda word: word == "ready\n")[0]

    def read_old(self, *options, replica=0):
        words = [str(self.old / "reader"), *options]
        return self.start(words, TUNDISH_REPLICA=str(replica), TUNDISH_GROUP="default", **self.libraries)

    def assert_whole(self, readers):
        """They got what the pipeline gives, each its own."""
        expected = self.peek(self.file, "--epochs", "2")
        for replica, lines in enumerate(self.all_lines(readers)):
            self.assertEqual(batches(lines), expected[replica])
            self.assertEqual(lines[-1], "end_of_stream")

    def test_the_recorded_programs_are_others(self):
        said = (self.old / "version").read_text()
        self.assertRegex(said, r"^tundish \d+\.\d+\.\d+\ncommit [0-9a-f]{40}\n$")
        for program, now in (("tundish", TUNDISH), ("reader", READER)):
            self.assertNotEqual((self.old / program).read_bytes(), Path(now).read_bytes())

    def test_old_trainers_read_from_a_new_server(self):
        self.serve(self.file)
        self.assert_whole([self.read_old(replica=0), self.read_old(replica=1)])

    def test_new_trainers_read_from_an_old_server(self):
        self.serve_old()
        self.assert_whole([self.read(replica=0), self.read(replica=1)])

    def test_trainers_of_both_are_a_group(self):
        self.serve(self.file)
        self.assert_whole([self.read_old(replica=0), self.read(replica=1)])

    def test_an_old_place_opens_in_a_new_server_and_a_new_one_in_no_old_server(self):
        self.file = self.pipeline(STAGES)
        expected = self.peek(self.file)[0]
        server = self.serve_old()
        token = place(self.lines(self.read_old("--batches", "7")))
        stop(server)
        server = self.serve(self.file)
        self.assertEqual(batches(self.lines(self.read("--place", token))), expected[7:])
        stop(server)
        server = self.serve(self.file)
        token = place(self.lines(self.read("--batches", "7")))
        stop(server)
        self.serve_old()
        self.assertRegex(self.lines(self.read_old("--place", token))[-1], "E_PLACE .*saved by another version of Tundish")

    def test_old_trainers_outlive_the_upgrade_of_their_server(self):
        (self.path / "state").mkdir()
        options = ("--state", str(self.path / "state"))
        server = self.serve_old(*options)
        readers = [self.read_old("--survive", "--delay-ms", "5", replica=replica) for replica in range(2)]
        for reader in readers:
            self.wait_for_line(reader, "batch ")
        server.kill()
        server.wait()
        self.serve(self.file, *options)
        lines = [self.whole(reader) for reader in readers]
        expected = self.peek(self.file, "--epochs", "2")
        self.assertEqual([batches(each) for each in lines], [expected[0], expected[1]])

    def test_metrics_of_another_version_are_shown_or_refused_with_a_sentence(self):
        for serve, status in (
            (self.serve_old, lambda: self.run_new("status")),
            (lambda: self.serve(self.file), lambda: self.run_old("tundish", "status")),
        ):
            server = serve()
            done = status()
            stop(server)
            if done.returncode != 0:
                self.assertEqual(done.returncode, 3)
                self.assertIn("the metrics have another version", done.stderr)

    def run_new(self, *words):
        return subprocess.run([TUNDISH, *words], env=self.environment, capture_output=True, text=True)

    def test_a_server_of_another_protocol_is_refused_with_a_sentence(self):
        for read in (self.read_old, self.read):
            with FakeServer(self.socket, protocol=9):
                lines = self.lines(read())
            self.assertRegex(lines[-1], "status E_LAYOUT the server uses protocol 9, this library 1 to 1")
            os.unlink(self.socket)

    def test_an_old_operators_stop_ends_a_new_server(self):
        server = self.serve(self.file)
        self.assertEqual(self.run_old("tundish", "stop").returncode, 0)
        self.assertEqual(server.wait(), 0)


if __name__ == "__main__":
    unittest.main()
