"""The place of a tundish.torch.DataLoader in Lightning's checkpoints.

    from tundish.lightning import SavePlace

    loader = tundish.torch.DataLoader("train", columns=("x", "label"))
    trainer = Trainer(callbacks=[SavePlace(loader)])
    trainer.fit(model, loader, ckpt_path="last")

Lightning saves loaders by itself, but reads one batch ahead where it knows no length, and at the end of
an epoch goes on with nothing. This is exact in both. A loader of a data set needs it only where its sampler
has no length.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

from .torch import DataLoader

# Lightning comes under two names, with classes of their own.
_NAME = "lightning.pytorch" if "lightning.pytorch" in sys.modules else "pytorch_lightning"
Callback: Any = import_module(_NAME).Callback

__all__ = ["SavePlace"]


class SavePlace(Callback):  # type: ignore[misc]
    """Saves where the loader stands after the last batch that was trained on, and goes on there.

    loader: the one that fit() gets. The processes of a job are at the same step, so all go on at the
    place that the first one saved.
    """

    def __init__(self, loader: DataLoader) -> None:
        self.loader = loader
        self._place: str | None = None
        loader.note_places()

    def on_train_batch_start(self, *_: Any) -> None:
        self._place = self.loader.take_noted()

    def on_save_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        loop = trainer.fit_loop
        if self._place is None:
            return
        is_over = bool(loop.epoch_loop.batch_progress.is_last_batch)
        checkpoint[type(self).__qualname__] = {"place": self._place, "is_over": is_over}
        # Lightning's own, which would be taken afterwards.
        checkpoint["loops"]["fit_loop"]["state_dict"]["combined_loader"] = []

    def on_load_checkpoint(self, trainer: Any, module: Any, checkpoint: dict[str, Any]) -> None:
        saved = checkpoint.get(type(self).__qualname__)
        if saved is not None:
            self._place = saved["place"]
            self.loader.resume(saved["place"], is_over=saved["is_over"])
