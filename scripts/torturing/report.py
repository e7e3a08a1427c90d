"""The faults that all jobs went through, and the outcome."""

import collections

RECOVERIES = {
    "told": "another replica told of a death",
    "successor": "a successor's first batch, the start of its process included",
    "server": "first batch after a server's return",
}


class Report:
    def __init__(self, seed):
        self.seed, self.jobs = seed, 0
        self.rows = self.batches = self.repeats = self.allowed = 0
        self.kinds, self.sources = collections.Counter(), collections.Counter()
        self.troubles, self.killed = collections.Counter(), collections.Counter()
        self.took = collections.defaultdict(list)

    def add(self, job):
        self.jobs += 1
        self.kinds[type(job).__name__] += 1
        self.sources[job.source] += 1
        self.rows += job.rows
        for ledger in job.ledgers:
            self.rows += 0 if job.has_shards else ledger.rows
            self.batches += len(ledger.batches)
            self.repeats += ledger.repeats
            self.allowed += ledger.allowed
        self.troubles += job.troubles
        self.killed += job.killed
        for kind, seconds in job.took.items():
            self.took[kind] += seconds

    def kills(self):
        return self.killed.total()

    def print(self):
        print(f"{self.jobs} jobs from seed {self.seed}: {_listed(self.kinds)}")
        print(f"rows out of: {_listed(self.sources)}")
        print(f"{self.kills()} killed: {_listed(self.killed)}; troubles: {_listed(self.troubles)}")
        print(f"{self.rows} rows seen; each of {self.batches} batches, or shards, came; {self.repeats} came "
              f"again, of {self.allowed} that could; none was lost or came otherwise")
        for kind, name in RECOVERIES.items():
            values = sorted(self.took[kind])
            if values:
                p99 = values[(len(values) * 99 + 99) // 100 - 1]
                print(f"{name}: median {values[len(values) // 2]:.3f} s, p99 {p99:.3f} s, "
                      f"worst {values[-1]:.3f} s, of {len(values)}")  # fmt: skip


def _listed(counter):
    return ", ".join(f"{what} {count}" for what, count in sorted(counter.items()))
