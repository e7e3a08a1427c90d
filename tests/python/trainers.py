"""A trainer of two processes: trainers.py accelerate|lightning|transformers FOLDER STOP

It saves a checkpoint in FOLDER at every fourth step, goes on at the newest one there is, writes the rows of
each batch to a file of its rank, and kills itself after the step STOP (0: it does not).
"""

import contextlib
import json
import os
import signal
import sys
import warnings

import torch

from tundish.torch import DataLoader

EVERY = 4
EPOCHS = 3
KIND, FOLDER, STOP = sys.argv[1], sys.argv[2], int(sys.argv[3])
RANK = os.environ["RANK"]
warnings.simplefilter("ignore")


class Model(torch.nn.Module):
    """Counts its steps, so that a checkpoint holds them."""

    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(1, 1)
        self.register_buffer("steps", torch.zeros((), dtype=torch.int64))

    def forward(self, value=None, **_):
        with open(f"{FOLDER}/rows-{RANK}", "a", encoding="utf-8") as file:
            file.write(json.dumps(value.tolist()) + "\n")
        self.steps += 1
        return {"loss": self.inner(value[:, None].float()).mean()}

    def end_of_step(self):
        if STOP and self.steps == STOP:
            os.kill(os.getpid(), signal.SIGKILL)


def of_accelerate():
    from accelerate import Accelerator

    accelerator = Accelerator(cpu=True)
    model = Model()
    optimizer = torch.optim.SGD(model.parameters(), 0.0)
    prepared, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(columns=["value"]))
    with contextlib.suppress(FileNotFoundError):
        accelerator.load_state(f"{FOLDER}/{newest('state-')}")
    while not loader.reader.ended:
        for (value,) in loader:
            accelerator.backward(prepared(value)["loss"])
            optimizer.step()
            if model.steps % EVERY == 0:
                accelerator.save_state(f"{FOLDER}/state-{int(model.steps)}")
            accelerator.gather_for_metrics(value)
            model.end_of_step()


def newest(prefix):
    numbers = [int(name[len(prefix) :].split(".")[0]) for name in os.listdir(FOLDER) if name.startswith(prefix)]
    if not numbers:
        raise FileNotFoundError(prefix)
    return f"{prefix}{max(numbers)}"


def of_lightning():
    import pytorch_lightning as lightning

    from tundish.lightning import SavePlace

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, index):
            return self.model(batch[0])["loss"]

        def on_train_batch_end(self, *_):
            # Callbacks come before it: the checkpoint is written.
            self.model.end_of_step()

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), 0.0)

    loader = DataLoader(columns=["value"])
    saves = lightning.callbacks.ModelCheckpoint(
        dirpath=FOLDER,
        filename="state-{step}",
        auto_insert_metric_name=False,
        every_n_train_steps=EVERY,
        save_top_k=-1,
    )
    trainer = lightning.Trainer(
        accelerator="cpu",
        devices=2,
        strategy="ddp",
        max_epochs=EPOCHS,
        logger=False,
        enable_progress_bar=False,
        callbacks=[SavePlace(loader), saves],
    )
    found = None
    with contextlib.suppress(FileNotFoundError):
        found = f"{FOLDER}/{newest('state-')}.ckpt"
    trainer.fit(Module(), loader, ckpt_path=found)


def of_transformers():
    import transformers

    from tundish.transformers import SavePlace

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return DataLoader()

    class Ends(transformers.TrainerCallback):
        def on_step_begin(self, *_, **__):
            model.end_of_step()  # of the step before, which is saved

    model = Model()
    options = transformers.TrainingArguments(
        output_dir=FOLDER,
        save_steps=EVERY,
        use_cpu=True,
        report_to=[],
        disable_tqdm=True,
        logging_strategy="no",
        num_train_epochs=EPOCHS,
    )
    trainer = Trainer(model=model, args=options, callbacks=[SavePlace(), Ends()])
    trainer.train(resume_from_checkpoint=any(name.startswith("checkpoint-") for name in os.listdir(FOLDER)))


{"accelerate": of_accelerate, "lightning": of_lightning, "transformers": of_transformers}[KIND]()
