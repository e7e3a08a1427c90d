"""Readers that are opened one after another, without a place: where each begins."""

import contextlib
import itertools
import tempfile
import threading
import unittest
import warnings
from pathlib import Path

import rig

import tundish

ROWS = ("range: {stop: 40}", "batch: 4")
STEPS = 10


def steps(reader, count=None):
    """(epoch, step) of the first batches of a loop, or of all."""
    found = []
    for batch in itertools.islice(reader, count):
        found.append((batch.epoch, batch.step))
        del batch
    return found


def epoch(number, count=STEPS):
    return [(number, step) for step in range(count)]


def side_by_side(work, replicas=2):
    """What work(replica) returns, in threads."""
    found = [None] * replicas

    def run(replica):
        found[replica] = work(replica)

    threads = [threading.Thread(target=run, args=(replica,)) for replica in range(replicas)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(rig.DEADLINE_S)
    return found


class One(unittest.TestCase):
    def opened(self, server, count=None, **options):
        with server.open("train", **options) as reader:
            return steps(reader, count)

    def test_each_has_an_epoch_of_its_own(self):
        for distribute in ("", "delivery: broadcast"):
            with rig.serve(rig.pipeline(*ROWS, deliver="{}", distribute=distribute)) as server:
                for number in range(4):
                    self.assertEqual(self.opened(server), epoch(number))

    def test_after_one_that_stopped_in_mid_epoch(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            for number, count in enumerate((2, 2, STEPS, 5, None, 1, None)):
                self.assertEqual(self.opened(server, count), epoch(number, count or STEPS))

    def test_after_one_that_had_nothing(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            self.opened(server, 0)
            self.assertEqual(self.opened(server, 3), epoch(0, 3))
            self.opened(server, 0)
            self.assertEqual(self.opened(server), epoch(1))

    def test_of_a_stream_without_end(self):
        text = rig.pipeline("range: {stop: 40}", "repeat", "batch: 4", deliver="{}")
        with rig.serve(text) as server:
            for number in range(3):
                self.assertEqual(self.opened(server, 23), epoch(number, 23))

    def test_that_has_had_its_epochs_is_told_so(self):
        for count in (None, 3):
            with rig.serve(rig.pipeline(*ROWS)) as server:
                with warnings.catch_warnings():
                    warnings.simplefilter("error")
                    self.assertEqual(self.opened(server, count), epoch(0, count or STEPS))
                with self.assertWarnsRegex(RuntimeWarning, "earlier readers have had all epochs"):
                    self.assertEqual(self.opened(server), [])

    def test_groups_one_after_the_other(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            for number, (group, count) in enumerate((("a", None), ("b", None), ("a", 3), ("b", None))):
                self.assertEqual(self.opened(server, count, group=group), epoch(number, count or STEPS))

    def test_a_group_beside_another(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            with server.open("train", group="a") as first:
                self.assertEqual(steps(first, 2), epoch(0, 2))
                with server.open("train", group="b") as late:
                    self.assertEqual(steps(late, 1)[0][0], 0)
                # It closed: its next one has whole epochs, when the other comes to one.
                with server.open("train", group="b") as late:
                    for batch in itertools.islice(first, 3):
                        self.assertEqual(batch.epoch, 1)
                        del batch
                    self.assertEqual(steps(late, 3), epoch(1, 3))

    def test_in_a_session_of_its_own(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            for _ in range(3):
                found = self.opened(server, session="mine")
                self.assertEqual([step for _, step in found], list(range(STEPS)))

    def test_a_place_from_before_the_close_is_taken_up_exactly(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            with server.open("train") as reader:
                steps(reader, 3)
                place = reader.place
                reader.next()
            for _ in range(2):
                with server.open("train", place=place) as reader:
                    self.assertEqual(steps(reader), epoch(0)[3:])
            # After the readers above, and after one that has begun another epoch.
            self.assertEqual(self.opened(server, 2), epoch(1, 2))
            with server.open("train", place=place) as reader:
                self.assertEqual(steps(reader), epoch(0)[3:])

    def test_a_place_is_there_before_the_first_batch(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            self.opened(server, 3)
            with server.open("train") as reader:
                place = reader.place
                self.assertEqual(reader.info.first_epoch, 1)
            with server.open("train", place=place) as reader:
                self.assertEqual(steps(reader), epoch(1))


class Loaders(unittest.TestCase):
    """torch's: made anew for each epoch, while the earlier ones are held."""

    def test_each_has_an_epoch_of_its_own(self):
        rig.needs(self, "torch")
        from tundish.torch import DataLoader

        with rig.serve(rig.pipeline(*ROWS, deliver="{}")) as server:
            held = []
            for count in (None, STEPS, None):
                held.append(DataLoader("train", server=server.socket, columns=["value"]))
                firsts = [int(value[0]) for (value,) in itertools.islice(held[-1], count)]
                self.assertEqual(firsts, list(range(0, 40, 4)))
            self.assertEqual(len(list(held[0])), STEPS)
            next(iter(held[0]))
            with self.assertRaisesRegex(tundish.ArgumentError, "already in use"):
                next(iter(DataLoader("train", server=server.socket)))


class Two(unittest.TestCase):
    TEXT = rig.pipeline(*ROWS, replicas=2, deliver="{}")

    def test_begin_alike(self):
        with rig.serve(self.TEXT) as server:
            for number, count in enumerate((2, 2, None, None, 3, None)):

                def work(replica):
                    with server.open("train", replica=replica) as reader:
                        return steps(reader, count)

                self.assertEqual(side_by_side(work), [epoch(number, count or STEPS)] * 2)

    def test_closed_at_one_step_and_opened_again_at_once(self):
        """Whichever closes first: both begin the next epoch, once both were there."""
        both_are_there = threading.Barrier(2)
        with rig.serve(self.TEXT) as server:

            def work(replica):
                found = []
                for _ in range(4):
                    with server.open("train", replica=replica) as reader:
                        both_are_there.wait(rig.DEADLINE_S)
                        found.append(steps(reader, 2))
                return found

            self.assertEqual(side_by_side(work), [[epoch(number, 2) for number in range(4)]] * 2)

    def test_one_that_closed_before_the_other_came_begins_with_it(self):
        with rig.serve(self.TEXT) as server:
            for replica, number in ((0, 0), (0, 0), (1, 0)):
                with server.open("train", replica=replica) as reader:
                    self.assertEqual(steps(reader, 2), epoch(number, 2))
            for replica in (1, 0):
                with server.open("train", replica=replica) as reader:
                    self.assertEqual(steps(reader, 2), epoch(1, 2))

    def test_in_one_thread(self):
        with rig.serve(self.TEXT) as server:
            for number in range(4):
                with contextlib.ExitStack() as stack:
                    readers = [
                        stack.enter_context(server.open("train", replica=replica)) for replica in (0, 1)
                    ]
                    for step in range(3):
                        for reader in readers:
                            batch = reader.next()
                            self.assertEqual((batch.epoch, batch.step), (number, step))
                            del batch

    def test_one_that_returns_at_an_end_is_in_step_with_the_other(self):
        with rig.serve(self.TEXT) as server, server.open("train", replica=0) as first:
            with server.open("train", replica=1) as second:
                self.assertEqual(side_by_side(lambda i: steps((first, second)[i])), [epoch(0)] * 2)
            self.assertEqual(steps(first, 2), epoch(1, 2))
            with server.open("train", replica=1) as second:
                self.assertEqual(steps(second, 4), epoch(1, 4))

    def test_one_that_returns_in_mid_epoch_joins_the_other(self):
        with rig.serve(self.TEXT) as server, server.open("train", replica=0) as first:
            with server.open("train", replica=1) as second:
                self.assertEqual([steps(first, 3), steps(second, 2)], [epoch(0, 3), epoch(0, 2)])
            with server.open("train", replica=1) as second:
                self.assertEqual(steps(second, 2), epoch(0)[2:4])

    def test_an_epoch_read_to_its_end_leaves_no_warning(self):
        with rig.serve(self.TEXT) as server:

            def work(replica):
                with server.open("train", replica=replica) as reader:
                    return len(steps(reader))

            for _ in range(3):
                self.assertEqual(side_by_side(work), [STEPS] * 2)
            self.assertNotIn("warning", server.whole_log())


class Kept(unittest.TestCase):
    """A process that outlives its servers, which keep places (--state)."""

    def test_has_an_epoch_of_each_server(self):
        with tempfile.TemporaryDirectory(prefix="tundish-python-") as folder:
            state = Path(folder)
            for number in range(4):
                with rig.serve(rig.pipeline(*ROWS, deliver="{}"), "--state", folder) as server:
                    with server.open("train") as reader:
                        self.assertEqual(steps(reader), epoch(number))
                    server.process.terminate()
                    self.assertEqual(server.process.wait(timeout=rig.DEADLINE_S), 0)
                self.assertTrue((state / "train.place").exists())


if __name__ == "__main__":
    unittest.main()
