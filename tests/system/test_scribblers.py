"""Trainers that write garbage where only they may write: it is theirs alone to suffer."""

import os
import signal
import unittest

from rig import Rig, batches, stop

SHUFFLED = ["range: 2000", "shuffle: {buffer_size: 100}", "batch: 16"]
STEPS = 125
SCRIBBLER = os.environ["TUNDISH_SCRIBBLER"]
ROUNDS = 300


class Scribblers(Rig):
    def scribble(self, seed, group, replica=0):
        return self.start([SCRIBBLER, str(seed), str(ROUNDS)],
                          TUNDISH_GROUP=group, TUNDISH_REPLICA=str(replica))

    def test_do_not_disturb_other_groups(self):
        file = self.pipeline(SHUFFLED, "{groups: 4}", "{epochs: 2, slots: 4, rejoin: 100ms}")
        expected = self.peek(file, "--epochs", "2")[0]
        server = self.serve(file)
        reader = self.read("--delay-ms", "1", group="good")
        vandals = [self.scribble(seed, "bad" + str(seed)) for seed in range(3)]
        for vandal in vandals:
            self.wait_for_line(vandal, "scribbled")
            stop(vandal, signal.SIGKILL)
        lines = self.lines(reader)
        self.assertEqual(batches(lines), expected)
        self.assertEqual(lines[-1], "end_of_stream")
        self.assertEqual(stop(server), 0, self.log())

    def test_are_followed_where_they_may_have_been(self):
        """Their successor and their sibling get batches as they are, in order, without a gap."""
        file = self.pipeline(SHUFFLED, "{replicas: 2}", "{epochs: 2, slots: 4, rejoin: 600s}")
        expected = self.peek(file, "--epochs", "2")
        server = self.serve(file)
        sibling = self.read("--survive", "--delay-ms", "1", replica=0)
        vandal = self.scribble(7, "default", replica=1)
        self.wait_for_line(vandal, "scribbled")
        stop(vandal, signal.SIGKILL)
        self.wait_for_log("has died")
        successor = self.read("--survive", replica=1)
        for lines, whole in ((self.lines(sibling), expected[0]), (self.lines(successor), expected[1])):
            self.assertEqual(lines[-1], "end_of_stream")
            self.assertEqual(batches(lines), whole[len(whole) - len(batches(lines)):])
        self.assertEqual(stop(server), 0, self.log())

    def test_in_a_queue_take_what_is_theirs(self):
        file = self.pipeline(SHUFFLED, "{delivery: queue}", "{epochs: 30, slots: 6}")
        expected = self.peek(file, "--epochs", "30")[0]
        server = self.serve(file)
        readers = [self.read_paced() for _ in range(2)]
        for seed in range(3):
            vandal = self.scribble(seed, "default")
            for reader in readers:  # few enough that batches are left for the next vandal
                reader.ask(40)
            self.wait_for_line(vandal, "scribbled")
            stop(vandal, signal.SIGKILL)
        seen = []
        for reader in readers:
            reader.go()
        for lines in self.all_lines([reader.process for reader in readers]):
            self.assertEqual(lines[-1], "end_of_stream")
            seen += batches(lines)
        self.assertGreater(len(seen), 0)
        self.assertEqual(len(seen), len({(epoch, step) for epoch, step, _ in seen}))
        for batch in seen:
            self.assertIn(batch, expected)
        self.assertEqual(stop(server), 0, self.log())


if __name__ == "__main__":
    unittest.main()
