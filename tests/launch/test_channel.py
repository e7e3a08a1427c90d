"""What strangers send to the port of a launcher, from a fixed seed: SEED=N CALLS=N for others."""

import json
import os
import random
import select
import socket
import unittest
from unittest import mock

import program  # noqa: F401

from launch import channel


class Calls(unittest.TestCase):
    def setUp(self):
        self.draws = random.Random(int(os.environ.get("SEED", "7")))
        self.calls = channel.Calls(b"s" * 32, "ab" * 16, 1)

    def connect(self):
        with socket.create_server(("127.0.0.1", 0)) as listener:
            ours = socket.create_connection(listener.getsockname(), timeout=60)
            theirs, _ = listener.accept()
        theirs.setblocking(False)
        self.addCleanup(ours.close)
        self.addCleanup(theirs.close)
        caller = channel.Caller(theirs)
        greeting = channel.receive(ours, len(channel.GREETING) + channel.NONCE_BYTES)
        return ours, caller, greeting[len(channel.GREETING):]

    def message(self, theirs, text=json.dumps(["orted", "-x"]).encode(), secret=None):
        """What a launcher with the secret sends to a door that gave this number."""
        calls = self.calls if secret is None else channel.Calls(secret, self.calls.job, 1)
        own = self.draws.randbytes(channel.NONCE_BYTES)
        told = channel.proof(calls, b"command", theirs, own, text)
        return own + told + len(text).to_bytes(4, "big") + text

    def hear(self, caller, ours, message, is_over=True):
        ours.sendall(message)
        if is_over:
            ours.shutdown(socket.SHUT_WR)
        select.select([caller.connection], [], [], 60)
        return caller.receive(self.calls)

    def damaged(self, message):
        kind = self.draws.randrange(5)
        at = self.draws.randrange(len(message))
        if kind == 0:
            return self.draws.randbytes(self.draws.randrange(4096))
        if kind == 1:
            return message[:at]
        if kind == 2:
            return message + self.draws.randbytes(1 + self.draws.randrange(9))
        if kind == 3:  # a length of its own
            head = channel.NONCE_BYTES + channel.PROOF_BYTES
            return message[:head] + self.draws.randbytes(4) + message[head + 4:]
        bits = bytearray(message)
        bits[at] ^= 1 << self.draws.randrange(8)
        return bytes(bits)

    def test_that_are_damaged_start_nothing(self):
        for _ in range(int(os.environ.get("CALLS", "400"))):
            ours, caller, theirs = self.connect()
            sent = self.damaged(self.message(theirs))
            with self.subTest(sent=sent), self.assertRaises((ValueError, OSError)):
                self.hear(caller, ours, sent)
                self.hear(caller, ours, b"")

    def test_of_another_secret_or_another_connection_start_nothing(self):
        ours, caller, theirs = self.connect()
        with self.assertRaises(channel.AuthError):
            self.hear(caller, ours, self.message(theirs, secret=b"t" * 32), False)
        _, _, other = self.connect()
        ours, caller, _ = self.connect()
        with self.assertRaises(channel.AuthError):
            self.hear(caller, ours, self.message(other), False)

    def test_with_the_secret_are_heard(self):
        ours, caller, theirs = self.connect()
        text = json.dumps(["ssh", "/bin/sh/orted", "-x"]).encode()
        with mock.patch.object(channel.shutil, "which", lambda name: f"/usr/bin/{name}"):
            self.assertEqual(self.hear(caller, ours, self.message(theirs, text), False),
                             ["/usr/bin/orted", "-x"])

    def test_that_promise_too_much_are_sent_away_at_once(self):
        ours, caller, theirs = self.connect()
        head = self.message(theirs)[:channel.NONCE_BYTES + channel.PROOF_BYTES]
        with self.assertRaisesRegex(ValueError, "too much"):
            self.hear(caller, ours, head + b"\xff\xff\xff\xff", False)


if __name__ == "__main__":
    unittest.main()
