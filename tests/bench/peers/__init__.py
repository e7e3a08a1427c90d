"""The peers: other ways to feed the same rows to a trainer, each run in a process of its own.

A cell is a module with PEERS, which maps a peer's name to a function of the data's folder and the
cell's name; that returns a Peer. `python -m peers CELL PEER --data DIR` reads pass after pass and
prints what consume.c prints.
"""
