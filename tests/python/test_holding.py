"""How long a batch lives: leases, copies under pressure, the end of readers and processes."""

import asyncio
import gc
import importlib.util
import inspect
import os
import queue
import random
import threading
import unittest
import warnings

import rig

import tundish

ROWS = ("range: {stop: 4000}", "batch: 10")  # 400 steps
FOREVER = "{epochs: 0}"
FORMATS = {"numpy": "numpy", "torch": "torch", "jax": "jax", "tf": "tensorflow"}
# More of them shows leaks that few hide.
BATCHES = int(os.environ.get("TUNDISH_TEST_BATCHES", "2000"))


def rows(step):
    return list(range(10 * step, 10 * step + 10))


def held(reader):
    gc.collect()
    return reader.info.held_count


class Leases(unittest.TestCase):
    def test_the_slot_goes_back_with_the_last_array(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            batch = reader.next()
            view, raw = batch["value"], memoryview(batch.array("value"))
            part = view[3:]
            del view, batch
            self.assertEqual(held(reader), 1)
            del raw
            self.assertEqual(held(reader), 1)
            self.assertEqual(part.tolist(), rows(0)[3:])
            del part
            self.assertEqual(held(reader), 0)

    def test_release_and_with_give_up_the_batch_but_not_its_arrays(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            with reader.next() as batch:
                view = batch["value"]
            self.assertEqual(held(reader), 1)
            with self.assertRaisesRegex(tundish.MisuseError, "released"):
                batch["value"]
            batch.release()
            self.assertEqual((batch.step, view.tolist()), (0, rows(0)))
            del view
            self.assertEqual(held(reader), 0)

    def test_arrays_outlive_reader_and_server(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            reader = server.open("train")
            batches = [reader.next() for _ in range(3)]
            early = batches[0]["value"]
            reader.close()
            server.kill()
            self.assertEqual(early.tolist(), rows(0))
            self.assertEqual(batches[1]["value"].tolist(), rows(1))
            self.assertEqual(memoryview(batches[2].array("value")).tolist(), rows(2))

    def test_a_reader_that_is_dropped_leaves_at_once(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            view = server.open("train").next()["value"]
            gc.collect()
            with server.open("train") as again:
                self.assertEqual(again.info.held_count, 0)
            self.assertEqual(view.tolist(), rows(0))


class Pressure(unittest.TestCase):
    def test_a_list_of_all_batches_is_copied_out_of_their_slots_and_warned_of_once(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            kept = []
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                for batch in reader:
                    line = inspect.currentframe().f_lineno - 1
                    kept.append(batch["value"])
                    if len(kept) == 300:
                        break
            self.assertEqual([str(w.category) for w in caught], [str(RuntimeWarning)])
            self.assertIn(f"{__file__}:{line}", str(caught[0].message))
            self.assertIn("deliver.slots", str(caught[0].message))
            self.assertEqual([view.tolist() for view in kept], [rows(i) for i in range(300)])
            self.assertLessEqual(reader.info.held_count, reader.info.slot_count - 2)

    def test_no_batch_is_copied_in_a_plain_loop(self):
        with rig.serve(rig.pipeline(*ROWS, deliver="{epochs: 1, slots: 4}")) as server:
            with server.open("train") as reader, warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual([b.step for b in reader if b["value"] is not None], list(range(400)))

    def test_one_batch_kept_for_ever_does_not_stop_the_lane(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train") as reader:
            first = reader.next()
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                steps = []
                while len(steps) < 399:
                    steps.append(reader.next().step)
            self.assertEqual(len(caught), 1)
            self.assertEqual(steps, list(range(1, 400)))
            self.assertEqual(first["value"].tolist(), rows(0))

    def test_views_are_right_all_the_while(self):
        over, wrong, looks = threading.Event(), [], [0]

        def look(view, expected):
            while not over.is_set():
                if not (view == expected).all():
                    wrong.append(view.tolist())
                looks[0] += 1

        with rig.serve(rig.pipeline("range: {stop: 400000}", "batch: 1000")) as server:
            with server.open("train") as reader, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                views = [reader.next()["value"] for _ in range(3)]
                threads = [threading.Thread(target=look, args=(v, v.copy())) for v in views]
                for thread in threads:
                    thread.start()
                for _ in range(300):
                    reader.next()
                over.set()
                for thread in threads:
                    thread.join()
        self.assertEqual(wrong, [])
        self.assertGreater(looks[0], 0)

    def test_batches_and_columns_that_share_a_page_are_copied_out_of_it_each_for_itself(self):
        stages = ("range: {stop: 4000}", "map: {double: 'value * 2'}", "batch: 10")
        choose, held, pages = random.Random(5), [], set()
        with rig.serve(rig.pipeline(*stages)) as server, server.open("train") as reader:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                for batch in reader:
                    value, double = batch["value"], batch["double"]
                    mine = {view.ctypes.data // 4096 for view in (value, double)}
                    shares = bool(mine & pages) or shares if batch.step else False
                    pages = mine
                    held.append((batch.step, value if choose.random() < 0.5 else None, double))
                    del batch, value, double
                    if len(held) > 40:
                        held.pop(choose.randrange(len(held)))
                    for step, value, double in held:
                        self.assertEqual(double.tolist(), [2 * row for row in rows(step)])
                        self.assertTrue(value is None or value.tolist() == rows(step))
            self.assertTrue(shares, "no batch lay in the page of the one before it")

    def test_error_names_the_line_and_the_reader_goes_on_after(self):
        text = rig.pipeline(*ROWS)
        with rig.serve(text) as server, server.open("train", on_hold="error") as reader:
            line = inspect.currentframe().f_lineno + 1
            first = reader.next()
            with self.assertRaises(tundish.ArgumentError) as caught:
                while True:
                    last = reader.next().step
            self.assertIn(f"{__file__}:{line}", str(caught.exception))
            del first
            self.assertEqual(reader.next().step, last + 1)

    def test_wait_goes_on_when_another_thread_drops_a_batch(self):
        with rig.serve(rig.pipeline(*ROWS)) as server, server.open("train", on_hold="wait") as reader:
            kept = [reader.next() for _ in range(reader.info.slot_count - 2)]
            with self.assertRaises(tundish.Timeout):
                reader.next(timeout=0.05)
            self.assertIsNone(reader.poll())
            timer = threading.Timer(0.1, kept.clear)
            timer.start()
            self.assertEqual(reader.next().step, reader.info.slot_count - 2)
            timer.join()

    def test_wait_of_a_program_of_one_thread_is_an_error(self):
        script = (
            "import sys, tundish\n"
            "with tundish.open('train', on_hold='wait') as reader:\n"
            "    try: kept = [batch['value'] for batch in reader]\n"
            "    except tundish.ArgumentError as error: print(error)\n"
            "    print(reader.next()['value'][0])\n"
        )
        with rig.serve(rig.pipeline(*ROWS)) as server:
            said = server.python(script).stdout
        self.assertRegex(said, r"no other thread that could drop the oldest, taken at .*:3: .*copy")
        self.assertRegex(said, r"\n\d+0\n$")

    def test_another_word_for_on_hold_is_refused(self):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            with self.assertRaisesRegex(tundish.ArgumentError, "on_hold"):
                server.open("train", on_hold="keep")


class Queues(unittest.TestCase):
    """What a queue's readers hold is one another's: neither the end nor a batch waits for it."""

    def serve(self, slots=8):
        deliver = f"{{epochs: 2, slots: {slots}}}"
        return rig.serve(rig.pipeline(*ROWS, distribute="delivery: queue", deliver=deliver))

    def test_a_plain_loop_ends(self):
        for form, module in FORMATS.items():
            if importlib.util.find_spec(module) is None:
                continue
            with self.serve() as server, server.open("train", format=form) as reader:
                for _ in range(2):
                    steps = [batch.step for batch in reader]
                    self.assertEqual(steps, list(range(400)), form)
                self.assertEqual(list(reader), [])

    def test_next_ends(self):
        with self.serve() as server, server.open("train") as reader:
            for _ in range(400):
                batch = reader.next()
            with self.assertRaisesRegex(tundish.EndOfEpoch, "batches still held stay valid"):
                reader.next()
            self.assertEqual(batch["value"].tolist(), rows(399))

    def test_an_asynchronous_loop_ends(self):
        async def read(reader):
            return [batch.step async for batch in reader]

        with self.serve() as server, server.open("train") as reader:
            for _ in range(2):
                self.assertEqual(asyncio.run(read(reader)), list(range(400)))

    def test_one_ends_while_another_stands_at_a_yield(self):
        def generate(reader):
            for batch in reader:
                yield batch.step

        with self.serve() as server, server.open("train") as one, server.open("train") as other:
            suspended = generate(one)
            seen = [next(suspended)]
            seen += generate(other)
            self.assertEqual(sorted([*seen, *suspended]), list(range(400)))

    def test_one_batch_kept_for_ever_stops_nobody(self):
        with self.serve() as server, server.open("train") as reader, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            batches = iter(reader)
            first = next(batches)
            self.assertEqual([batch.step for batch in batches], list(range(1, 400)))
            self.assertEqual(first["value"].tolist(), rows(0))

    def test_lists_of_all_batches_by_two_readers_do_not_wait_for_each_other(self):
        with self.serve() as server, warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)
            readers = [server.open("train") for _ in range(2)]
            kept = [[], []]
            threads = [
                threading.Thread(target=lambda i=i: kept[i].extend(readers[i])) for i in range(2)
            ]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            values = [batch["value"].tolist() for batches in kept for batch in batches]
            self.assertEqual(sorted(values), [rows(step) for step in range(400)])
            del kept
            for reader in readers:
                reader.close()


class Counts(unittest.TestCase):
    def test_as_many_slots_go_back_as_were_taken(self):
        """Batches dropped at random by four threads; the trainer's memory does not grow."""
        work = queue.Queue(64)

        def drop(seed):
            own, choose = [], random.Random(seed)
            while (item := work.get()) is not None:
                own.append(item)
                while len(own) > 2 or (own and choose.random() < 0.5):
                    own.pop(choose.randrange(len(own)))

        stages = ("range: {stop: 100000}", "repeat", "batch: 1000")
        with rig.serve(rig.pipeline(*stages, deliver="{slots: 16}")) as server:
            with server.open("train") as reader, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                threads = [threading.Thread(target=drop, args=(seed,)) for seed in range(4)]
                for thread in threads:
                    thread.start()
                sizes = []
                for count in range(BATCHES):
                    batch = reader.next()
                    kind = count % 3
                    made = batch["value"] if kind == 1 else batch.array("value")
                    work.put(batch if kind == 0 else made)
                    del batch, made
                    if count % (BATCHES // 4) == BATCHES // 4 - 1:
                        sizes.append(resident_kib())
                for _ in threads:
                    work.put(None)
                for thread in threads:
                    thread.join()
                self.assertEqual(held(reader), 0)
                self.assertLess(max(sizes) - sizes[0], 8 * 1024, sizes)


def resident_kib():
    """Memory of this process's own: what is shared with the server does not count."""
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:"))


class Ends(unittest.TestCase):
    """The end of a process, in each case with arrays alive."""

    def ends_well(self, script):
        with rig.serve(rig.pipeline(*ROWS)) as server:
            result = server.python("import tundish\nreader = tundish.open('train')\n" + script)
        self.assertEqual((result.stdout, result.stderr), ("bye\n", ""))

    def test_with_the_reader_open(self):
        self.ends_well("view = reader.next()['value']\nprint('bye')")

    def test_with_the_reader_closed(self):
        self.ends_well("view = reader.next()['value']\nreader.close()\nprint('bye')")

    def test_with_an_array_in_a_module_and_one_in_a_cycle(self):
        self.ends_well(
            "import sys\nbatch = reader.next()\nreader.again = batch\nsys.kept = batch['value']\n"
            "loop = [batch]\nloop.append(loop)\nprint('bye')"
        )

    def test_with_a_thread_that_waits(self):
        self.ends_well(
            "import threading\nfirst = threading.Event()\n"
            "def work():\n    for batch in reader:\n        kept.append(batch)\n        first.set()\n"
            "kept = []\nimport warnings\nwarnings.simplefilter('ignore')\n"
            "threading.Thread(target=work, daemon=True).start()\nfirst.wait()\nprint('bye')"
        )


if __name__ == "__main__":
    unittest.main()
