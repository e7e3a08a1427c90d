"""Readers: loops over epochs, single batches, what a stream is made of."""

import unittest

import rig

import tundish

ROWS = ("range: {stop: 100}", "batch: 10")


class Loops(unittest.TestCase):
    def test_one_for_is_one_epoch(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train") as reader:
                for epoch in range(2):
                    found = [(batch.epoch, batch.step, batch["value"].tolist()) for batch in reader]
                    expected = [(epoch, i, list(range(10 * i, 10 * i + 10))) for i in range(10)]
                    self.assertEqual(found, expected)
                self.assertFalse(reader.ended)
                self.assertEqual(list(reader), [])
                self.assertTrue(reader.ended)
                self.assertEqual(list(reader), [])

    def test_a_loop_that_is_left_skips_the_rest_of_its_epoch(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 3}")) as server:
            with server.open("train") as reader:
                for batch in reader:
                    if batch.step == 3:
                        break
                del batch
                self.assertEqual([(b.epoch, b.step) for b in reader], [(1, i) for i in range(10)])

    def test_next_says_where_an_epoch_and_the_stream_end(self):
        with rig.serve(rig.pipeline("range: {stop: 4}", "batch: 2", deliver="{epochs: 1}")) as server:
            with server.open("train") as reader:
                self.assertEqual([reader.next().step, reader.next(timeout=60).step], [0, 1])
                with self.assertRaises(tundish.EndOfEpoch):
                    reader.next()
                for _ in range(2):
                    with self.assertRaises(tundish.EndOfStream) as caught:
                        reader.next()
                self.assertEqual(caught.exception.status, "END_OF_STREAM")


class Arrays(unittest.TestCase):
    def test_are_read_only_aligned_views_that_outlive_their_reader(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            with server.open("train") as reader:
                value = reader.next()["value"]
            self.assertEqual(value.tolist(), list(range(10)))
            self.assertEqual((value.dtype, value.shape), ("int64", (10,)))
            self.assertEqual(value.__array_interface__["data"][0] % 64, 0)
            with self.assertRaises(ValueError):
                value[0] = 1
            with self.assertRaises(ValueError):
                value.setflags(write=True)


if __name__ == "__main__":
    unittest.main()
