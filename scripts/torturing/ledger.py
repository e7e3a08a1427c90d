"""Every batch that came of one sequence, by its epoch and step."""


class Failure(Exception):
    pass


class Ledger:
    """Batches that must each come once, and again only where that was allowed: a batch that was
    printed, but not given back or not yet part of a place, when its trainer died."""

    def __init__(self, name):
        self.name = name
        self.batches = {}  # (epoch, step): values
        self.may_repeat = set()
        self.rows = self.repeats = self.allowed = 0

    def take(self, key, values):
        self.rows += len(values)
        if key not in self.batches:
            self.batches[key] = values
            return
        if self.batches[key] != values:
            raise Failure(f"{self.name}: {_place(key)} came with other rows")
        if key not in self.may_repeat:
            raise Failure(f"{self.name}: {_place(key)} came again, though it was done")
        self.may_repeat.remove(key)
        self.repeats += 1

    def allow(self, keys):
        """These may come once more."""
        new = set(keys) & self.batches.keys() - self.may_repeat
        self.may_repeat |= new
        self.allowed += len(new)

    def allow_from(self, key):
        self.allow(other for other in self.batches if other >= key)

    def forget_after(self, last):
        """Later batches are read again, with other rows."""
        self.batches = {key: values for key, values in self.batches.items() if key <= last}
        self.may_repeat &= self.batches.keys()

    def begin_anew(self):
        self.batches.clear()
        self.may_repeat.clear()

    def require(self, keys):
        keys = set(keys)
        missing = sorted(keys - self.batches.keys())
        if missing:
            raise Failure(f"{self.name}: {len(missing)} batches lost, the first {_place(missing[0])}")
        more = sorted(self.batches.keys() - keys)
        if more:
            raise Failure(f"{self.name}: {_place(more[0])} is none of the stream's")


def _place(key):
    return f"epoch {key[0]}, step {key[1]}"


def require_rows(name, batches, epochs, rows):
    """Each epoch of these {(epoch, step): values} has every row once."""
    for epoch in range(epochs):
        seen = sorted(v for (e, _), values in batches for v in values if e == epoch)
        if seen != list(range(rows)):
            raise Failure(f"{name}, epoch {epoch}: {len(seen)} rows, {len(set(seen))} of {rows}")
