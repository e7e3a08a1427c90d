#!/usr/bin/env python3
"""Stands in for a trainer that minds signals: fake_trainer.py SIGNAL=STATUS ...

Notes its pid in $RANK.txt once it does, then notes each signal that it is told to mind, in a file
like TERM0 for rank 0, and exits with that signal's status: `TERM=keep` goes on instead. A shell will
not do, as it loses a signal that comes while it forks or just before it waits.
"""

import os
import signal
import sys


def main():
    minded = {}
    for word in sys.argv[1:]:
        name, status = word.split("=")
        minded[signal.Signals[f"SIG{name}"]] = status
    signal.pthread_sigmask(signal.SIG_BLOCK, minded)
    rank = os.environ["RANK"]
    note(f"{rank}.txt")
    while True:
        number = signal.Signals(signal.sigwait(minded))
        note(f"{number.name[3:]}{rank}")
        if minded[number] != "keep":
            sys.exit(int(minded[number]))


def note(name):
    with open(name, "w", encoding="utf-8") as file:
        print(os.getpid(), file=file)


if __name__ == "__main__":
    main()
