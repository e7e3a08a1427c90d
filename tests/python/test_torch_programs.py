"""tundish.torch.DataLoader as programs use torch's: copied, forked, in a thread, several at once, with a data set
that they change."""

import copy
import importlib
import itertools
import os
import pickle
import sys
import tempfile
import threading
import unittest
from unittest import mock

import rig
from test_torch_dataset import Case

import tundish

try:
    import map_style
    import numpy as np
except ImportError:
    map_style = np = None


def rows(loader):
    return [batch.tolist() for batch in loader]


class Copies(Case):
    def test_a_copy_of_a_loader_that_was_used_is_whole(self):
        loader = self.loader(map_style.Made("integer"), 4)
        whole = rows(loader)
        next(iter(loader))
        for made in (copy.deepcopy(loader), pickle.loads(pickle.dumps(loader))):
            self.addCleanup(made.close)
            self.assertEqual(rows(made), whole)
        self.assertEqual(rows(loader), whole)

    def test_a_forked_process_has_a_server_of_its_own(self):
        loader = self.loader(map_style.Made("integer"), 4)
        whole = rows(loader)
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if rows(loader) == whole else 2
                loader.close()
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(rows(loader), whole)

    def test_loops_in_threads_and_in_one_another(self):
        def both(make):
            outer, inner = make(map_style.Made("integer"), 4), make(map_style.Made("floating"), 6)
            found = [rows(itertools.chain([batch], inner)) for batch in outer]
            found.append([[a.tolist(), b.tolist()] for a, b in zip(outer, inner)])
            thread = threading.Thread(target=lambda: found.append(rows(outer)))
            thread.start()
            thread.join(rig.DEADLINE_S)
            return found

        self.assertEqual(both(self.loader), both(self.data.DataLoader))


class Changes(Case):
    def epochs(self, make, **options):
        """What comes of a data set that is changed between two epochs."""
        data = map_style.Made("integer", 5)
        loader = make(data, 2, num_workers=1, **options)
        found = [[[str(n) for n in batch.tolist()] for batch in loader]]
        data.name = "floating"
        found += [[[str(n) for n in batch.tolist()] for batch in loader] for _ in range(2)]
        return found

    def test_a_data_set_that_was_changed_is_made_anew_in_the_next_epoch(self):
        for options in ({}, {"persistent_workers": True}):
            self.assertEqual(self.epochs(self.loader, **options), self.epochs(self.data.DataLoader, **options))
        self.assertEqual(
            self.epochs(self.loader, multiprocessing_context="forkserver"), self.epochs(self.data.DataLoader)
        )

    def reloaded(self, make, base, module):
        """What comes of a data set whose module is edited and imported again, as a notebook's autoreload does."""
        text = (
            f"import torch\nclass Edited(torch.utils.data.{base}):\n    def __len__(self): return 2\n"
            "    def __getitem__(self, index): return index + {0}\n    def __iter__(self): yield {0}\n"
        )
        found, loaders = [], []
        for number in (1, 200, 30000):
            with open(module.__file__, "w") as file:
                file.write(text.format(number))
            importlib.invalidate_caches()
            importlib.reload(module)
            for loader in loaders:
                loader.dataset.__class__ = module.Edited
            loaders.append(make(module.Edited(), 2, num_workers=1))
            found.append([rows(loader) for loader in loaders])
        return found

    def test_code_that_was_imported_again_is_that_of_the_next_epoch(self):
        with tempfile.TemporaryDirectory() as folder, mock.patch.object(sys, "path", [*sys.path, folder]):
            for base in ("Dataset", "IterableDataset"):
                name = f"edited_{base}"
                open(os.path.join(folder, f"{name}.py"), "w").close()
                module = importlib.import_module(name)
                self.addCleanup(sys.modules.pop, name)
                ours, torchs = (self.reloaded(make, base, module) for make in (self.loader, self.data.DataLoader))
                self.assertEqual(ours, torchs)

    def test_data_sets_before_a_change_are_not_kept(self):
        data = map_style.Made("integer", 5)
        loader = self.loader(data, 2)
        for name in ("integer", "floating", "truth", "wide", "wide"):
            data.name = name
            list(loader)
        kept = [name for name in os.listdir(loader._server.folder) if name.startswith("objects")]
        self.assertLessEqual(len(kept), 2)

    def test_an_option_is_not_set_afterwards(self):
        for make in (self.loader, self.data.DataLoader):
            loader = make([1, 2, 3], 2)
            for name in ("batch_size", "sampler", "drop_last"):
                with self.assertRaisesRegex(ValueError, name):
                    setattr(loader, name, 1)


class Values(Case):
    def test_dtypes_that_no_column_has(self):
        torch = self.torch
        for dtype in (torch.complex64, torch.uint16, torch.bfloat16, torch.bool):
            data = self.data.TensorDataset(torch.arange(6).to(dtype), torch.zeros(6, 0))
            self.assert_like_torch(lambda make: make(data, 4, collate_fn=map_style.kept))

    def test_a_sampler_of_lists_asks_the_data_set_for_all_at_once(self):
        def make(kind):
            lists = self.data.BatchSampler(self.data.RandomSampler(range(11)), 4, False)
            return kind(map_style.Indexed(11), batch_size=None, sampler=lists)

        self.assert_like_torch(make, epochs=2)
        loader = make(self.loader)
        whole = rows(loader)
        next(iter(loader))
        resumed = make(self.loader)
        resumed.load_state_dict(loader.state_dict())
        self.assertEqual(len(rows(resumed)), len(whole) - 1)

    def test_items_know_their_worker_as_in_torch(self):
        class Informed(self.data.Dataset):
            def __len__(self):
                return 5

            def __getitem__(self, index, torch=self.torch):
                info = torch.utils.data.get_worker_info()
                return index, info is not None, info.num_workers if info else 0

        for count in (0, 1):
            self.assert_like_torch(lambda make: make(Informed(), 4, num_workers=count))


class Refusals(Case):
    def test_a_sampler_without_end_is_named(self):
        many = mock.patch.multiple("tundish.torch_dataset", _MANY=10, _MANY_BATCHES=10)
        for options in ({"sampler": map_style.Endless(1)}, {"batch_sampler": map_style.Endless([1])}):
            with many, self.assertRaisesRegex(tundish.ArgumentError, r"not ended after 58 .*itertools\.islice"):
                next(iter(self.loader([1, 2, 3], **options)))

    def test_a_bad_item_says_nothing_of_a_pipeline(self):
        for name, words in (("torn", "item 7: Zero"), ("ended", "an interpreter returned 3")):
            with self.assertRaisesRegex(tundish.DataError, words) as refused:
                list(self.loader(map_style.Made(name), 2))
            self.assertNotRegex(str(refused.exception), "Batches|yaml|line 1 of")


if __name__ == "__main__":
    unittest.main()
