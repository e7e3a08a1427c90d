"""A trainer for torchrun: journey.py FOLDER STOP

It goes on at the place in FOLDER if there is one, writes the rows of each batch to a file of its rank, with its
step, and keeps the place after the step STOP; two steps later its last rank is killed. STOP 0: it ends.
"""

import json
import os
import signal
import sys
from pathlib import Path

import map_style
import torch

from tundish.torch import DataLoader

BATCH, ROWS = 3, 96


def main():
    folder, stop = Path(sys.argv[1]), int(sys.argv[2])
    torch.distributed.init_process_group("gloo")
    rank, world = torch.distributed.get_rank(), torch.distributed.get_world_size()
    place = folder / "place"
    with DataLoader(map_style.Made("drawn", ROWS), BATCH, shuffle=True, seed=5, num_workers=2) as loader:
        if place.exists():
            loader.load_state_dict(torch.load(place))
        with open(folder / f"rows-{rank}", "w", encoding="utf-8") as file:
            for step, batch in enumerate(loader, 1):
                file.write(json.dumps([step, list(zip(*(column.tolist() for column in batch)))]) + "\n")
                file.flush()
                torch.distributed.all_reduce(torch.zeros(1))
                if step == stop and rank == 0:
                    torch.save(loader.state_dict(), folder / "new")
                    os.rename(folder / "new", place)
                if step == stop + 2 and stop and rank == world - 1:
                    os.kill(os.getpid(), signal.SIGKILL)
    torch.distributed.destroy_process_group()  # gloo's threads may abort a program that ends without it


if __name__ == "__main__":
    main()
