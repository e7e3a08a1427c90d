#!/usr/bin/env python3
"""Stands in for srun: starts two ranks, which both get what comes over standard input. As srun does, it
kills them when it is asked to end, and sends them the user's signals."""

import os
import signal
import subprocess
import sys
import threading


def main():
    if sys.argv[1] == "--mpi=list":
        print("pmix")
        return 0
    with open("srun.args", "w", encoding="utf-8") as notes:
        print(*sys.argv[1:], file=notes)
    first = next(i for i, word in enumerate(sys.argv) if i > 0 and not word.startswith("-"))
    ranks = [start(sys.argv[first:], rank) for rank in range(2)]
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda *_: [rank.kill() for rank in ranks])
    for number in (signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: [rank.send_signal(number) for rank in ranks])
    threading.Thread(target=copy_input, args=(ranks,), daemon=True).start()
    return max(abs(rank.wait()) for rank in ranks)


def start(command, rank):
    environment = dict(os.environ, PMIX_RANK=str(rank), PMI_SIZE="2")
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE)


def copy_input(ranks):
    while piece := os.read(0, 1 << 12):
        for rank in ranks:
            os.write(rank.stdin.fileno(), piece)


if __name__ == "__main__":
    sys.exit(main())
