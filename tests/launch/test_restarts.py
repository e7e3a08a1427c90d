"""How trainers are restarted, and how launchers learn of trainers that another one runs."""

import ast
import contextlib
import os
import signal
import socket
import subprocess
import tempfile
import unittest
from pathlib import Path

from program import SCRIPTS

from launch.processes import AWAITED
from launch.restarts import RestartBarrier, SpreadTrainerGroup, restart_delay
from launch.shared import TrainerRegistry
from launch.trainers import supervise


class Registries(unittest.TestCase):
    def test_have_trainers_until_their_launcher_has_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            path = str(Path(folder, "task"))
            begun, ended = TrainerRegistry(path), TrainerRegistry(path)
            self.assertEqual(self.look(path), (None, None))
            begun.begin(7)
            self.assertEqual(self.look(path), (7, None))
            begun.end(7, 3)
            self.assertEqual(self.look(path), (7, None), "their launcher has not ended")
            os.close(begun.file)
            self.assertEqual(ended.look(), (None, 3))
            self.assertEqual(list(Path(folder).iterdir()), [])

    def look(self, path):
        """In another process: locks belong to a process."""
        script = f"from launch.shared import TrainerRegistry; print(TrainerRegistry({path!r}).look())"
        said = subprocess.check_output(["python3", "-B", "-c", script], text=True, cwd=SCRIPTS)
        return ast.literal_eval(said)


class EndedMeanwhile:
    """A trainer that ends well just after its launcher has looked."""

    returncode = None
    looks = 0

    def poll(self):
        self.looks += 1
        if self.looks == 2:
            self.returncode = 0
            os.kill(os.getpid(), signal.SIGCHLD)
        return self.returncode


class Running:
    """A trainer that runs."""

    returncode = None

    def poll(self):
        return self.returncode


class Barriers(unittest.TestCase):
    def setUp(self):
        before = signal.pthread_sigmask(signal.SIG_BLOCK, AWAITED)
        self.addCleanup(signal.pthread_sigmask, signal.SIG_SETMASK, before)
        self.addCleanup(self.drain)
        self.barrier = RestartBarrier(2)
        self.addCleanup(self.barrier.ours.close)
        self.addCleanup(self.barrier.servers.close)

    def drain(self):
        while signal.sigtimedwait(AWAITED, 0) is not None:
            pass

    def group(self, trainer, restarts=0):
        return SpreadTrainerGroup(None, range(1), 1, restarts, processes=[trainer], barrier=self.barrier)

    def sent(self):
        with contextlib.suppress(BlockingIOError):
            return self.barrier.servers.recv(100, socket.MSG_DONTWAIT)
        return b""

    def test_hear_from_the_last_node_that_it_is_done(self):
        self.barrier.servers.sendall(b"done 0\n")
        self.assertEqual(supervise(None, [self.group(EndedMeanwhile())], 1), (0, False))
        self.assertEqual(self.sent(), b"done 0\n")

    def test_hold_a_group_until_all_nodes_are_done(self):
        trainer = Running()
        trainer.returncode = 0
        group = self.group(trainer)
        group.advance()
        self.assertEqual(self.sent(), b"done 0\n")
        self.assertTrue(group.is_busy())
        self.barrier.servers.sendall(b"do")
        group.advance()
        self.assertTrue(group.is_busy(), "half a message")
        self.barrier.servers.sendall(b"ne 0\n")
        group.advance()
        self.assertFalse(group.is_busy())
        self.assertEqual(self.sent(), b"", "said once")

    def test_release_a_group_whose_server_has_ended(self):
        trainer = Running()
        trainer.returncode = 0
        group = self.group(trainer)
        self.barrier.servers.close()
        group.advance()
        self.assertFalse(group.is_busy())


class Delays(unittest.TestCase):
    def test_double_up_to_eight_seconds(self):
        self.assertEqual([restart_delay(number) for number in (1, 2, 3, 6, 7, 1000)],
                         [0.25, 0.5, 1, 8, 8, 8])


if __name__ == "__main__":
    unittest.main()
