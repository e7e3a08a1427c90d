"""The place of a tundish.torch.DataLoader in the checkpoints of transformers.Trainer.

    from tundish.transformers import SavePlace

    class Trainer(transformers.Trainer):
        def get_train_dataloader(self):
            return tundish.torch.DataLoader("train")  # or one of a data set

    Trainer(..., callbacks=[SavePlace()]).train(resume_from_checkpoint=True)
"""

from __future__ import annotations

from typing import Any

from transformers import TrainerCallback
from transformers.trainer_callback import ExportableState

from .torch import DataLoader
from .torch_options import Loader

__all__ = ["SavePlace"]


class SavePlace(TrainerCallback, ExportableState):
    """Saves the loader's place in trainer_state.json, and goes on there. Trainer itself reads the batches of
    the epoch again that it has trained on, of the first epoch whichever it was in.

    The processes of a job are at the same step, so all go on at the place that the first one saved.
    """

    def __init__(self) -> None:
        self._loader: DataLoader | Loader | None = None

    def on_train_begin(
        self, args: Any, state: Any, control: Any, train_dataloader: Any = None, **_: Any
    ) -> None:
        if not isinstance(train_dataloader, DataLoader | Loader):
            raise TypeError(
                "get_train_dataloader() returns no tundish.torch.DataLoader, whose place this would save: "
                "leave SavePlace out"
            )
        self._loader = train_dataloader
        saved = state.stateful_callbacks.get(type(self).__name__, {})
        place = saved.get("attributes", {}).get("place")
        if state.global_step > 0 and place is not None:
            steps = max(-(-(self._loader.steps() or 0) // args.gradient_accumulation_steps), 1)
            if self._loader.steps() is None:  # Trainer counts as in one epoch
                steps = state.max_steps
            trained = state.global_step % steps * args.gradient_accumulation_steps
            self._loader.resume(place, skipped=trained)

    def state(self) -> dict[str, Any]:
        place = None if self._loader is None else self._loader.place
        return {"args": {}, "attributes": {"place": place}}
