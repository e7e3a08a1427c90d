"""tundish.torch.DataLoader of an IterableDataset, beside torch's own."""

import contextlib
import copy
import glob
import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import traceback
import unittest

import rig
from test_torch_dataset import Case

import tundish

try:
    import iterables
    import numpy as np

    from tundish import iterating, loading, worker_memory
except ImportError:  # torch is missing
    iterables = None


class Shared(rig.SharesForks, Case):
    pass


class Values(Shared):
    def test_shards_of_workers_come_in_torchs_order(self):
        options = [{"batch_size": 4}, {"batch_size": 4, "drop_last": True}, {"batch_size": None}, {}]
        for workers, each in itertools.product((0, 1, 2, 3), options):
            with self.subTest(workers, **each):
                self.assert_like(lambda kind: kind(iterables.Shards(), num_workers=workers, **each))

    def test_nests_are_torchs(self):
        for size in (1, 3, None):
            self.assert_like(lambda kind: kind(iterables.Shards(10, "nest"), size, num_workers=2))

    def test_what_is_no_column_comes_as_well(self):
        self.assert_like(lambda kind: kind(iterables.Shards(5, "uneven"), None, num_workers=1))

    def test_large_batches_are_torchs(self):
        for made, size in (("large", None), ("large_set", None), ("large", 1)):
            self.assert_like(lambda kind: kind(iterables.Shards(25, made), size, num_workers=2, prefetch_factor=1))

    def test_a_batch_is_read_as_it_was_written(self):
        with tempfile.TemporaryDirectory() as folder:
            memory = worker_memory.Memory(os.path.join(folder, "free"), 2)
            self.addCleanup(memory.close)
            lent = worker_memory.Lent.at(memory.address)
            for n, by in itertools.product((0, 3, 1, 6), (lent, None)):
                made = loading.collate([iterables.large(n)] * 2)
                head, data = iterating._laid(iterating._row(made), by)
                self.assertEqual(len(data) == 0, by is not None)
                found = iterating.read(head, np.frombuffer(data, np.uint8), memory)
                self.assert_same([found], [self.data.default_collate([iterables.large(n)] * 2)])
            self.assertIsNone(worker_memory.Lent.at(memory.address._replace(file=folder)))

    def test_functions_run_in_the_workers(self):
        for workers in (1, 2):
            self.assert_like(
                lambda kind: kind(
                    iterables.Shards(), 5, num_workers=workers, collate_fn=iterables.collate, worker_init_fn=iterables.told
                )
            )

    def test_draws_of_a_first_epoch_are_torchs(self):
        for workers in (1, 3):
            self.assert_like(lambda kind: kind(iterables.Shards(9, "draws"), 2, num_workers=workers))

    def test_a_length_is_of_all_workers_together(self):
        class Sized(iterables.Shards):
            def __len__(self):
                return self.count

        for options in ({}, {"drop_last": True}):
            ours, torchs = (kind(Sized(), 4, **options) for kind in (self.loader, self.data.DataLoader))
            self.assertEqual(len(ours), len(torchs))
        with self.assertRaises(TypeError):
            len(self.loader(iterables.Shards()))

    def test_a_set_of_hugging_face(self):
        datasets = rig.needs(self, "datasets")
        made = datasets.Dataset.from_dict({"n": list(range(12)), "text": [f"row {n}" for n in range(12)]})
        self.assert_like(lambda kind: kind(made.to_iterable_dataset(num_shards=2).with_format("torch"), 4, num_workers=2))

    def assert_like(self, make):
        found = []
        for kind in (self.loader, self.data.DataLoader):
            self.torch.manual_seed(3)
            found.append(list(make(kind)))
        self.assert_same(*found)


class Places(Shared):
    def test_a_loader_goes_on_anywhere(self):
        for workers in (0, 1, 3):
            whole = self.epochs(self.made(workers), 3)
            for epoch, steps in ((0, 0), (0, 3), (1, 4), (2, len(whole[2]) - 1), (2, len(whole[2]))):
                with self.subTest(workers=workers, epoch=epoch, steps=steps):
                    first = self.made(workers)
                    self.epochs(first, epoch)
                    had = list(itertools.islice(first, steps))
                    place = json.loads(json.dumps(first.state_dict()))
                    first.close()
                    second = self.made(workers, seed=99)
                    second.load_state_dict(place)
                    rest = self.epochs(second, 3 - epoch)
                    if steps > 0:
                        rest[0] = had + rest[0]
                    self.assert_same(rest, whole[epoch:])

    def test_epochs_draw_other_numbers(self):
        first, second = self.epochs(self.made(1), 2)
        self.assertNotEqual([batch[1].tolist() for batch in first], [batch[1].tolist() for batch in second])

    def test_another_number_of_workers_is_refused(self):
        loader = self.made(2)
        next(iter(loader))
        place = loader.state_dict()
        with self.assertRaisesRegex(tundish.PlaceError, "workers 2, and this one has 3"):
            self.made(3).load_state_dict(place)
        with self.assertRaisesRegex(tundish.PlaceError, "not one"):
            self.made(2).load_state_dict({"epoch": 1})

    def test_a_copy_and_a_fork_have_the_place_that_was_loaded(self):
        first = self.made(2)
        whole = list(first)
        loader = self.made(2)
        list(itertools.islice(loader, 3))
        place = loader.state_dict()
        loader = self.made(2, seed=99)
        loader.load_state_dict(place)
        for copied in (copy.copy(loader), pickle.loads(pickle.dumps(loader))):
            self.addCleanup(copied.close)
            self.assert_same(list(copied), whole[3:])
        self.assertEqual(self.in_a_fork(lambda: self.assert_same(list(loader), whole[3:])), 0)
        self.assert_same(list(loader), whole[3:])

    def test_a_fork_leaves_the_programs_loop_alone(self):
        def use():
            loader.load_state_dict(place)
            self.assertEqual(next(iter(loader)).tolist(), [102, 103])
            loader.close()

        loader = self.loader(iterables.Counting(), 2, num_workers=2)
        batches = iter(loader)
        list(itertools.islice(batches, 3))
        place = loader.state_dict()
        self.assertEqual(self.in_a_fork(use), 0)
        self.assertEqual(self.in_a_fork(loader.close), 0)
        self.assertEqual(next(batches).tolist(), [102, 103])

    def in_a_fork(self, call):
        """The status of a fork that calls it."""
        child = os.fork()
        if child == 0:
            status = 1
            try:
                call()
                status = 0
            except BaseException:
                traceback.print_exc()
            finally:
                os._exit(status)
        return os.waitpid(child, 0)[1]

    def test_a_damaged_place_is_refused(self):
        loader = self.made(2)
        next(iter(loader))
        place = loader.state_dict()
        for damage in ({"taken": [1]}, {"first": 2}):
            with self.assertRaisesRegex(tundish.PlaceError, "damaged"):
                self.made(2).load_state_dict({**place, **damage})

    def made(self, workers, seed=3):
        self.torch.manual_seed(seed)
        return self.loader(iterables.Shards(17, "draws"), 2, num_workers=workers)

    def epochs(self, loader, count):
        return [list(loader) for _ in range(count)]


class Loops(Shared):
    def test_a_loop_that_is_left_begins_again(self):
        loader, data = self.loader(iterables.Counting(), 3, num_workers=2), iterables.Counting()
        self.assertEqual(self.first(loader, 3), [[0, 1, 2], [100, 101, 102], [3, 4, 5]])
        self.assertEqual(self.first(loader, 1), [[0, 1, 2]])
        loader = self.loader(data, 3)
        for data.epoch in (0, 1, 2):
            self.assertEqual(self.first(loader, 1), [[1000 * data.epoch + n for n in range(3)]])

    def test_a_data_set_is_begun_once_an_epoch(self):
        path = self.path("notes")
        loader = self.loader(iterables.Noting(path), 3, num_workers=2)
        for _ in range(2):
            self.assertEqual(len(list(loader)), 4)
            with open(path) as file:
                lines = sorted(file.read().split("\n")[:-1])
            self.assertEqual(lines, ["begin 0", "begin 1", *sorted(2 * [f"item {n}" for n in range(6)])])
            os.unlink(path)

    def test_a_worker_makes_few_large_batches_ahead(self):
        path = self.path("notes")
        loader = self.loader(iterables.Noting(path, 200), 1, num_workers=1, prefetch_factor=1)
        for _ in itertools.islice(loader, 100):
            pass
        with open(path) as file:
            self.assertLess(len(file.read().split("\n")), 100 + 10)

    def path(self, name):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        return os.path.join(folder, name)

    def test_two_at_once_and_in_a_thread(self):
        a, b = (self.loader(iterables.Shards(), 5, num_workers=n) for n in (1, 2))
        whole = self.first(b, None)
        self.assertEqual([y.tolist() for _, y in zip(a, b)], whole[:8])
        found = []
        thread = threading.Thread(target=lambda: found.extend(self.first(b, None)))
        thread.start()
        thread.join(rig.DEADLINE_S)
        self.assertEqual(found, whole)

    def test_another_loop_ends_the_one_before(self):
        loader = self.loader(iterables.Counting(), 3)
        before = iter(loader)
        next(before)
        next(iter(loader))
        with self.assertRaisesRegex(tundish.MisuseError, "another loop"):
            next(before)

    def test_a_loop_that_another_came_before_passes_over_no_epoch(self):
        loader = self.loader(iterables.Shards(6), 3)
        before, after = iter(loader), iter(loader)
        with self.assertRaisesRegex(tundish.MisuseError, "another loop"):
            next(before)
        self.assertEqual([batch.tolist() for batch in after], [[0, 1, 2], [3, 4, 5]])
        self.assertEqual(loader.state_dict()["epoch"], 1)

    def test_a_loop_ends_in_a_sentence_when_the_loader_is_closed(self):
        loader = self.loader(iterables.Counting(), 3)
        batches = iter(loader)
        next(batches)
        loader.close()
        with self.assertRaisesRegex(tundish.MisuseError, "closed"):
            list(itertools.islice(batches, 10000))

    def test_options_cannot_be_set_afterwards(self):
        loader = self.loader(iterables.Shards())
        for name in ("batch_size", "dataset", "drop_last"):
            with self.assertRaisesRegex(tundish.ArgumentError, f"{name} cannot be set"):
                setattr(loader, name, 2)

    def test_an_error_names_the_worker_and_its_line(self):
        loader = self.loader(iterables.Broken(5), 2, num_workers=2)
        for _ in range(2):
            had = []
            with self.assertRaisesRegex(tundish.DataError, r"worker 0: ValueError: shard 0 is cut off \(iterables\.py:"):
                had.extend(batch.tolist() for batch in loader)
        for how, words in (
            ("end", "step 0: a worker returned 3"),
            ("exit", r"worker 0: SystemExit: no more \(iterables\.py:"),
            ("nul", r"worker 0: ValueError: cut\\0off \(iterables\.py:"),
            ("mute", r"worker 0: Mute \(iterables\.py:"),
        ):
            with self.assertRaisesRegex(tundish.DataError, words):
                list(self.loader(iterables.Broken(0, how), 2))

    def test_a_worker_that_hangs_is_a_timeout(self):
        loader = self.loader(iterables.Broken(5, "hang"), 5, timeout=rig.DEADLINE_S)
        batches = iter(loader)
        next(batches)
        loader.timeout = 0.1
        with self.assertRaises(tundish.Timeout):
            next(batches)
        loader.timeout = 0
        next(iter(loader))

    def test_options_are_refused_as_torch_refuses_them(self):
        for options in ({"shuffle": True}, {"sampler": [1]}, {"batch_sampler": [[1]]}, {"batch_size": 0}, {"num_workers": -1}):
            words = []
            for kind in (self.loader, self.data.DataLoader):
                with self.assertRaises(ValueError) as caught:
                    kind(iterables.Shards(), **options)
                words.append(str(caught.exception).split(" value")[0].split(", use")[0].split(";")[0])
            self.assertIn(words[0][:40], words[1])

    def test_a_set_that_cannot_be_sent_says_so(self):
        data = iterables.Shards()
        data.lock = threading.Lock()
        with self.assertRaisesRegex(tundish.ArgumentError, "cannot be sent"):
            list(self.loader(data))

    def first(self, loader, count):
        return [batch.tolist() for batch in itertools.islice(loader, count)]


PROGRAM = """
import iterables, itertools, sys, time
from tundish.torch import DataLoader
loader = DataLoader(iterables.Counting(), 2, num_workers=2)
list(itertools.islice(loader, 3))
print(loader._forks.process.pid, loader._server.pid, loader._forks.folder, flush=True)
time.sleep(600)
"""


TALKS = """
import iterables
from tundish.torch import DataLoader
for batch in DataLoader(iterables.Talks(), 2, num_workers=1): pass
for batch in DataLoader(iterables.Talks(), 2, num_workers=1): pass
"""


class Ends(Case):
    def test_nothing_is_left_of_a_program_that_is_killed(self):
        for number in (signal.SIGKILL, signal.SIGTERM):
            environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, env=environment) as program:
                forks, server, folder = program.stdout.readline().split()
                program.send_signal(number)
            self.await_gone(int(forks), int(server))
            next(iter(self.loader(iterables.Shards())))  # sweeps
            self.assertFalse(os.path.exists(folder))

    def test_the_program_shows_what_data_sets_print_and_no_more(self):
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run([sys.executable, "-c", TALKS], stderr=subprocess.PIPE, env=environment, text=True,
                              timeout=rig.DEADLINE_S, check=True)  # fmt: skip
        self.assertEqual(done.stderr.splitlines(), ["begins", "begins"])

    def test_close_ends_the_processes(self):
        loader = self.loader(iterables.Counting(), 2, num_workers=2)
        next(iter(loader))
        forks, server, folder = loader._forks.process.pid, loader._server.pid, loader._forks.folder
        loader.close()
        self.await_gone(forks, server)
        self.assertFalse(os.path.exists(folder))
        with self.assertRaisesRegex(tundish.MisuseError, "closed"):
            iter(loader)

    def test_workers_end_with_the_loop(self):
        loader = self.loader(iterables.Counting(), 2, num_workers=2)
        list(itertools.islice(loader, 2))  # of each worker one
        workers = self.children(loader._forks.process.pid)
        self.assertEqual(len(workers), 2)
        next(iter(loader))
        self.await_gone(*workers)

    def test_an_interpreter_that_is_killed_is_an_error(self):
        loader = self.loader(iterables.Counting(), 2, num_workers=2)
        batches = iter(loader)
        next(batches)
        os.kill(loader._forks.process.pid, signal.SIGKILL)
        with self.assertRaisesRegex(tundish.DataError, "interpreter is gone"):
            list(itertools.islice(batches, 10000))

    def test_a_server_that_is_killed_is_followed_by_one_of_the_next_epoch(self):
        loader = self.loader(iterables.Counting(), 2, num_workers=2)
        batches = iter(loader)
        next(batches)
        os.kill(loader._server.pid, signal.SIGKILL)
        with self.assertRaisesRegex(tundish.ServerGone, "the next loop starts another, .*load_state_dict"):
            list(itertools.islice(batches, 10000))
        next(iter(loader))

    def children(self, pid):
        found = []
        for path in glob.glob("/proc/[0-9]*/stat"):
            with contextlib.suppress(OSError), open(path) as file:
                words = file.read().rpartition(")")[2].split()
                if int(words[1]) == pid:
                    found.append(int(path.split("/")[2]))
        return found

    def await_gone(self, *pids):
        deadline = time.monotonic() + rig.DEADLINE_S
        for pid in pids:
            while os.path.exists(f"/proc/{pid}") and not self.is_zombie(pid):
                self.assertLess(time.monotonic(), deadline, f"process {pid} is there still")
                time.sleep(0.01)

    def is_zombie(self, pid):
        with contextlib.suppress(OSError), open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
        return True


if __name__ == "__main__":
    unittest.main()
