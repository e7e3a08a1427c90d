"""accelerate, Lightning and transformers: training with two processes that is killed and resumed gets the
rows of one that is not, and each checkpoint leads to the batch after it."""

import contextlib
import json
import os
import subprocess
import sys
import tempfile
import unittest
import warnings
from pathlib import Path

import rig

import tundish

LAUNCH = rig.REPOSITORY / "scripts" / "tundish-launch"
TRAINER = Path(__file__).with_name("trainers.py")
STAGES = ("range: {stop: 72}", "shuffle: {buffer_size: 72}", "batch: 12")  # 6 steps of two replicas
UNKNOWN = (*STAGES[:2], "filter: 'value >= 0'", STAGES[2])  # the same, but nobody knows the steps
EPOCHS = 3


class TwoProcesses(unittest.TestCase):
    def setUp(self):
        self.path = Path(self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-trainers-")))

    def run_of(self, kind, folder, stop, stages):
        """Whether it went to its end."""
        (self.path / folder).mkdir(exist_ok=True)
        text = rig.pipeline(*stages, replicas=2, deliver=f"{{epochs: {EPOCHS}}}")
        (self.path / "pipeline.yaml").write_text(text)
        done = subprocess.run(
            [sys.executable, LAUNCH, "pipeline.yaml", "--replicas", "2", "--admin", "none", "--",
             sys.executable, TRAINER, kind, folder, str(stop)],
            env=dict(os.environ, PYTHONPATH=rig.PACKAGE, TUNDISH_BUILD=str(rig.BUILD)),
            cwd=self.path,
            capture_output=True,
            text=True,
            timeout=rig.DEADLINE_S,
        )  # fmt: skip
        self.assertEqual(done.returncode == 0, stop == 0, done.stdout + done.stderr)

    def rows(self, folder):
        files = [self.path / folder / f"rows-{rank}" for rank in range(2)]
        return [[json.loads(line) for line in file.read_text().splitlines()] for file in files]

    def whole(self, stages):
        """What each of two replicas gets that nobody stops."""
        text = rig.pipeline(*stages, replicas=2, deliver=f"{{epochs: {EPOCHS}}}")
        with rig.serve(text) as server:
            readers = [server.open("train", replica=replica) for replica in range(2)]
            rows = [[], []]
            for _ in range(6 * EPOCHS + EPOCHS):
                for reader, found in zip(readers, rows):
                    with contextlib.suppress(tundish.EndOfEpoch):
                        found.append(reader.next()["value"].tolist())
        return rows

    def assert_resumes(self, kind, stages=STAGES):
        self.run_of(kind, "killed", 10, stages)  # saved at 4 and 8
        before = self.rows("killed")
        for file in (self.path / "killed").glob("rows-*"):
            file.unlink()
        self.run_of(kind, "killed", 0, stages)
        whole, after = self.whole(stages), self.rows("killed")
        self.assertEqual([len(rows) for rows in whole], [6 * EPOCHS] * 2)
        for rank in range(2):
            self.assertEqual(before[rank][:8] + after[rank], whole[rank], (kind, rank))

    def test_accelerate(self):
        rig.needs(self, "accelerate")
        self.assert_resumes("accelerate", UNKNOWN)

    def test_lightning(self):
        rig.needs(self, "pytorch_lightning")
        self.assert_resumes("lightning", UNKNOWN)

    def test_transformers(self):
        rig.needs(self, "transformers")
        rig.needs(self, "accelerate")
        self.assert_resumes("transformers")


class Each(unittest.TestCase):
    """One process: what each library does with a loader, with a length that is known and one that is not."""

    def setUp(self):
        self.torch = rig.needs(self, "torch")
        self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-trainers-"))
        warnings.filterwarnings("ignore")
        self.addCleanup(warnings.resetwarnings)

    def served(self, stages):
        return rig.serve(rig.pipeline(*stages, deliver="{}"))

    def loader(self, server, **options):
        from tundish.torch import DataLoader

        return DataLoader("train", server=server.socket, **options)

    def model(self, rows):
        torch = self.torch

        class Model(torch.nn.Module):
            def __init__(self):
                super().__init__()
                self.inner = torch.nn.Linear(1, 1)

            def forward(self, value=None, **_):
                rows.append(value.tolist())
                return {"loss": self.inner(value[:, None].float()).mean()}

        return Model()


class Accelerate(Each):
    def setUp(self):
        super().setUp()
        self.accelerate = rig.needs(self, "accelerate")

    def prepared(self, server, accumulation=1):
        accelerator = self.accelerate.Accelerator(cpu=True, gradient_accumulation_steps=accumulation)
        loader = accelerator.prepare(self.loader(server))
        self.assertIs(type(loader), type(self.loader(server)))
        return accelerator, loader

    def test_a_state_holds_the_place_and_accumulation_ends_with_the_epoch(self):
        for stages in (STAGES, UNKNOWN):
            whole, steps = [], []
            with self.served(stages) as server:
                accelerator, loader = self.prepared(server, accumulation=4)
                for epoch in range(2):
                    for i, batch in enumerate(loader):
                        with accelerator.accumulate():
                            steps.append(accelerator.sync_gradients)
                        whole.append(batch["value"].tolist())
                        if epoch == 0:
                            accelerator.save_state(f"{self.folder}/{i}")
            self.assertEqual(steps, [False, False, False, True, False, True] * 2)
            for i in (0, 3, 5):  # the last of the epoch is followed by the next epoch
                with self.served(stages) as server:
                    accelerator, loader = self.prepared(server)
                    accelerator.load_state(f"{self.folder}/{i}")
                    rest = [batch["value"].tolist() for batch in loader]
                    self.assertEqual(rest, whole[i + 1 : 6] or whole[6:])

    def test_a_loop_that_was_left_saves_the_place_of_the_batch_that_it_had(self):
        with self.served(UNKNOWN) as server:
            _, loader = self.prepared(server, accumulation=4)
            batches = iter(loader)
            seen = [next(batches)["value"].tolist() for _ in range(2)]
            del batches
            state = loader.state_dict()
            loader.load_state_dict(state)
            rest = [batch["value"].tolist() for batch in loader]
            self.assertEqual(len(rest), 4)
            self.assertEqual(sorted(sum(seen + rest, [])), list(range(72)))

    def test_first_batches_are_skipped_and_metrics_gathered(self):
        for stages in (STAGES, UNKNOWN):
            with self.served(stages) as server:
                accelerator, loader = self.prepared(server, accumulation=4)
                whole = [batch["value"].tolist() for batch in loader]
            with self.served(stages) as server:
                accelerator, loader = self.prepared(server, accumulation=4)
                found, steps = [], []
                for batch in self.accelerate.skip_first_batches(loader, 3):
                    with accelerator.accumulate():
                        steps.append(accelerator.sync_gradients)
                    found.append(accelerator.gather_for_metrics(batch["value"]).tolist())
                self.assertEqual(found, whole[3:])
                self.assertEqual(steps, [False, False, True])

    def test_to_others_it_is_no_loader_of_torchs(self):
        with self.served(STAGES) as server:
            self.assertNotIsInstance(self.loader(server), self.torch.utils.data.DataLoader)


class Lightning(Each):
    def setUp(self):
        super().setUp()
        self.lightning = rig.needs(self, "pytorch_lightning")

    def fitted(self, stages, found=None, **options):
        from tundish.lightning import SavePlace

        lightning, rows = self.lightning, []
        module = type("Module", (lightning.LightningModule,), {})
        model = self.model(rows)
        module.training_step = lambda self, batch, _: self.model(**batch)["loss"]
        module.configure_optimizers = lambda self: torch.optim.SGD(self.parameters(), 0.0)
        torch, made = self.torch, module()
        made.model = model
        with self.served(stages) as server:
            loader = self.loader(server)
            saves = lightning.callbacks.ModelCheckpoint(
                dirpath=self.folder, filename="{step}", every_n_train_steps=1, save_top_k=-1
            )
            lightning.Trainer(
                accelerator="cpu",
                max_epochs=2,
                logger=False,
                enable_progress_bar=False,
                callbacks=[SavePlace(loader), saves],
                **options,
            ).fit(made, loader, ckpt_path=found)
        return rows

    def test_every_checkpoint_leads_to_the_batch_after_it(self):
        for stages, options in ((STAGES, {"limit_train_batches": 4}), (UNKNOWN, {}), (STAGES, {})):
            self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-trainers-"))
            whole = self.fitted(stages, **options)
            self.assertEqual(len(whole), 2 * options.get("limit_train_batches", 6))
            half = len(whole) // 2
            for step in (1, half - 1, half, half + 1, 2 * half):
                found = os.path.join(self.folder, f"step={step}.ckpt")
                self.assertEqual(self.fitted(stages, found, **options), whole[step:], (options, step))


class Transformers(Each):
    def setUp(self):
        super().setUp()
        rig.needs(self, "accelerate")
        self.transformers = rig.needs(self, "transformers")

    def trained(self, stages, found=None, **options):
        from tundish.transformers import SavePlace

        rows = []
        with self.served(stages) as server:
            loader = self.loader(server)
            trainer = type("Trainer", (self.transformers.Trainer,), {"get_train_dataloader": lambda _: loader})
            arguments = self.transformers.TrainingArguments(
                output_dir=self.folder,
                save_steps=1,
                use_cpu=True,
                report_to=[],
                disable_tqdm=True,
                logging_strategy="no",
                **options,
            )
            trainer(model=self.model(rows), args=arguments, callbacks=[SavePlace()]).train(found)
        return rows

    def test_every_checkpoint_leads_to_the_batch_after_it(self):
        cases = (
            (STAGES, 6, {"num_train_epochs": 2}),
            (STAGES, 2, {"num_train_epochs": 2, "gradient_accumulation_steps": 4}),
            (UNKNOWN, 6, {"max_steps": 12}),
        )
        for stages, steps, options in cases:
            self.folder = self.enterContext(tempfile.TemporaryDirectory(prefix="tundish-trainers-"))
            whole = self.trained(stages, **options)
            self.assertEqual(len(whole), 12)
            for step in (1, steps, steps + 1):
                rest = self.trained(stages, os.path.join(self.folder, f"checkpoint-{step}"), **options)
                self.assertEqual(rest, whole[len(whole) - len(rest) :], (options, step))
                trained = step if steps == 6 else {1: 4, 2: 6, 3: 10}[step]  # of batches
                self.assertEqual(len(rest), 12 - trained)

    def test_another_loader_is_refused(self):
        from tundish.transformers import SavePlace

        with self.assertRaisesRegex(TypeError, "no tundish.torch.DataLoader"):
            SavePlace().on_train_begin(None, None, None, train_dataloader=[])


class Without(unittest.TestCase):
    def test_none_of_them_is_imported_by_the_loader(self):
        rig.needs(self, "torch")
        script = (
            "import sys, tundish.torch\nlist(tundish.torch.DataLoader('train'))\n"
            "print([n for n in ('accelerate', 'transformers', 'pytorch_lightning') if n in sys.modules])"
        )
        with rig.serve(rig.pipeline(*STAGES)) as server:
            self.assertEqual(server.python(script).stdout, "[]\n")


if __name__ == "__main__":
    unittest.main()
