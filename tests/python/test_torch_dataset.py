"""tundish.torch.DataLoader of a map-style data set: torch's values, and places that go on."""

import functools
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path
from unittest import mock

import forked
import rig

import tundish

try:
    import map_style
    import numpy as np
except ImportError:
    map_style = np = None

# One import of torch for all ranks.
JOB = """
import json, os, signal, sys
import map_style, torch
from torch.utils.data.distributed import DistributedSampler
from tundish.torch import DataLoader

world, sampler, steps = int(sys.argv[1]), sys.argv[2], int(sys.argv[3])
state = json.loads(sys.argv[4])

def say(rank, what, value):
    os.write(1, (json.dumps([rank, what, value]) + chr(10)).encode())

def work(rank):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE=str(world))
    data = map_style.Made("drawn", 23)
    own = DistributedSampler(data, world, rank, seed=5) if sampler == "distributed" else None
    if sampler == "weighted":  # each rank draws another order
        torch.manual_seed(rank)
        own = torch.utils.data.WeightedRandomSampler([1.0] * 23, 24)
    loader = DataLoader(data, batch_size=3, sampler=own, shuffle=sampler == "shuffle", seed=7)
    if sampler == "ray":  # its prepare_data_loader() asks before it puts a DistributedSampler into a loader
        loader = DataLoader(data, batch_size=3, shuffle=True)
        asks = {"__name__": "ray.train.v2.torch.train_loop_utils"}
        exec("def asked(loader): return loader.sampler", asks)
        say(rank, "is_left", isinstance(asks["asked"](loader), DistributedSampler))
        vars(loader)["sampler"].set_epoch(2)
    if sampler == "uneven":
        loader = DataLoader(data, batch_sampler=map_style.Pairs(), seed=7)
    if state is not None:
        loader.load_state_dict(state)
    say(rank, "length", len(loader))
    for _, batch in zip(range(steps), loader):
        say(rank, "batch", [column.tolist() for column in batch])
    say(rank, "state", loader.state_dict())
    if steps < 100:
        signal.pause()
    loader.close()

children = []
for rank in range(world):
    child = os.fork()
    if child == 0:
        try:
            work(rank)
        except BaseException:
            import traceback
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    children.append(child)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


# Rank 1 begins when rank 0 has had its epoch, of no more batches than there are slots, and leaves.
# As Lightning starts ranks: without RANK, and the loader is there, and was looked into, before they know of each other.
LATER = """
import copy, json, sys
import map_style, torch
from tundish import ArgumentError
from tundish.torch import DataLoader

if __name__ == "__main__":
    group, rank = sys.argv[1], int(sys.argv[2])
    loader = DataLoader(map_style.Made("integer", 23), 3, shuffle=True, seed=7)
    said = [len(loader), len(next(iter(loader)))]
    torch.distributed.init_process_group("gloo", init_method="file://" + group, rank=rank, world_size=3)
    loader.set_epoch(5)
    said += [len(loader), [batch.tolist() for batch in loader]]
    copied = copy.copy(loader)
    said += [[batch.tolist() for batch in copied]]
    try:
        next(iter(DataLoader("each.yaml")))
    except ArgumentError as error:
        said += ["the ranks of a job share" in str(error)]
    torch.distributed.destroy_process_group()
    said += [len(loader)]
    print(json.dumps(said))
"""

LATE = """
import multiprocessing, os, sys, warnings
import map_style
warnings.simplefilter("ignore", DeprecationWarning)
from tundish.torch import DataLoader

how, (reads, writes) = sys.argv[1], os.pipe()

def work(rank):
    os.environ.update(RANK=str(rank), LOCAL_RANK=str(rank), WORLD_SIZE="2")
    loader = DataLoader(map_style.Made("integer", 23), batch_size=6)
    if rank == 1:
        os.read(reads, 1)
    rows = [row for batch in loader for row in batch.tolist()]
    print(rank, len(rows), flush=True)
    if rank == 0:
        os.write(writes, b"x")
    if how == "close":
        loader.close()

if how == "process":
    ranks = [multiprocessing.get_context("fork").Process(target=work, args=(rank,)) for rank in range(2)]
    for each in ranks:
        each.start()
    for each in ranks:
        each.join()
    sys.exit(max(each.exitcode for each in ranks))
children = []
for rank in range(2):
    children.append(os.fork())
    if children[-1] == 0:
        work(rank)
        sys.exit(0)
sys.exit(max(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children))
"""


# Two loaders, one after the other, as one that is made anew for each epoch.
AGREEING = """
import sys, map_style, torch
from tundish.torch import DataLoader
torch.manual_seed(int(sys.argv[1]))
for _ in range(2):
    with DataLoader(map_style.Made("integer", 8), 2, shuffle=True) as loader:
        print([n for batch in loader for n in batch.tolist()])
"""


@functools.cache
def forks():
    return forked.Interpreter("torch")


def tearDownModule():
    if forks.cache_info().currsize:
        forks().end()


class Case(unittest.TestCase):
    def setUp(self):
        self.torch = rig.needs(self, "torch")
        self.data = self.torch.utils.data
        names = {"TUNDISH_PYTHON": sys.executable, "TUNDISH_BUILD": str(rig.BUILD)}
        patched = mock.patch.dict(os.environ, names)
        patched.start()
        self.addCleanup(patched.stop)

    def loader(self, *arguments, **options):
        from tundish.torch import DataLoader

        loader = DataLoader(*arguments, **{"num_workers": 1, **options})
        self.addCleanup(loader.close)
        return loader

    def assert_same(self, ours, torchs):
        """Values, dtypes, shapes and the kinds of nests."""
        self.assertIs(type(ours), type(torchs))
        if isinstance(ours, self.torch.Tensor):
            self.assertEqual((ours.dtype, ours.shape), (torchs.dtype, torchs.shape))
            self.assertTrue(self.torch.equal(ours, torchs), (ours, torchs))
        elif isinstance(ours, dict):
            self.assertEqual(list(ours), list(torchs))
            self.assert_same(list(ours.values()), list(torchs.values()))
        elif isinstance(ours, list | tuple):
            self.assertEqual(len(ours), len(torchs))
            for a, b in zip(ours, torchs, strict=True):
                self.assert_same(a, b)
        elif np is not None and isinstance(ours, np.ndarray):
            self.assertEqual((ours.dtype, ours.tolist()), (torchs.dtype, torchs.tolist()))
        else:
            self.assertEqual(ours, torchs)

    def assert_like_torch(self, make, epochs=1):
        """make(DataLoader) returns one; both from the same random numbers."""
        found = []
        for kind in (self.loader, self.data.DataLoader):
            self.torch.manual_seed(3)
            loader = make(kind)
            found.append((len(loader), [list(loader) for _ in range(epochs)]))
        self.assert_same(*found)


class Values(Case):
    def test_items_of_each_kind_are_collated_as_torch_does(self):
        kinds = "integer floating truth text lone raw image strided hollow half wide scalar pair nested".split()
        together = map_style.Together([map_style.Made(name) for name in kinds])
        self.assert_like_torch(lambda make: make(together, batch_size=4))
        self.assert_like_torch(lambda make: make(map_style.Made("pair"), 4, drop_last=True))
        self.assert_like_torch(lambda make: make(map_style.Made("integer"), 3))
        self.assert_like_torch(lambda make: make([5, 6, 7, 8]))

    def test_items_that_seed_numpy_themselves_have_torch_s_numbers(self):
        self.assert_like_torch(lambda make: make(map_style.Made("seeded"), batch_size=4, num_workers=2))

    def test_tensors(self):
        torch = self.torch
        tensors = torch.arange(22, dtype=torch.int16).reshape(11, 2), torch.rand(11) > 0.5, torch.rand(11, 1, 3)
        self.assert_like_torch(lambda make: make(self.data.TensorDataset(*tensors), batch_size=4))

    def test_without_batches(self):
        self.assert_like_torch(lambda make: make(map_style.Made("nested"), batch_size=None))
        self.assert_like_torch(lambda make: make(map_style.Made("text", 3), batch_size=None))
        self.assert_like_torch(lambda make: make(map_style.Made("masked", 3), batch_size=None))

    def test_collate_fn_makes_what_the_loop_gets(self):
        data = map_style.Made("sizes")
        for collate in (map_style.padded, map_style.transposed, map_style.boxed):
            self.assert_like_torch(lambda make: make(data, batch_size=4, collate_fn=collate))

    def test_pictures_and_their_masks_are_augmented_alike(self):
        def epochs(workers):
            weights = self.data.WeightedRandomSampler([1, 3] * 10, 20, generator=self.torch.Generator().manual_seed(1))
            loader = self.loader(map_style.Made("segmented", 20), 4, sampler=weights, num_workers=workers, seed=2)
            return [list(loader) for _ in range(2)]

        found = epochs(2)
        self.assert_same(epochs(1), found)
        for image, target in (batch for epoch in found for batch in epoch):
            self.assertEqual(image.shape, (4, 8, 8, 3))
            self.assertTrue(self.torch.equal(image[..., 0] > 100, target["mask"]))
        names = [[name for _, target in epoch for name in target["name"]] for epoch in found]
        self.assertNotEqual(names[0], names[1])

    def test_items_that_are_made_at_once(self):
        self.assert_like_torch(lambda make: make(map_style.AtOnce("", 10), batch_size=4))

    def test_a_data_set_of_hugging_face(self):
        datasets = rig.needs(self, "datasets")
        datasets.disable_progress_bars()
        data = datasets.Dataset.from_dict({"x": list(range(10)), "text": [f"row {n}" for n in range(10)]})
        words = data.map(lambda row: {"ids": [row["x"]] * 3, "size": row["x"] / 2}, load_from_cache_file=False)
        for each in (words, words.with_format("torch", columns=["ids"])):
            self.assert_like_torch(lambda make: make(each, batch_size=4))

    def test_an_empty_one(self):
        self.assert_like_torch(lambda make: make([], batch_size=4))
        self.assert_like_torch(lambda make: make([1, 2], batch_size=4, drop_last=True))

    def test_a_class_of_a_notebook(self):
        rig.needs(self, "cloudpickle")
        script = """
from tundish.torch import DataLoader
import collections, map_style
Item = collections.namedtuple("Item", "n square")
class Cell:
    def __len__(self): return 6
    def __getitem__(self, n): return Item(n, n * n)
print([(type(b) is Item, b.n.tolist(), b.square.tolist()) for b in DataLoader(Cell(), 4)])
print([b for b in DataLoader(Cell(), 4, collate_fn=lambda items: sum(i.square for i in items))])
import sys
sys.modules["cloudpickle"] = None
try: list(DataLoader(Cell(), 4))
except Exception as error: print(type(error).__name__, error)
"""
        environment = {**os.environ, "PYTHONPATH": paths()}
        done = subprocess.run([sys.executable, "-c", script], env=environment, capture_output=True, text=True)
        self.assertEqual(done.returncode, 0, done.stderr)
        values, sums, refusal = done.stdout.splitlines()
        self.assertEqual(values, "[(True, [0, 1, 2, 3], [0, 1, 4, 9]), (True, [4, 5], [16, 25])]")
        self.assertEqual(sums, "[14, 41]")
        self.assertRegex(refusal, "ArgumentError .*script or notebook.*: pip install cloudpickle")


    def test_batches_of_many_sizes_are_torchs(self):
        """Each is made where one of the size before would lie, or not."""
        sizes = [1, 5000, 5000, 5000, 40000, 7, 5000, 0, 40000, 40000, 39999, 1]
        data = [(np.full(size, n, np.int32), n) for n, size in enumerate(sizes * 3)]
        for size in (1, None):
            self.assert_like_torch(lambda kind: kind(data, batch_size=size, num_workers=1), epochs=2)


class Orders(Case):
    def test_samplers(self):
        torch, data = self.torch, map_style.Made("pair")
        weights = [0.1] * 5 + [3.0] * 6

        def seeded():
            return torch.Generator().manual_seed(8)

        for sampler in (
            lambda: self.data.SequentialSampler(data),
            lambda: self.data.RandomSampler(data),
            lambda: self.data.RandomSampler(data, replacement=True, num_samples=17, generator=seeded()),
            lambda: self.data.SubsetRandomSampler([1, 5, 3, 9, 2]),
            lambda: self.data.WeightedRandomSampler(weights, 14, generator=seeded()),
            lambda: self.data.DistributedSampler(data, 1, 0, seed=3),
            lambda: map_style.Reversed(11),
            lambda: [3, 3, 1],
        ):
            self.assert_like_torch(lambda make: make(data, batch_size=4, sampler=sampler()), epochs=2)
        self.assert_like_torch(lambda make: make(data, batch_sampler=map_style.Uneven()), epochs=2)
        self.assert_like_torch(lambda make: make(data, 4, shuffle=True, generator=seeded()), epochs=2)

    def test_a_generator_draws_what_it_does_in_torch_where_workers_persist_and_loops_are_left(self):
        data = self.data.TensorDataset(self.torch.arange(45))

        def epochs(kind, left_after, **options):
            """The rows of four loops, the second of which is left, and the program's next number."""
            self.torch.manual_seed(5)
            generator = self.torch.Generator().manual_seed(8)
            loader = kind(data, 4, shuffle=True, generator=generator, **options)
            found = []
            for n in range(4):
                batches = itertools.islice(loader, left_after if n == 1 else None)
                found.append([row for (batch,) in batches for row in batch.tolist()])
            return found, self.torch.rand(1).item(), self.torch.rand(1, generator=generator).item()

        ahead = {"num_workers": 1, "prefetch_factor": 3}
        for options, lefts in (({"num_workers": 0}, (1, 11)), (ahead, (7, 8, 9)), (ahead | {"persistent_workers": True}, (2, 9))):
            for left_after in lefts:
                with self.subTest(options, left_after=left_after):
                    torch_s = epochs(self.data.DataLoader, left_after, **options)
                    self.assertEqual(epochs(self.loader, left_after, **options), torch_s)

    def epochs(self, **options):
        """The rows of two epochs of a new loader."""
        loader = self.loader(map_style.Made("integer", 40), batch_size=7, shuffle=True, **options)
        return [[n for batch in loader for n in batch.tolist()] for _ in range(2)]

    def test_shuffle_with_a_seed_is_the_same_in_each_run_and_another_in_each_epoch(self):
        first = self.epochs(seed=0)
        self.assertEqual([sorted(epoch) for epoch in first], [list(range(40))] * 2)
        self.assertNotEqual(first[0], first[1])
        self.assertNotEqual(first[0], list(range(40)))
        self.assertEqual(self.epochs(seed=0), first)
        self.assertNotEqual(self.epochs(seed=1), first)
        loader = self.loader(map_style.Made("integer", 40), batch_size=7, shuffle=True, seed=0)
        loader.set_epoch(1)
        self.assertEqual([n for batch in loader for n in batch.tolist()], first[1])

    def test_an_epoch_that_was_left_can_be_asked_for_again(self):
        first = self.epochs(seed=0)
        loader = self.loader(map_style.Made("integer", 40), batch_size=7, shuffle=True, seed=0)
        for _ in range(2):
            loader.set_epoch(0)
            self.assertEqual(next(iter(loader)).tolist(), first[0][:7])
        self.assertEqual([n for batch in loader for n in batch.tolist()], first[1])

    def test_a_loop_that_another_came_before_passes_over_no_epoch(self):
        first = self.epochs(seed=0)
        loader = self.loader(map_style.Made("integer", 40), batch_size=7, shuffle=True, seed=0)
        before, after = iter(loader), iter(loader)
        with self.assertRaisesRegex(tundish.MisuseError, "another loop"):
            next(before)
        self.assertEqual([n for batch in after for n in batch.tolist()], first[0])

    def test_a_fork_leaves_the_programs_loop_alone(self):
        def use(loader, place):
            loader.load_state_dict(place)
            loader.set_epoch(5)
            loader.close()

        loader = self.loader(map_style.Made("integer", 400), batch_size=4, prefetch_factor=2)
        batches = iter(loader)
        had = [next(batches).tolist() for _ in range(3)]
        child = os.fork()
        if child == 0:
            status = 1
            try:
                use(loader, loader.state_dict())
                status = 0
            finally:
                os._exit(status)
        self.assertEqual(os.waitpid(child, 0)[1], 0)
        had += [batch.tolist() for batch in batches]
        self.assertEqual([n for batch in had for n in batch], list(range(400)))

    def test_a_loader_that_is_made_anew_draws_another_order_as_torch_does(self):
        def made_anew(make):
            self.torch.manual_seed(3)
            data = map_style.Made("drawn", 40)
            return [[tuple(row) for b in make(data, 7, shuffle=True) for row in zip(*b)] for _ in range(2)]

        for make in (self.loader, self.data.DataLoader):
            first, second = found = made_anew(make)
            self.assertEqual(sorted(row[0] for row in first), list(range(40)))
            self.assertNotEqual([row[0] for row in first], [row[0] for row in second])
            again = made_anew(make)
            self.assertEqual([[row[0] for row in rows] for rows in again], [[row[0] for row in rows] for rows in found])
            if make == self.loader:  # torch seeds workers alone
                self.assertEqual(again, found)
                self.assertEqual(len({row[1] for rows in found for row in rows}), 80)

    def test_ranks_agree_on_an_order_without_a_seed(self):
        found = []
        for rank in range(2):
            names = {"RANK": str(rank), "LOCAL_RANK": "0", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "1"}
            with mock.patch.dict(os.environ, names):
                job = forks().start(AGREEING, str(rank), environment={**os.environ, "PYTHONPATH": paths()})
                found.append(job.stdout.read().splitlines())
                self.assertEqual(job.wait(), 0)
        first, second = zip(*found)
        self.assertEqual(sorted(json.loads(first[0]) + json.loads(first[1])), list(range(8)))
        self.assertNotEqual(first, second)

    def test_a_loop_that_is_left_is_followed_by_a_whole_one(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.dict(os.environ, MAP_STYLE_COUNTED=f"{folder}/n"):
            loader = self.loader(map_style.Made("counted", 5000), batch_size=2, num_workers=1)
            for _ in range(3):
                self.assertEqual(next(iter(loader)).tolist(), [0, 1])
            left = iter(loader)
            next(left)
            self.assertEqual([n for batch in loader for n in batch.tolist()], list(range(5000)))
            with self.assertRaisesRegex(tundish.MisuseError, "another loop over this loader has begun"):
                next(left)
            kept = [name for name in os.listdir(loader._server.folder) if name.startswith(("batches", "order"))]
            self.assertLessEqual(len(kept), 4)  # those of epochs that a rank may read still
            # Some batches are made ahead, and not the hundreds that the server has dealt.
            self.assertLess(os.stat(f"{folder}/n").st_size, 5000 + 4 * 200)

    def test_what_items_draw_depends_on_the_epoch_and_their_place_alone(self):
        def drawn(workers, batch_size, **options):
            options = {"seed": 0, **options}
            loader = self.loader(map_style.Made("drawn", 30), batch_size, num_workers=workers, **options)
            return [[tuple(row) for batch in loader for row in zip(*(c.tolist() for c in batch))] for _ in range(2)]

        first = drawn(1, 4)
        self.assertEqual(len({row[1:] for epoch in first for row in epoch}), 60)
        self.assertEqual(drawn(3, 4), first)
        self.assertEqual(drawn(2, 7), first)
        self.assertNotEqual(drawn(1, 4, seed=1), first)


class Places(Case):
    def rows(self, loader):
        return [batch.tolist() for batch in loader]

    def test_a_place_goes_on_with_what_is_left(self):
        torch, data = self.torch, map_style.Made("integer", 23)
        makers = (
            lambda: self.loader(data, 4, shuffle=True),
            lambda: self.loader(data, 4, sampler=self.data.WeightedRandomSampler([1.0] * 23, 23)),
            lambda: self.loader(data, 4, sampler=self.data.SubsetRandomSampler(range(9), torch.Generator())),
            lambda: self.loader(data, batch_sampler=map_style.Uneven()),
        )
        for make in makers:
            loader = make()
            whole = self.rows(loader)
            second = [batch.tolist() for _, batch in zip(range(2), loader)]
            state = json.loads(json.dumps(loader.state_dict()))
            resumed = make()
            resumed.load_state_dict(state)
            self.assertEqual(resumed.state_dict(), state)
            second += self.rows(resumed)
            self.assertEqual(len(second), len(whole))
            if make in (makers[0], makers[3]):  # the order of the others is in the state alone
                fresh = make()
                fresh.load_state_dict({**state, "taken": 0})
                self.assertEqual(self.rows(fresh), second)
        # After the last batch nothing is left of the epoch, and the next one follows.
        loader = makers[0]()
        for _, batch in zip(range(len(loader)), loader):
            state = loader.state_dict()
        resumed = makers[0]()
        resumed.load_state_dict(state)
        self.assertEqual(self.rows(resumed), [])
        resumed.set_epoch(0)
        self.assertEqual(self.rows(resumed)[-1], batch.tolist())

    def test_a_place_before_the_first_batch_and_between_epochs_leads_to_the_same_order(self):
        data = map_style.Made("integer", 23)
        loader = self.loader(data, 4, shuffle=True)
        for _ in range(2):
            state = json.loads(json.dumps(loader.state_dict()))
            whole = self.rows(loader)
            self.torch.rand(1)
            resumed = self.loader(data, 4, shuffle=True)
            resumed.load_state_dict(state)
            self.assertEqual(self.rows(resumed), whole)
        self.assertEqual(self.rows(resumed), self.rows(loader))

    def test_a_place_between_epochs_has_what_a_generator_draws_next(self):
        torch, data = self.torch, map_style.Made("integer", 23)
        makers = (
            lambda: self.loader(data, 4, shuffle=True, generator=torch.Generator()),
            lambda: self.loader(data, 4, sampler=self.data.SubsetRandomSampler(range(9), torch.Generator())),
            lambda: self.loader(
                data,
                batch_sampler=self.data.BatchSampler(
                    self.data.RandomSampler(data, generator=torch.Generator()), 5, True
                ),
            ),
        )
        for make in makers:
            loader, resumed = make(), make()
            begin, first = loader.state_dict(), self.rows(loader)
            state, second = json.loads(json.dumps(loader.state_dict())), self.rows(loader)
            self.assertNotEqual(first, second)
            resumed.load_state_dict(state)
            self.assertEqual(resumed.state_dict(), state)
            self.assertEqual(self.rows(resumed), second)
            resumed.load_state_dict(begin)
            next(iter(resumed))
            state = resumed.state_dict()
            resumed = make()
            resumed.load_state_dict(state)
            resumed.set_epoch(1)
            self.assertEqual(self.rows(resumed), second)

    def test_a_place_of_another_seed_counts_also_in_a_loader_that_has_begun(self):
        data = map_style.Made("drawn", 23)

        def rows(loader):
            return [column.tolist() for batch in loader for column in batch]

        loader, other, fresh = (self.loader(data, 4, shuffle=True, seed=seed) for seed in range(3))
        next(iter(loader))
        state = loader.state_dict()
        rows(other)
        for resumed in (other, fresh):
            resumed.load_state_dict(state)
        self.assertEqual([rows(other) for _ in range(2)], [rows(fresh) for _ in range(2)])

    def test_a_place_of_another_data_set_is_refused(self):
        loader = self.loader(map_style.Made("integer", 23), 4)
        next(iter(loader))
        state = loader.state_dict()
        other = self.loader(map_style.Made("integer", 24), 4)
        other.load_state_dict(state)
        with self.assertRaisesRegex(tundish.PlaceError, "an epoch of 23 rows, and this one has 24"):
            next(iter(other))
        with self.assertRaisesRegex(tundish.PlaceError, "no|not one"):
            other.load_state_dict({"version": 1, "place": "0"})


class Ranks(Case):
    def run_job(self, world, sampler, steps=100, state=None, folder=None):
        """What each rank says of its length, batches and state. A job of fewer steps is killed then."""
        words = str(world), sampler, str(steps), json.dumps(state)
        environment = {**os.environ, "PYTHONPATH": paths(), **({"TMPDIR": folder} if folder else {})}
        job = forks().start(JOB, *words, environment=environment)
        said = [{"batch": []} for _ in range(world)]
        for line in job.stdout:
            rank, what, value = json.loads(line)
            said[rank][what] = said[rank]["batch"] + [value] if what == "batch" else value
            if steps < 100 and all("state" in each for each in said):
                os.killpg(job.pid, signal.SIGKILL)
        self.assertEqual(job.wait(), 0 if steps == 100 else -signal.SIGKILL)
        return said

    def test_two_ranks_share_a_server_and_have_what_distributed_samplers_give(self):
        data = map_style.Made("integer", 23)
        for rank, said in enumerate(self.run_job(2, "distributed")):
            sampler = self.data.DistributedSampler(data, 2, rank, seed=5)
            expected = [batch.tolist() for batch in self.data.DataLoader(data, 3, sampler=sampler)]
            self.assertEqual(said["length"], len(expected))
            self.assertEqual([batch[0] for batch in said["batch"]], expected)

    def test_ray_leaves_a_loader_that_gives_what_its_sampler_would(self):
        data = map_style.Made("integer", 23)
        for rank, said in enumerate(self.run_job(2, "ray")):
            sampler = self.data.DistributedSampler(data, 2, rank)
            sampler.set_epoch(2)
            self.assertTrue(said["is_left"])
            self.assertEqual([batch[0] for batch in said["batch"]],
                             [batch.tolist() for batch in self.data.DataLoader(data, 3, sampler=sampler)])

    def test_ranks_that_begin_after_the_loader_was_made_share_its_rows(self):
        with tempfile.TemporaryDirectory() as folder, tempfile.TemporaryDirectory() as other:
            environment = {**os.environ, "PYTHONPATH": paths(), "WORLD_SIZE": "3", "NODE_RANK": "0"}
            places = (folder, other, folder)  # of another node is the rank that has another
            ranks = [forks().start(LATER, f"{folder}/group", str(rank), environment={**environment, "TMPDIR": place})
                     for rank, place in enumerate(places)]  # fmt: skip
            said = [json.loads(each.stdout.read()) for each in ranks]
            self.assertEqual([each.wait() for each in ranks], [0] * 3)
            left = [name for each in (folder, other) for name in os.listdir(each) if name.startswith("tundish")]
            self.assertEqual(left, [])
        alone = self.loader(map_style.Made("integer", 23), 1, shuffle=True, seed=7)
        for at, epoch in ((3, 5), (4, 6)):
            alone.set_epoch(epoch)
            order = [row for batch in alone for row in batch.tolist()]
            order.append(order[0])  # makes the ranks even
            self.assertEqual([sum(each[at], []) for each in said], [order[::3], order[1::3], order[2::3]])
        self.assertEqual([each[:3] + each[5:] for each in said], [[8, 3, 3, True, 8]] * 3)

    def test_a_rank_that_comes_late_has_its_rows_when_the_first_has_left(self):
        for how in ("close", "exit", "process"):
            job = forks().start(LATE, how, environment={**os.environ, "PYTHONPATH": paths()})
            self.assertEqual(sorted(job.stdout), ["0 12\n", "1 12\n"], how)
            self.assertEqual(job.wait(), 0, how)

    def test_a_place_goes_on_after_a_kill_with_other_numbers_of_ranks(self):
        def rows(said):
            return [tuple(row) for each in said for batch in each["batch"] for row in zip(*batch)]

        data = map_style.Made("drawn", 23)

        def alone(state=None):
            loader = self.loader(data, batch_size=3, shuffle=True, seed=7)
            if state is not None:
                loader.load_state_dict(state)
            return rows([{"batch": [[column.tolist() for column in batch] for batch in loader]}])

        whole = alone()
        with tempfile.TemporaryDirectory() as folder:
            killed = self.run_job(2, "shuffle", 2, None, folder)
            had, state = rows(killed), killed[1]["state"]
            self.assertEqual(killed[0]["state"], state)
            self.assertEqual(sorted(had, key=whole.index) + alone(state), whole)
            rest = rows(self.run_job(3, "shuffle", 100, state, folder))
            # Bits of random numbers among them; ranks are made even by rows from the epoch's beginning.
            self.assertEqual(set(had) | set(rest), set(whole))
            self.assertEqual(len(rest), -(-(len(whole) - len(had)) // 3) * 3)
            self.assertEqual(len(set(had) & set(rest)), len(had) + len(rest) - len(whole))
            self.assertEqual(os.listdir(folder), [])


    def test_a_place_of_any_rank_has_what_the_node_s_first_has_drawn(self):
        killed = self.run_job(2, "weighted", 2)
        self.assertEqual(killed[0]["state"], killed[1]["state"])
        state = killed[1]["state"]

        def rows(taken):
            sampler = self.data.WeightedRandomSampler([1.0] * 23, 24)
            loader = self.loader(map_style.Made("drawn", 23), 3, sampler=sampler, seed=7)
            loader.load_state_dict({**state, "taken": taken})
            return [tuple(row) for batch in loader for row in zip(*(column.tolist() for column in batch))]

        had = [tuple(row) for each in killed for batch in each["batch"] for row in zip(*batch)]
        self.assertEqual(sorted(had + rows(state["taken"])), sorted(rows(0)))


    def test_uneven_batches_go_on_with_other_numbers_of_ranks(self):
        def batches(said):
            return [sorted(zip(*batch)) for each in said for batch in each["batch"]]

        def alone(state=None):
            loader = self.loader(map_style.Made("drawn", 23), batch_sampler=map_style.Pairs(), seed=7)
            if state is not None:
                loader.load_state_dict(state)
            return batches([{"batch": [[column.tolist() for column in batch] for batch in loader]}])

        whole, killed = alone(), self.run_job(2, "uneven", 2)
        had, state = batches(killed), killed[0]["state"]
        self.assertEqual(sorted(had), sorted(whole[:4]))
        self.assertEqual(alone(state), whole[4:])
        rest = batches(self.run_job(4, "uneven", 100, state))
        self.assertEqual(sorted(rest), sorted(whole[4:]))


class Options(Case):
    def test_torch_refuses_the_same(self):
        data = [1, 2, 3]
        for options in (
            {"num_workers": -1},
            {"timeout": -1},
            {"prefetch_factor": 2, "num_workers": 0},
            {"persistent_workers": True, "num_workers": 0},
            {"sampler": [0], "shuffle": True},
            {"batch_sampler": [[0]], "batch_size": 2},
            {"batch_sampler": [[0]], "drop_last": True},
            {"batch_size": None, "drop_last": True},
            {"batch_size": 0},
        ):
            for make in (self.loader, self.data.DataLoader):
                with self.assertRaises(ValueError, msg=options):
                    make(data, **options)

    def test_those_that_cannot_be_had_say_why(self):
        class Iterable:
            def __iter__(self):
                return iter(range(3))

        for arguments, options, words in (
            (([1],), {"multiprocessing_context": "fork"}, "never forks the program"),
            (([1],), {"pin_memory_device": "cuda:1"}, "pinned for the current device"),
            ((Iterable(),), {}, "Iterable is iterable, and no torch.utils.data.IterableDataset"),
        ):
            with self.assertRaisesRegex(tundish.ArgumentError, words):
                self.loader(*arguments, **options)
        with self.assertRaises(TypeError):
            self.loader([1], columns=["x"])

    def test_an_item_that_cannot_be_made_is_named(self):
        loader = self.loader(map_style.Made("torn"), batch_size=2)
        for _ in range(2):  # the next loop begins anew, as torch's does
            self.assertEqual(next(iter(loader)).tolist(), [-1, -1])
            with self.assertRaisesRegex(tundish.DataError, r"item 7: ZeroDivisionError: .*\(map_style.py:\d+ in torn"):
                list(loader)

    def test_a_loop_that_could_not_begin_is_begun_again(self):
        class Late(self.data.Dataset):
            is_there = False

            def __len__(self):
                return 4

            def __getitem__(self, index):
                if not Late.is_there:
                    raise LookupError(f"{index} is not there")
                return index

        loader = self.loader(Late(), batch_size=2)
        for _ in range(2):
            with self.assertRaisesRegex(LookupError, "0 is not there"):
                next(iter(loader))
        Late.is_there = True
        self.assertEqual([batch.tolist() for batch in loader], [[0, 1], [2, 3]])
        refused = self.loader(Late(), batch_size=2)
        Late.is_there = False
        with self.assertRaises(LookupError):
            next(iter(refused))
        refused.close()

    def test_a_server_that_is_killed_is_followed_by_one_of_the_next_epoch(self):
        loader = self.loader(list(range(8000)), batch_size=2)
        batches = iter(loader)
        self.assertEqual(next(batches).tolist(), [0, 1])
        state = loader.state_dict()
        os.kill(loader._server._server.pid, signal.SIGKILL)
        with self.assertRaisesRegex(tundish.ServerGone, "the next loop starts another, .*load_state_dict") as gone:
            list(batches)
        self.assertNotIn("call", str(gone.exception))
        self.assertEqual(next(iter(loader)).tolist(), [0, 1])
        loader.load_state_dict(state)
        self.assertEqual(next(iter(loader)).tolist(), [2, 3])

    def test_interpreters_begin_with_worker_init_fn(self):
        for method in (None, "forkserver"):
            options = {"num_workers": 1, "worker_init_fn": print_number, "multiprocessing_context": method}
            loader = self.loader(map_style.Made("integer"), 4, **options)
            self.assertEqual(sum((batch.tolist() for batch in loader), []), list(range(11)))
            server = loader._server._server
            loader.close()  # all is in the log of a server that has ended
            self.assertIn("interpreter 0 begins", server.log)
            options["worker_init_fn"] = cannot_begin
            with self.assertRaisesRegex(tundish.PipelineError, "Batches: .*ValueError: there is no interpreter"):
                list(self.loader(map_style.Made("integer"), 4, **options))


def cannot_begin(number):
    raise ValueError("there is no interpreter here")


def print_number(number):
    print("interpreter", number, "begins")


def paths():
    return os.pathsep.join([rig.PACKAGE, str(Path(__file__).parent)])


if __name__ == "__main__":
    unittest.main()
