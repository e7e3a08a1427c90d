"""Data-parallel training whose checkpoint holds the model and the place.

    tundish-launch FILE --replicas 2 -- python torch_ddp.py CHECKPOINT

or, with torchrun between the two, one for each replica:

    tundish-launch FILE --replicas 2 -- sh -c 'torchrun --nnodes 2 --node-rank $RANK \\
        --nproc-per-node 1 --master-addr $MASTER_ADDR --master-port $MASTER_PORT torch_ddp.py CHECKPOINT'

FILE has the columns x (float32, two of them), label and id. A job that was killed goes on at its last
checkpoint, and trains on the rows that it would have had without that.
"""

import os
import sys
from pathlib import Path

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel

from tundish.torch import DataLoader

CHECKPOINT = Path(sys.argv[1])
STEPS_BETWEEN = 5


def main() -> None:
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    torch.manual_seed(1)
    model = DistributedDataParallel(torch.nn.Linear(2, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001, momentum=0.9)
    train = DataLoader(columns=("x", "label", "id"))
    steps = 0
    if CHECKPOINT.exists():
        saved = torch.load(CHECKPOINT, weights_only=True)
        model.load_state_dict(saved["model"])
        optimizer.load_state_dict(saved["optimizer"])
        train.load_state_dict(saved["data"])
        steps = saved["steps"]
    while not train.reader.ended:
        for x, label, rows in train:
            loss = torch.nn.functional.mse_loss(model(x)[:, 0], label.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            steps += 1
            line = f"step {steps} rank {rank} rows {rows.tolist()} loss {loss.item():.4f}\n"
            print(line, end="", flush=True)  # written at once: replicas share the output
            if rank == 0 and steps % STEPS_BETWEEN == 0:
                save({"model": model.state_dict(), "optimizer": optimizer.state_dict(),
                      "data": train.state_dict(), "steps": steps})  # fmt: skip
    dist.destroy_process_group()


def save(state: dict) -> None:
    """One replica's place serves all, since they have taken equal steps. Never half a file."""
    torch.save(state, CHECKPOINT.with_suffix(".new"))
    CHECKPOINT.with_suffix(".new").rename(CHECKPOINT)


if __name__ == "__main__":
    main()
    # DistributedDataParallel keeps the threads of gloo alive after destroy_process_group(). One that
    # still drops its last tensor while the interpreter ends aborts the process ("terminate called
    # without an active exception"). Everything is written, so end without that.
    sys.stdout.flush()
    os._exit(0)
