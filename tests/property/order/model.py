"""tf.data, element by element, as the reference says it: slow, and meant to be read.

An element is {column: value}, a value a number or (after batch) a list. A dataset object makes
iterators with open(); what it keeps from one to the next (seeds, a cache) is its own. An iterator
is a Python iterator; making one may have effects, so open() does what tf.data does at once, and the
generator that it returns the rest on first need.
"""

import glob

from .philox import Philox, Seeds, stateless_double, stateless_words


class BadElement(Exception):
    """The element that is asked for cannot be made, and so neither can its step."""


class Unknown(Exception):
    """The model does not know what happens here."""


class Dataset:
    def __init__(self, arguments, inputs, build):
        self.arguments = arguments
        self.inputs = inputs
        self.input = inputs[0] if inputs else None
        self.build = build  # builds a body's dataset for an outer element
        self.ready()

    def ready(self):
        pass

    def cardinality(self):
        """How many elements tf.data says there are: None where it does not know, or infinity."""
        return None

    def get(self, name, default=None):
        value = self.arguments.get(name, default)
        return default if value is None else value


class Range(Dataset):
    def cardinality(self):
        return len(range(self.get("start", 0), self.arguments["stop"], self.get("step", 1)))

    def open(self):
        numbers = range(self.get("start", 0), self.arguments["stop"], self.get("step", 1))
        return ({self.get("name", "value"): number} for number in numbers)


class FromTensorSlices(Dataset):
    def cardinality(self):
        return min(map(len, self.arguments.values()))

    def open(self):
        tensors = self.arguments
        for row in zip(*tensors.values()):
            yield dict(zip(tensors, row))


class ListFiles(Dataset):
    """Names in order, dealt to workers where that is by file. Shuffled by a stage of its own."""

    def open(self):
        names = sorted(glob.glob(self.arguments["file_pattern"]))
        workers, worker = self.arguments["dealt_to"]
        return iter([{"value": name} for name in names[worker::workers]])


class TextLine(Dataset):
    def open(self):
        with open(self.arguments["filenames"], encoding="ascii") as file:
            return iter([{"value": line} for line in file.read().split()])


class StringToNumber(Dataset):
    def cardinality(self):
        return self.input.cardinality()

    def open(self):
        return self.run(self.input.open())

    def run(self, elements):
        for element in elements:
            try:
                yield {**element, "value": each(element["value"], int)}
            except ValueError:
                raise Unknown("a text that is no number") from None


class Map(Dataset):
    """Pure: COLUMN * times + plus, where plus may be a column of the outer element, or "total": the
    sum over the whole element, so that rows of a batch depend on each other."""

    def cardinality(self):
        return self.input.cardinality()

    def open(self):
        return self.run(self.input.open())

    def run(self, elements):
        for element in elements:
            new = dict(element)
            for column, (times, plus) in self.arguments.items():
                added = total(element[column]) if plus == "total" else plus
                new[column] = each(element[column], lambda x: x * times + added)
            yield new


class Rename(Dataset):
    def cardinality(self):
        return self.input.cardinality()

    def open(self):
        return self.run(self.input.open())

    def run(self, elements):
        for element in elements:
            yield {self.arguments.get(column, column): value for column, value in element.items()}


class Draw(Dataset):
    """A random layer, of Keras: COLUMN * 2, or one more where an image of both is flipped. The layer is
    one object, whose counter goes on over all iterators, and over the datasets of a function."""

    def cardinality(self):
        return self.input.cardinality()

    def open(self):
        return self.run(self.input.open())

    def run(self, elements):
        column, calls = self.arguments["column"], self.arguments["calls"]
        for element in elements:
            drawn = stateless_words(self.arguments["seed"], calls[0]).next() & 0x7FFFFF
            calls[0] += 1
            yield {**element, column: element[column] * 2 + (drawn <= 1 << 22)}


class Filter(Dataset):
    def open(self):
        return self.run(self.input.open())

    def run(self, elements):
        column, by, rest = self.arguments["keep"]
        return (element for element in elements if element[column] % by != rest)


class Shuffle(Dataset):
    def cardinality(self):
        return self.input.cardinality()

    def ready(self):
        self.seeds = self.arguments["seeds"]
        self.size = self.arguments["buffer_size"]
        self.parent = Philox(*self.seeds)

    def next_random(self):
        """Of the next iterator, or the next epoch of a fused one."""
        if not self.get("reshuffle_each_iteration", True):
            return Philox(*self.seeds)
        return Philox(self.parent.next(), self.parent.next())

    def open(self, epochs=1):
        return self.run(self.next_random(), epochs)

    def run(self, random, epochs):
        source = None
        begun = 0
        windows = []  # one an epoch, oldest first
        any_element = False
        while True:
            while sum(map(len, windows)) < self.size:
                if source is None and epochs >= 0 and begun == epochs:
                    break
                if len(windows) > 3 and sum(map(len, windows)) > 0:
                    break
                if source is None:
                    source = self.input.open()
                    windows.append([])
                    begun += 1
                try:
                    windows[-1].append(next(source))
                    any_element = True
                except StopIteration:
                    source = None
                    if epochs < 0 and not any_element:
                        break
            if not any(windows):
                return
            while not windows[0]:
                windows.pop(0)
                random = self.next_random()
            window = windows[0]
            drawn = random.next() % len(window)
            element = window[drawn]
            window[drawn] = window[0]
            window.pop(0)
            yield element


class Repeat(Dataset):
    """An iterator of the input more than it needs at its end, unless the count is 1."""

    def cardinality(self):
        count, times = self.input.cardinality(), self.get("count", -1)
        if times == 0 or count == 0:
            return 0
        return float("inf") if times < 0 else count and count * times

    def open(self):
        count = self.get("count", -1)
        if count == 0:
            return iter(())
        if isinstance(self.input, Shuffle) and not self.arguments["in_function"]:
            return self.input.open(count)
        first = self.input.open() if count > 0 else None
        return self.run(count, first)

    def run(self, count, source):
        epoch = 0
        if source is None:
            source = self.input.open()
        while True:
            empty = True
            for element in source:
                empty = False
                yield element
            epoch += 1
            if count == 1 or (count < 0 and empty):
                return
            source = self.input.open()
            if epoch == count:
                return


class Take(Dataset):
    def cardinality(self):
        count, limit = self.input.cardinality(), self.arguments["count"]
        return count if count is None or limit < 0 else min(count, limit)

    def open(self):
        count = self.arguments["count"]
        return self.run(count, self.input.open()) if count != 0 else iter(())

    def run(self, count, source):
        while count != 0:
            try:
                element = next(source)
            except StopIteration:
                return
            count -= 1
            yield element


class Skip(Dataset):
    def cardinality(self):
        count, skip = self.input.cardinality(), self.arguments["count"]
        return count and (0 if skip < 0 else max(0, count - skip))

    def open(self):
        count = self.arguments["count"]
        return self.run(count, self.input.open()) if count >= 0 else iter(())

    def run(self, count, source):
        for _ in range(count):
            if next(source, None) is None:
                return
        yield from source


class Shard(Dataset):
    def cardinality(self):
        count, shards = self.input.cardinality(), self.arguments["num_shards"]
        if count is None or count == float("inf"):
            return count
        return count // shards + (self.arguments["index"] < count % shards)

    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        for position, element in enumerate(source):
            if position % self.arguments["num_shards"] == self.arguments["index"]:
                yield element


class Enumerate(Dataset):
    def cardinality(self):
        return self.input.cardinality()

    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        for index, element in enumerate(source, self.get("start", 0)):
            yield {"index": index, **element}


class Batch(Dataset):
    def cardinality(self):
        count, size = self.input.cardinality(), self.arguments["batch_size"]
        if count is None or count == float("inf"):
            return count
        return count // size if self.get("drop_remainder", False) else -(-count // size)

    join = staticmethod(lambda values: stack(values))

    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        rows = []
        for element in source:
            rows.append(element)
            if len(rows) == self.arguments["batch_size"]:
                yield joined(rows, self.join)
                rows = []
        if rows and not self.get("drop_remainder", False):
            yield joined(rows, self.join)


class PaddedBatch(Batch):
    join = staticmethod(lambda values: pad(values))


class Unbatch(Dataset):
    def cardinality(self):
        if self.input.cardinality() is not None:
            raise Unknown("how many rows batches are known to have")
        return None

    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        for element in source:
            yield from rows_of(element)


class Rebatch(Dataset):
    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        sizes = self.arguments["batch_size"]
        sizes = sizes if isinstance(sizes, list) else [sizes]
        turn, rows = 0, []
        for element in source:
            for row in rows_of(element):
                rows.append(row)
                if len(rows) == sizes[turn % len(sizes)]:
                    yield joined(rows, stack)
                    turn, rows = turn + 1, []
        if rows and not self.get("drop_remainder", False):
            yield joined(rows, stack)


class Window(Dataset):
    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        size, stride = self.arguments["size"], self.get("stride", 1)
        shift = self.get("shift", size)
        held, first, begin, ended = [], 0, 0, False  # held[0] is element `first`
        while True:
            while not ended and first + len(held) < begin + (size - 1) * stride + 1:
                element = next(source, None)
                if element is None:
                    ended = True
                else:
                    held.append(element)
            held, first = held[begin - first :], max(begin, first)
            window = held[: (size - 1) * stride + 1 : stride]
            if not window or (self.get("drop_remainder", False) and len(window) < size):
                return
            begin += shift
            while not ended and first + len(held) < begin:
                if next(source, None) is None:
                    ended = True
                else:
                    held.append(None)
            yield joined(window, stack)


class BucketBySequenceLength(Dataset):
    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        boundaries, sizes = (
            self.arguments["bucket_boundaries"],
            self.arguments["bucket_batch_sizes"],
        )
        buckets = [[] for _ in sizes]
        for element in source:
            length = len(element[self.arguments["column"]])
            bucket = sum(length >= boundary for boundary in boundaries)
            buckets[bucket].append(element)
            if len(buckets[bucket]) == sizes[bucket]:
                yield joined(buckets[bucket], pad)
                buckets[bucket] = []
        for rows in buckets:
            if rows and not self.get("drop_remainder", False):
                yield joined(rows, pad)


class GroupByWindow(Dataset):
    def open(self):
        return self.run(self.input.open())

    def run(self, source):
        size = self.arguments["window_size"]
        column, by = self.arguments["key"]
        windows = {}
        for element in source:
            key = element[column] % by
            window = windows.setdefault(key, [])
            window.append(element)
            if len(window) == size:
                yield joined(windows.pop(key), stack)
        for key in sorted(windows):
            if not self.get("drop_remainder", False):
                yield joined(windows[key], stack)


class Prefetch(Dataset):
    def cardinality(self):
        return self.input.cardinality()

    def open(self):
        return self.input.open()


class Cache(Dataset):
    """Whole at its end, or at its last element where it is known how many there are."""

    def cardinality(self):
        return self.input.cardinality()

    def ready(self):
        self.kept = None

    def open(self):
        return iter(self.kept) if self.kept is not None else self.run(self.input.open())

    def run(self, source):
        seen = []
        wanted = self.input.cardinality()
        for element in source:
            seen.append(element)
            if len(seen) == wanted and self.kept is None:
                self.kept = seen
            yield element
        if self.kept is None:
            self.kept = seen


class Zip(Dataset):
    def cardinality(self):
        counts = [dataset.cardinality() for dataset in self.inputs]
        return None if None in counts else min(counts)

    def open(self):
        return self.run([dataset.open() for dataset in self.inputs])

    def run(self, sources):
        while True:
            parts = [next(source, None) for source in sources]
            if None in parts:
                return
            yield {column: value for part in parts for column, value in part.items()}


class Concatenate(Dataset):
    def cardinality(self):
        counts = [dataset.cardinality() for dataset in self.inputs]
        if float("inf") in counts:
            return float("inf")
        return None if None in counts else sum(counts)

    def open(self):
        return self.run(self.inputs[0].open())

    def run(self, source):
        yield from source
        for dataset in self.inputs[1:]:
            yield from dataset.open()


class ChooseFromDatasets(Dataset):
    def open(self):
        choices = self.inputs[-1].open()
        return self.run(choices, [dataset.open() for dataset in self.inputs[:-1]])

    def run(self, choices, sources):
        for element in choices:
            (choice,) = element.values()
            if sources[choice] is None:
                continue
            chosen = next(sources[choice], None)
            if chosen is not None:
                yield chosen
                continue
            sources[choice] = None
            if self.get("stop_on_empty_dataset", True) or not any(sources):
                return


class SampleFromDatasets(Dataset):
    def open(self):
        return self.run([dataset.open() for dataset in self.inputs], Philox(*self.arguments["seeds"]))

    def run(self, sources, words):
        if "weights" in self.arguments:
            raise Unknown("weights need TensorFlow's logarithms")
        while any(sources):
            drawn = int(stateless_double(words.next(), words.next()) * len(sources))
            if sources[drawn] is None:
                continue
            element = next(sources[drawn], None)
            if element is not None:
                yield element
                continue
            sources[drawn] = None
            if self.get("stop_on_empty_dataset", False):
                return


class Permute(Dataset):
    def open(self):
        raise Unknown("the permutation is the server's own")


class Interleave(Dataset):
    def open(self):
        return self.run(self.input.open(), self.arguments["cycle_length"])

    def run(self, outer, cycle_length):
        block_length = self.get("block_length", 1)
        slots = [None] * cycle_length
        at = 0
        while outer is not None or any(slots):
            if slots[at] is None and outer is not None:
                element = next(outer, None)
                if element is None:
                    outer = None
                    continue
                slots[at] = self.build(element).open()
            if slots[at] is not None:
                for _ in range(block_length):
                    inner = next(slots[at], None)
                    if inner is None:
                        slots[at] = None
                        break
                    yield inner
            at = (at + 1) % cycle_length


class FlatMap(Interleave):
    def open(self):
        return self.run_flat(self.input.open())

    def run_flat(self, outer):
        for element in outer:
            yield from self.build(element).open()


STAGES = {
    "range": Range,
    "from_tensor_slices": FromTensorSlices,
    "list_files": ListFiles,
    "text_line": TextLine,
    "string_to_number": StringToNumber,
    "map": Map,
    "rename": Rename,
    "draw": Draw,
    "filter": Filter,
    "shuffle": Shuffle,
    "repeat": Repeat,
    "take": Take,
    "skip": Skip,
    "shard": Shard,
    "enumerate": Enumerate,
    "batch": Batch,
    "padded_batch": PaddedBatch,
    "unbatch": Unbatch,
    "rebatch": Rebatch,
    "window": Window,
    "bucket_by_sequence_length": BucketBySequenceLength,
    "group_by_window": GroupByWindow,
    "prefetch": Prefetch,
    "cache": Cache,
    "zip": Zip,
    "concatenate": Concatenate,
    "choose_from_datasets": ChooseFromDatasets,
    "sample_from_datasets": SampleFromDatasets,
    "permute": Permute,
    "interleave": Interleave,
    "flat_map": FlatMap,
}

RANDOM = {"shuffle", "sample_from_datasets"}


def draws_seeds(name, arguments):
    return name in RANDOM or (name == "list_files" and arguments.get("shuffle", True))


def build(stages, file_seed, dealt_to=(1, 0), named=None):
    """The dataset object that a list of stages makes; dealt_to: workers and this one, where files
    are dealt to them; named: the stages of named datasets."""
    return _Builder(Seeds(file_seed), dealt_to, named or {}).dataset(stages, None, {})


class _Body(list):
    """One call of a function: how many seeds it has counted, and its named dataset objects."""

    def __init__(self):
        super().__init__([0])
        self.objects = {}


class _Builder:
    def __init__(self, seeds, dealt_to, named):
        self.seeds = seeds
        self.dealt_to = dealt_to
        self.named = named
        self.objects = {}  # named ones, outside functions
        self.calls = {}  # of each layer
        self.depth = 0  # of datasets in datasets
        self.seen = set()

    def dataset(self, stages, place, outer):
        if isinstance(stages, str):
            return self._object(stages, place, outer)
        dataset = None
        self.depth += 1
        for stage in stages:
            dataset = self._stage(stage, dataset, place, outer)
            if "cache" in stage and self.depth > 1:
                self._note("cached")
        self.depth -= 1
        return dataset

    def _object(self, name, place, outer):
        objects = self.objects if place is None else place.objects
        if name not in objects:
            objects[name] = self.dataset(self.named[name], place, outer)
        else:
            self._note("mentioned again")
        return objects[name]

    def _note(self, seen):
        self.seen.add(seen)
        if len(self.seen) > 1:
            raise Unknown("which mentions a cache keeps apart")

    def _stage(self, stage, before, place, outer):
        ((name, written),) = stage.items()
        arguments = _fill_in(written, outer)
        inputs = [] if before is None else [before]
        for part in arguments.get("datasets", []):
            inputs.append(self.dataset(part, place, outer))
        if "choice_dataset" in arguments:
            inputs.append(self.dataset(arguments["choice_dataset"], place, outer))
        if draws_seeds(name, arguments):
            arguments["seeds"] = self.seeds.pair(arguments.get("seed"), place)
        if name == "draw":
            arguments["calls"] = self.calls.setdefault(arguments.get("called", id(stage)), [0])
        arguments["in_function"] = place is not None
        if name == "list_files":
            arguments["dealt_to"] = self.dealt_to
        if name in ("from_tensor_slices", "map", "rename"):
            del arguments["in_function"]
        body = None
        if name in ("interleave", "flat_map"):
            # The function is built once; only its variables differ from call to call.
            written_body = written["dataset"]

            def body(element):
                return self.dataset(written_body, _Body(), {**outer, **element})

        dataset = STAGES[name](arguments, inputs, body)
        if name == "list_files" and arguments.get("shuffle", True):
            return Shuffle({**arguments, "buffer_size": 1000}, [dataset], None)
        return dataset


def _fill_in(arguments, outer):
    """$name stands for the outer element's column."""

    def value(written):
        if isinstance(written, list):
            return [value(item) for item in written]
        if isinstance(written, str) and written.startswith("$"):
            return outer[written[1:]]
        return written

    return {key: value(written) for key, written in arguments.items()}


# --- values -----------------------------------------------------------------------------------


def each(value, function):
    return [each(x, function) for x in value] if isinstance(value, list) else function(value)


def total(value):
    return sum(map(total, value)) if isinstance(value, list) else value


def shape(value):
    if not isinstance(value, list):
        return ()
    shapes = {shape(x) for x in value}
    if len(shapes) > 1:
        raise BadElement("rows of unequal shape")
    return (len(value), *(shapes.pop() if shapes else ()))


def stack(values):
    shape(values)
    return list(values)


def pad(values):
    if not isinstance(values[0], list):
        return list(values)
    sizes = [max(size) for size in zip(*map(shape, values))]
    return [_padded(value, sizes) for value in values]


def _padded(value, sizes):
    if not sizes:
        return value
    rows = [_padded(x, sizes[1:]) for x in value]
    return rows + [_padded([], sizes[1:]) if len(sizes) > 1 else 0] * (sizes[0] - len(rows))


def joined(rows, join):
    try:
        return {column: join([row[column] for row in rows]) for column in rows[0]}
    except BadElement:
        raise Unknown("an element in the middle that cannot be made") from None


def rows_of(element):
    counts = {len(value) for value in element.values()}
    if len(counts) != 1:
        raise Unknown("columns with unlike numbers of rows")
    for i in range(counts.pop()):
        yield {column: value[i] for column, value in element.items()}
