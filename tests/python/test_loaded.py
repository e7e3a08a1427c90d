"""A place that is loaded while a reader is open: which batch is the next one, however it is asked for."""

import asyncio
import unittest
import warnings

import rig

import tundish

ROWS = ("range: {stop: 40}", "batch: 4")
STEPS = 10
FOREVER = "{}"


def first(batch):
    return batch["value"].tolist()[0]


class Loaded(unittest.TestCase):
    def setUp(self):
        self.server = self.enterContext(rig.serve(rig.pipeline(*ROWS, deliver=FOREVER)))
        with self.server.open("train") as reader:
            for _ in range(3):
                reader.next()
            self.third = reader.state_dict()
        self.server.kill()
        self.server.start()
        self.reader = self.enterContext(self.server.open("train"))

    def test_next_begins_there_and_the_state_goes_on(self):
        self.reader.load_state_dict(self.third)
        self.assertEqual(self.reader.state_dict(), self.third)
        self.assertEqual(first(self.reader.next()), 12)
        self.assertNotEqual(self.reader.state_dict(), self.third)
        self.assertEqual(first(self.reader.next()), 16)

    def test_next_that_has_begun_elsewhere_begins_there(self):
        for _ in range(7):
            self.reader.next()
        self.reader.load_state_dict(self.third)
        self.assertEqual(first(self.reader.next()), 12)

    def test_poll_and_the_descriptor_are_those_of_the_place(self):
        self.reader.next()
        self.reader.load_state_dict(self.third)
        self.reader.fileno()
        batch = None
        while batch is None:
            batch = self.reader.poll()
        self.assertEqual(first(batch), 12)

    def test_an_iterator_in_use_goes_on_there(self):
        iterator = iter(self.reader)
        self.assertEqual([first(next(iterator)) for _ in range(6)], [0, 4, 8, 12, 16, 20])
        self.reader.set_state(self.third)
        self.assertEqual([first(batch) for batch in iterator], list(range(12, 40, 4)))
        self.assertEqual([first(batch) for batch in self.reader], list(range(0, 40, 4)))

    def test_an_asynchronous_loop_goes_on_there(self):
        async def read():
            found = []
            async for batch in self.reader:
                found.append(first(batch))
                if len(found) == 5:
                    self.reader.load_state_dict(self.third)
            return found

        self.assertEqual(asyncio.run(read()), [0, 4, 8, 12, 16, *range(12, 40, 4)])

    def test_restart_begins_the_epoch_after_it(self):
        for loads in (1, 2):
            for _ in range(loads):
                self.reader.load_state_dict(self.third)
            self.reader.restart()
            batch = next(iter(self.reader))
            self.assertEqual((batch.epoch, batch.step), (1, 0))

    def test_a_loop_after_next_begins_another_epoch_as_always(self):
        self.reader.load_state_dict(self.third)
        self.reader.next()
        batch = next(iter(self.reader))
        self.assertEqual((batch.epoch, batch.step), (1, 0))

    def test_a_closed_reader_stays_closed(self):
        self.reader.load_state_dict(self.third)
        self.reader.close()
        uses = (
            lambda: self.reader.load_state_dict(self.third),
            self.reader.state_dict,
            self.reader.next,
            self.reader.restart,
            lambda: next(iter(self.reader)),
        )
        for use in uses:
            with self.assertRaisesRegex(tundish.MisuseError, "the reader is closed"):
                use()
        self.assertTrue(self.reader.closed)

    def test_a_place_that_is_refused_may_be_followed_by_a_right_one(self):
        with rig.serve(rig.pipeline("range: {stop: 40}", "batch: 5", deliver=FOREVER)) as other:
            with other.open("train") as reader:
                reader.next()
                strange = reader.state_dict()
        self.reader.load_state_dict(strange)
        for _ in range(2):
            with self.assertRaises(tundish.PlaceError):
                self.reader.next()
        self.reader.load_state_dict(self.third)
        self.assertEqual(first(self.reader.next()), 12)


class Replicas(unittest.TestCase):
    """Two, of one group: at the third step each."""

    THIRD = [[24, 25, 26, 27], [28, 29, 30, 31]]

    def setUp(self):
        text = rig.pipeline("range: {stop: 80}", "batch: 8", replicas=2, deliver=FOREVER)
        self.server = self.enterContext(rig.serve(text))
        readers = self.opened()
        for _ in range(3):
            for reader in readers:
                reader.next()
        self.third = readers[0].state_dict()
        for reader in readers:
            reader.close()

    def opened(self):
        return [self.open(replica) for replica in range(2)]

    def open(self, replica):
        return self.enterContext(self.server.open("train", replica=replica))

    def assert_third(self, readers):
        self.assertEqual([reader.next()["value"].tolist() for reader in readers], self.THIRD)

    def test_one_thread_loads_both(self):
        for _ in range(2):  # as they are opened, and while they read
            readers = self.opened()
            for reader in readers:
                reader.load_state_dict(self.third)
            self.assert_third(readers)
            for reader in readers:
                reader.load_state_dict(self.third)
            iterators = [iter(reader) for reader in readers]
            self.assertEqual(readers[1].info.total_replica_count, 2)
            self.assertEqual([next(iterator)["value"].tolist() for iterator in iterators], self.THIRD)
            del iterators
            for reader in readers:
                reader.close()

    def test_one_that_comes_after_the_other_has_loaded_loads_its_own(self):
        first = self.open(0)
        first.load_state_dict(self.third)
        iter(first)  # opens it there
        second = self.open(1)
        second.load_state_dict(self.third)
        self.assert_third([first, second])

    def test_one_that_loads_none_gets_no_batch(self):
        first = self.open(0)
        first.load_state_dict(self.third)
        iter(first)
        second = self.open(1)
        with self.assertRaisesRegex(tundish.PlaceError, "step 3, and replica 1 has none"):
            second.next()


class Loaders(unittest.TestCase):
    def setUp(self):
        rig.needs(self, "torch")

    def test_a_loop_of_a_loader_goes_on_at_a_loaded_place(self):
        from tundish.torch import DataLoader

        with rig.serve(rig.pipeline(*ROWS, deliver=FOREVER)) as server:
            with DataLoader("train", server=server.socket, columns=("value",)) as loader:
                found = []
                for (values,) in loader:
                    found.append(values[0].item())
                    if len(found) == 2:
                        state = loader.state_dict()
                    if len(found) == 5:
                        loader.load_state_dict(state)
                self.assertEqual(found, [0, 4, 8, 12, 16, *range(8, 40, 4)])

    def test_a_place_counts_for_the_first_reader_of_a_loader_alone(self):
        from tundish.torch import DataLoader

        with rig.serve(rig.pipeline(*ROWS, deliver=FOREVER)) as server:
            with server.open("train") as reader:
                reader.next()
                state = reader.state_dict()
            server.kill()
            server.start()
            loader = DataLoader("train", server=server.socket)
            loader.load_state_dict(state)
            self.assertEqual(len(list(loader)), STEPS - 1)
            with DataLoader("train", server=server.socket) as other:  # takes the replica over
                self.assertEqual(len(list(other)), STEPS)
            self.assertEqual(len(list(loader)), STEPS)
            loader.close()


class Left(unittest.TestCase):
    def test_a_loop_after_one_that_was_left_warns_of_nothing(self):
        text = rig.pipeline(*ROWS, deliver="{slots: 4}")
        with rig.serve(text) as server, server.open("train") as reader:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                for number in range(3):
                    for batch in reader:
                        self.assertEqual((batch.epoch, batch.step), (number, 0))
                        break
                self.assertEqual(len([None for _ in reader]), STEPS)

    def test_batches_that_a_program_keeps_are_warned_of_all_the_same(self):
        text = rig.pipeline(*ROWS, deliver="{slots: 4}")
        with rig.serve(text) as server, server.open("train") as reader:
            with self.assertWarnsRegex(RuntimeWarning, r"copied the oldest"):
                kept = [next(iter(reader))]
                kept += list(reader)
            self.assertEqual(len(kept), 1 + STEPS)


if __name__ == "__main__":
    unittest.main()
