"""Readers: loops over epochs, single batches, what a stream is made of."""

import asyncio
import concurrent.futures
import contextlib
import json
import os
import pickle
import select
import signal
import unittest
import warnings

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
            with server.open("train") as reader, warnings.catch_warnings():
                warnings.simplefilter("ignore")  # `batch` is still there when it is needed
                for batch in reader:
                    if batch.step == 3:
                        break
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


class Ways(unittest.TestCase):
    """Ways to wait for a batch other than a loop."""

    def test_poll_and_the_descriptor_go_together(self):
        with rig.serve(rig.pipeline("range: {stop: 6}", "batch: 2")) as server:
            with server.open("train") as reader:
                steps = []
                with self.assertRaises(tundish.EndOfEpoch):
                    while True:
                        batch = reader.poll()
                        if batch is None:
                            self.assertTrue(select.select([reader], [], [], rig.DEADLINE_S)[0])
                        else:
                            steps.append(batch.step)
                self.assertEqual(steps, [0, 1, 2])

    def test_async_for_is_one_epoch(self):
        async def steps(reader):
            return [(batch.epoch, batch.step) async for batch in reader]

        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train") as reader:
                for epoch in range(2):
                    self.assertEqual(asyncio.run(steps(reader)), [(epoch, i) for i in range(10)])

    def test_the_event_loop_runs_while_a_reader_waits(self):
        async def both(reader):
            first = asyncio.ensure_future(anext(aiter(reader)))
            await asyncio.sleep(0)
            self.assertFalse(first.done())
            with contextlib.suppress(asyncio.CancelledError):
                first.cancel()
                await first

        # The other replica is missing, so nothing is dealt.
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 1}", distribute="groups: 2")) as server:
            with server.open("train") as reader:
                asyncio.run(both(reader))


class Facts(unittest.TestCase):
    def test_spec_and_info(self):
        stages = ("range: {stop: 8}", "batch: {batch_size: 4, drop_remainder: true}")
        text = rig.pipeline(*stages, replicas=2)
        with rig.serve(text) as server:
            with server.open("train", replica=1) as reader:
                self.assertEqual(reader.spec["value"][:4], ("value", "int64", (2,), "dense"))
                self.assertIsNone(reader.spec["value"].widen_dtype)
                info = reader.info
                self.assertEqual((info.replica, info.replica_count, info.stream), (1, 2, "train"))

    def test_a_place_resumes_and_so_does_a_state(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train") as reader:
                fresh = reader.state_dict()
                for _ in range(4):
                    reader.next()
                state = json.loads(json.dumps(reader.state_dict()))
                self.assertEqual(state, {"version": 1, "place": reader.place})
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train", place=state["place"]) as reader:
                self.assertEqual(reader.next().step, 4)
                reader.load_state_dict(fresh)
                self.assertEqual(reader.state_dict(), fresh)
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train") as reader:
                reader.set_state(state)
                self.assertEqual([(b.epoch, b.step) for b in reader], [(0, i) for i in range(4, 10)])
                again = reader.get_state()
                self.assertEqual([b.step for b in reader], list(range(10)))
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 2}")) as server:
            with server.open("train", place=again["place"]) as reader:
                self.assertEqual((reader.next().epoch, reader.next().step), (1, 1))

    def test_a_place_before_the_last_step_brings_its_repeated_rows(self):
        stages = ("range: 13", "shuffle: {buffer_size: 13, seed: 1}", "batch: 4")
        text = rig.pipeline(*stages, replicas=2, distribute="even: repeat", deliver="{epochs: 2}")
        with rig.serve(text) as server:
            with server.open("train", replica=0) as zero, server.open("train", replica=1) as one:
                self.assertEqual(one.spec["mask"][:2], ("mask", "bool"))
                first = zero.next()["value"].tolist()
                for reader in (one, zero, one, zero, one):
                    batch = reader.next()
                self.assertEqual((batch.step, batch["mask"].tolist()), (2, [True, True]))
                places = [zero.place, one.place]
        with rig.serve(text) as server:
            with server.open("train", replica=0, place=places[0]) as zero:
                with server.open("train", replica=1, place=places[1]) as one:
                    self.assertEqual(zero.next()["mask"].tolist(), [True])
                    last = one.next()
                    self.assertEqual((last.step, last["mask"].tolist()), (3, [False]))
                    self.assertEqual(last["value"].tolist(), first[:1])

    def test_a_place_says_whether_all_replicas_of_its_group_stand_there(self):
        text = rig.pipeline(*ROWS, replicas=2)
        with rig.serve(text) as server:
            with server.open("train", replica=0) as zero, server.open("train", replica=1) as one:
                for reader in (zero, one, one, one):
                    reader.next(timeout=rig.DEADLINE_S)
                apart = tundish.Standing(together=False, lowest=(0, 1), highest=(0, 3))
                self.assertEqual(zero.standing(rig.DEADLINE_S), apart)
                self.assertEqual(one.standing(rig.DEADLINE_S), apart)
                for _ in range(2):
                    zero.next(timeout=rig.DEADLINE_S)
                self.assertTrue(zero.standing(rig.DEADLINE_S).together)
                self.assertTrue(one.standing(rig.DEADLINE_S).together)
                one.load_state_dict(zero.state_dict())
                self.assertEqual(one.standing(rig.DEADLINE_S), (False, None, None))

    def test_replicas_that_are_open_load_their_states_one_after_the_other(self):
        text = rig.pipeline(*ROWS, replicas=2)
        with rig.serve(text) as server:
            readers = [server.open("train", replica=replica) for replica in (0, 1)]
            for _ in range(3):
                rows = [reader.next()["value"].tolist() for reader in readers]
            states = [reader.state_dict() for reader in readers]
            rest = [[reader.next()["value"].tolist() for _ in range(7)] for reader in readers]
        self.assertEqual(rows, [[20, 21, 22, 23, 24], [25, 26, 27, 28, 29]])
        with rig.serve(text) as server:
            readers = [server.open("train", replica=replica) for replica in (0, 1)]
            for reader, state in zip(readers, states):
                reader.load_state_dict(state)
            with concurrent.futures.ThreadPoolExecutor() as pool:
                found = list(pool.map(lambda r: [b["value"].tolist() for b in r], readers))
        self.assertEqual(found, rest)

    def test_a_replica_whose_sibling_alone_loads_its_state_is_told(self):
        text = rig.pipeline(*ROWS, replicas=2)
        with rig.serve(text) as server:
            readers = [server.open("train", replica=replica) for replica in (0, 1)]
            for _ in range(3):
                for reader in readers:
                    reader.next()
            state = readers[0].state_dict()
        with rig.serve(text) as server:
            readers = [server.open("train", replica=replica) for replica in (0, 1)]
            readers[0].load_state_dict(state)
            self.assertEqual(next(iter(readers[0])).step, 3)
            with self.assertRaisesRegex(tundish.PlaceError, "replica 0 .* step 3, and replica 1 has none"):
                list(readers[1])

    def test_a_server_that_is_suspended_is_named(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            server.process.send_signal(signal.SIGSTOP)
            os.waitid(os.P_PID, server.process.pid, os.WSTOPPED)  # each of its threads stands still
            try:
                with self.assertRaisesRegex(tundish.Timeout, f"kill -CONT {server.process.pid}"):
                    server.open("train", timeout=1)
            finally:
                server.process.send_signal(signal.SIGCONT)

    def test_a_state_of_something_else_is_refused(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            for state in ({}, {"version": 2, "place": ""}, "place"):
                with self.assertRaises(tundish.PlaceError):
                    reader.load_state_dict(state)

    def test_a_pickle_reopens_with_the_options_and_without_the_place(self):
        with rig.serve(rig.pipeline(*ROWS, replicas=1, distribute="groups: 1")) as server:
            with server.open("train", group="other") as reader:
                reader.next()
                pickled = pickle.dumps(reader)
            with pickle.loads(pickled) as again:
                self.assertEqual(again.info.stream, "train")
                self.assertEqual(list(again.spec), ["value"])


if __name__ == "__main__":
    unittest.main()
