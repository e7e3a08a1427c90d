"""Read a data set of rows_of_python: epochs on request, each with its number of rows on a line.

usage: read_rows_of_python.py LOADER KIND PROCESSES, where LOADER is tundish, torch or bare (which has no processes).
"""

import json
import os
import sys
import time

import rows_of_python


def make(loader, kind, processes):
    data, collate = rows_of_python.DATA[kind](), rows_of_python.collation(kind)
    options = {"batch_size": rows_of_python.BATCHES[kind], "shuffle": True, "collate_fn": collate}
    if loader == "tundish":
        from tundish.torch import DataLoader

        return DataLoader(data, num_workers=int(processes), **options)
    import torch
    from torch.utils.data import DataLoader
    from torch.utils.data.distributed import DistributedSampler

    torch.set_num_threads(1)
    if loader == "torch":
        options.update(num_workers=int(processes), persistent_workers=True)
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1:
        options.update(shuffle=False, sampler=DistributedSampler(data, world, int(os.environ["RANK"])))
    return DataLoader(data, **options)


def first(batch):
    return batch[0] if isinstance(batch, list | tuple) else batch


def main():
    begin = time.monotonic()
    loader = make(*sys.argv[1:])
    print("{}", flush=True)
    for _ in sys.stdin:
        rows, first_s = 0, None
        for batch in loader:
            first_s = first_s or time.monotonic() - begin
            rows += len(first(batch))
        print(json.dumps({"rows": rows, "first_s": round(first_s, 3)}), flush=True)


main()
