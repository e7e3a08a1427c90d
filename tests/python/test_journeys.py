"""Programs of PyTorch and of libraries about it, with tundish.torch.DataLoader in the place of torch's."""

import json
import logging
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path
from unittest import mock

import rig

import tundish

try:
    import iterables
    import journey
    import journey_sets
    import map_style
except ImportError:
    iterables = journey = journey_sets = map_style = None

JOURNEY = Path(__file__).with_name("journey.py")
STEPS, ROWS = 5, 20  # of an epoch


class Case(unittest.TestCase):
    def setUp(self):
        self.torch = rig.needs(self, "torch")
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-journey-"))
        names = {"TUNDISH_PYTHON": sys.executable, "TUNDISH_BUILD": str(rig.BUILD)}
        self.enterContext(mock.patch.dict(os.environ, names))
        self.enterContext(warnings.catch_warnings())
        warnings.simplefilter("ignore")

    def loader(self, name="integer", count=ROWS, batch_size=4, **options):
        from tundish.torch import DataLoader

        options = {"num_workers": 1, "shuffle": True, "seed": 3, **options}
        loader = DataLoader(map_style.Made(name, count), batch_size, **options)
        self.addCleanup(loader.close)
        return loader

    def assert_epochs(self, batches):
        for begin in range(0, len(batches), STEPS):
            self.assertEqual(sorted(sum(batches[begin : begin + STEPS], [])), list(range(ROWS)))


class Torchrun(Case):
    def run_of(self, world, folder, stop=0):
        """{rank: its [step, rows] in order}"""
        launch = ["-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}"]
        done = subprocess.run(
            [sys.executable, *launch, JOURNEY, folder, str(stop)],
            env={**os.environ, "PYTHONPATH": os.pathsep.join([rig.PACKAGE, str(JOURNEY.parent)]), "TMPDIR": self.folder},
            capture_output=True,
            text=True,
            timeout=rig.DEADLINE_S,
        )  # fmt: skip
        self.assertEqual(done.returncode == 0, stop == 0, done.stdout + done.stderr)
        files = [Path(folder, f"rows-{rank}") for rank in range(world)]
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    def rows(self, said):
        return [tuple(row) for each in said for _, rows in each for row in rows]

    def test_two_ranks_of_which_one_is_killed_go_on_as_one_and_as_four(self):
        killed = Path(self.enterContext(tempfile.TemporaryDirectory()))
        had = self.rows([each[:4] for each in self.run_of(2, killed, stop=4)])
        place = (killed / "place").read_bytes()
        whole = self.loader("drawn", journey.ROWS, journey.BATCH, seed=5)
        whole = [tuple(row) for batch in whole for row in zip(*(column.tolist() for column in batch))]
        self.assertEqual(sorted(had), sorted(whole[: len(had)]))
        for world in (1, 4):
            with tempfile.TemporaryDirectory() as folder:
                Path(folder, "place").write_bytes(place)
                rest = self.rows(self.run_of(world, folder))
                # Bits of random numbers among them.
                self.assertEqual(sorted(had + rest), sorted(whole), world)
        left = [name for name in os.listdir(self.folder) if name.startswith("tundish-")]
        self.assertEqual(left, [])


class Accelerate(Case):
    def setUp(self):
        super().setUp()
        self.accelerate = rig.needs(self, "accelerate")

    def prepared(self, **options):
        accelerator = self.accelerate.Accelerator(cpu=True, **options)
        loader = self.loader()
        self.assertIs(accelerator.prepare(loader), loader)
        return accelerator, loader

    def test_a_state_goes_on_and_accumulation_ends_with_the_epoch(self):
        accelerator, loader = self.prepared(gradient_accumulation_steps=3)
        whole, steps = [], []
        for epoch in range(2):
            for number, batch in enumerate(loader):
                with accelerator.accumulate():
                    steps.append(accelerator.sync_gradients)
                whole.append(accelerator.gather_for_metrics(batch).tolist())
                if epoch == 0:
                    accelerator.save_state(f"{self.folder}/{number}")
        self.assertEqual(steps, [False, False, True, False, True] * 2)
        self.assert_epochs(whole)
        for number in (1, 4):  # the last of the epoch is followed by the next one
            accelerator, loader = self.prepared()
            accelerator.load_state(f"{self.folder}/{number}")
            rest = [batch.tolist() for batch in loader]
            self.assertEqual(rest, whole[number + 1 : STEPS] or whole[STEPS:])

    def test_first_batches_are_skipped(self):
        _, loader = self.prepared()
        whole = [batch.tolist() for batch in loader]
        accelerator, loader = self.prepared(gradient_accumulation_steps=2)
        rest, steps = [], []
        for batch in self.accelerate.skip_first_batches(loader, 2):
            with accelerator.accumulate():
                steps.append(accelerator.sync_gradients)
            rest.append(batch.tolist())
        self.assertEqual((rest, steps), (whole[2:], [False, True, True]))

    def test_a_trainer_of_transformers_that_saves_no_place_is_warned(self):
        _, loader = self.prepared()
        trainer = {"__name__": "transformers.trainer", "skip": self.accelerate.skip_first_batches, "loader": loader}
        with self.assertWarnsRegex(RuntimeWarning, "SavePlace"):
            exec("skip(loader, 2)", trainer)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            self.accelerate.skip_first_batches(loader, 2)
            loader.resume(loader.place, skipped=2)
            exec("skip(loader, 2)", trainer)


class Iterable(rig.SharesForks):
    """The same of an IterableDataset, whose batches nobody counts beforehand."""

    def loader(self, name=None, count=ROWS, batch_size=4, **options):
        from tundish.torch import DataLoader

        loader = DataLoader(iterables.Shards(count, name), batch_size, num_workers=1, **options)
        self.addCleanup(loader.close)
        return loader


class AccelerateIterable(Iterable, Accelerate):
    pass


class Lightning(Case):
    KINDS = (False, True)  # with SavePlace

    def setUp(self):
        super().setUp()
        self.lightning = rig.needs(self, "pytorch_lightning")
        logging.getLogger("pytorch_lightning").setLevel(logging.ERROR)

    def test_fabric_takes_a_loader_and_saves_its_place(self):
        fabric = rig.needs(self, "lightning_fabric").Fabric(accelerator="cpu", devices=1)
        fabric.launch()
        whole = [batch.tolist() for batch in self.loader()]
        loader = fabric.setup_dataloaders(self.loader())
        batches = iter(loader)
        rows = [next(batches).tolist()]
        fabric.save(f"{self.folder}/saved", {"loader": loader})
        self.assertEqual(rows + [batch.tolist() for batch in batches], whole)
        loader = fabric.setup_dataloaders(self.loader())
        fabric.load(f"{self.folder}/saved", {"loader": loader})
        self.assertEqual([batch.tolist() for batch in loader], whole[1:])

    def fitted(self, folder, saves_place, found=None):
        """The rows of all steps, with a checkpoint in the folder after each."""
        torch, lightning, rows = self.torch, self.lightning, []

        class Module(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(1, 1)

            def training_step(self, batch, index):
                rows.append(batch.tolist())
                return self.inner(batch[:, None].float()).mean()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), 0.0)

        loader = self.loader()
        callbacks = [
            lightning.callbacks.ModelCheckpoint(
                dirpath=folder, filename="{step}", every_n_train_steps=1, save_top_k=-1
            )
        ]
        if saves_place:
            from tundish.lightning import SavePlace

            callbacks.insert(0, SavePlace(loader))
        lightning.Trainer(
            accelerator="cpu",
            max_epochs=2,
            logger=False,
            enable_progress_bar=False,
            enable_model_summary=False,
            callbacks=callbacks,
        ).fit(Module(), loader, ckpt_path=found)
        loader.close()
        return rows

    def test_a_checkpoint_goes_on_with_the_batch_after_it(self):
        for saves_place in self.KINDS:
            folder = f"{self.folder}/{saves_place}"
            whole = self.fitted(folder, saves_place)
            self.assert_epochs(whole)
            for step in (3, 5):  # 5: an epoch's end
                rest = self.fitted(f"{folder}/from-{step}", saves_place, f"{folder}/step={step}.ckpt")
                self.assertEqual(rest, whole[step:], (saves_place, step))


    def test_overfitting_takes_the_first_batches_in_order(self):
        """Lightning makes the loader again, with its options and without its order."""
        rows = []

        class Module(self.lightning.LightningModule):
            def training_step(self, batch, index):
                rows.append([int(row) for row in batch])

            def configure_optimizers(self):
                return None

        for collate_fn in (None, list):
            rows.clear()
            self.lightning.Trainer(
                accelerator="cpu",
                max_epochs=2,
                overfit_batches=2,
                logger=False,
                enable_checkpointing=False,
                enable_progress_bar=False,
                enable_model_summary=False,
            ).fit(Module(), self.loader(collate_fn=collate_fn))
            self.assertEqual(rows, [[0, 1, 2, 3], [4, 5, 6, 7]] * 2)


class LightningIterable(Iterable, Lightning):
    KINDS = (True,)


class Transformers(Case):
    LENGTH = {"num_train_epochs": 2}

    def setUp(self):
        super().setUp()
        rig.needs(self, "accelerate")
        self.transformers = rig.needs(self, "transformers")

    def trained(self, folder, found=None):
        """The rows of all steps, with a checkpoint in the folder after each."""
        from tundish.transformers import SavePlace

        torch, rows = self.torch, []
        loader = self.loader("labelled")

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(1, 1)

            def forward(self, value=None, **_):
                rows.append(value.tolist())
                return {"loss": self.inner(value[:, None].float()).mean()}

        class Trainer(self.transformers.Trainer):
            def get_train_dataloader(self):
                return loader

        options = self.transformers.TrainingArguments(
            output_dir=folder,
            save_steps=1,
            use_cpu=True,
            report_to=[],
            disable_tqdm=True,
            logging_strategy="no",
            **self.LENGTH,
        )
        Trainer(model=Model(), args=options, callbacks=[SavePlace()]).train(resume_from_checkpoint=found)
        loader.close()
        return rows

    def test_a_checkpoint_goes_on_with_the_batch_after_it(self):
        folder = f"{self.folder}/whole"
        whole = self.trained(folder)
        self.assert_epochs(whole)
        for step in (3, 5, 7):  # 5: an epoch's end
            rest = self.trained(f"{self.folder}/from-{step}", f"{folder}/checkpoint-{step}")
            self.assertEqual(rest, whole[step:], step)


class TransformersIterable(Iterable, Transformers):
    LENGTH = {"max_steps": 2 * STEPS}


class DataSets(Case):
    """Programs of several subjects: what torch's own loader gives, and after a place of the midst of an epoch, and
    with any number of interpreters, the same."""

    def made(self, *arguments, **options):
        from tundish.torch import DataLoader

        loader = DataLoader(*arguments, **options)
        self.addCleanup(loader.close)
        return loader

    def plain(self, value):
        """Values, shapes and dtypes, to be compared."""
        if isinstance(value, self.torch.Tensor):
            return str(value.dtype), value.shape, value.tolist()
        if isinstance(value, dict):
            return {name: self.plain(each) for name, each in value.items()}
        return [self.plain(each) for each in value] if isinstance(value, list | tuple) else value

    def assert_as_torchs(self, dataset, *arguments, make_options=dict, **options):
        """make_options(): those that may be used by one loader alone."""
        found = []
        for kind, workers in ((self.torch.utils.data.DataLoader, 0), (self.made, 1), (self.made, 2)):
            loader = kind(dataset, *arguments, num_workers=workers, **options, **make_options())
            found.append([self.plain(list(loader)) for _ in range(2)])
        self.assertEqual(found[0], found[1])
        self.assertEqual(found[0], found[2])

    def assert_goes_on(self, dataset, batch_size=4, **options):
        """Random numbers among them: two epochs whole, and from a place in each of them on."""
        whole, places = [], []
        loader = self.made(dataset, batch_size, shuffle=True, seed=4, num_workers=1, **options)
        for _ in range(2):
            for batch in loader:
                whole.append(self.plain(batch))
                places.append(loader.state_dict())
        self.assertNotEqual(whole[: len(whole) // 2], whole[len(whole) // 2 :])
        for step in (1, len(whole) // 2 + 1):
            loader = self.made(dataset, batch_size, shuffle=True, seed=4, num_workers=2, **options)
            loader.load_state_dict(places[step])
            rest = [self.plain(batch) for _ in range(2) for batch in loader]
            self.assertEqual(rest[: len(whole) - step - 1], whole[step + 1 :])
        return whole

    def test_a_folder_of_sounds(self):
        rig.needs(self, "soundfile")
        journey_sets.write_sounds(self.folder)
        sounds = journey_sets.Sounds(self.folder)
        self.assert_as_torchs(sounds, 5, collate_fn=journey_sets.padded_sounds)
        self.assert_as_torchs(sounds, None)
        self.assert_goes_on(journey_sets.Sounds(self.folder, 400), collate_fn=journey_sets.padded_sounds)
        Path(sounds.paths[6]).write_bytes(b"no sound")
        with self.assertRaisesRegex(tundish.DataError, f"item 6: .*{sounds.paths[6]}"):
            list(self.made(sounds, 5, num_workers=1, collate_fn=journey_sets.padded_sounds))

    def test_slices_of_scans(self):
        heads = journey_sets.write_scans(f"{self.folder}/scans")
        scans = journey_sets.Scans(f"{self.folder}/scans", heads)
        self.assert_as_torchs(scans, 4)
        self.assert_as_torchs(scans, 5, drop_last=True, sampler=[3, 1, 17, 0, 5, 9, 2])

    def test_texts_that_are_tokenized_and_padded_by_length(self):
        tokenizers = rig.needs(self, "tokenizers")
        tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE(unk_token="?"))
        tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.Whitespace()
        trainer = tokenizers.trainers.BpeTrainer(vocab_size=60, special_tokens=["?", "[PAD]"], show_progress=False)
        tokenizer.train_from_iterator(journey_sets.SENTENCES, trainer)
        tokenizer.enable_padding(pad_id=1, pad_token="[PAD]")
        collate = journey_sets.Tokenized(tokenizer)

        def by_length():
            generator = self.torch.Generator().manual_seed(6)
            return {"batch_sampler": journey_sets.ByLength(8, generator)}

        self.assert_as_torchs(journey_sets.Sentences(), make_options=by_length, collate_fn=collate)

    def test_pictures_that_a_library_augments_by_numbers_of_its_own(self):
        for batch in self.assert_goes_on(journey_sets.Segmented(seeds=True)):
            (_, _, images), (_, _, masks) = batch
            for (red, _, _), mask in zip(images, masks, strict=True):
                self.assertEqual([[value > 100 for value in row] for row in red], mask)

    def test_numbers_of_a_library_that_nobody_seeds_are_warned_of(self):
        for seeds, expected in ((True, 0), (False, 1)):
            with warnings.catch_warnings(record=True) as found:
                warnings.simplefilter("always")
                next(iter(self.made(journey_sets.Segmented(seeds), 4, num_workers=1)))
            words = [each for each in found if "draws from a generator of its own" in str(each.message)]
            self.assertEqual(len(words), expected)


if __name__ == "__main__":
    unittest.main()
