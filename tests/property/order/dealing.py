"""tf.distribute: how what a dataset yields is dealt to replicas."""

from itertools import cycle, islice

from .model import joined, rows_of, stack


def filled(batches, slices):
    """Each batch with rows of the first one, or of its own where columns differ, until replicas get
    equally many; and a column that says which rows are the dataset's."""
    first = None
    for batch in batches:
        (rows,) = {len(column) for column in batch.values()}
        first = first if first or not rows else batch
        missing = -rows % slices
        more = {name: cycle(column) for name, column in (first or batch).items()}
        batch = {
            name: [*column, *islice(more[name], missing)] for name, column in batch.items()
        }
        yield {**batch, "mask": [True] * rows + [False] * missing}


def split(batches, slices):
    """Each batch of n rows: ceil(n / N) for each replica until they run out."""
    for batch in batches:
        parts = {}
        for column, rows in batch.items():
            each = -(-len(rows) // slices)
            parts[column] = [rows[i * each : (i + 1) * each] for i in range(slices)]
        for i in range(slices):
            yield {column: part[i] for column, part in parts.items()}


def carry(batches, size, slices, rotation=0):
    """Rows carry over from batch to batch; slices as even as can be, and where each worker has
    batches of its own, so that those of all workers add up to the same at each step."""
    sizes = [size // slices + ((i + rotation) % slices < size % slices) for i in range(slices)]
    turn, rows, ended = 0, [], False
    while not ended:
        wanted = sizes[turn % slices]
        while len(rows) < wanted and not ended:
            batch = next(batches, None)
            if batch is None:
                ended = True
            else:
                rows.extend(rows_of(batch))
        if wanted > 0 and not rows:
            return
        taken, rows = rows[:wanted], rows[wanted:]
        yield joined(taken, stack) if taken else {}  # its columns are not known here
        turn += 1


def steps(datasets, case, limit):
    """The steps of one epoch: [worker][replica] -> element, or None where there is none. One
    dataset for all workers, or one for each."""
    workers, replicas = case.workers, case.replicas
    count = workers * replicas
    dealt = []
    for worker, dataset in enumerate(datasets):
        elements = dataset.open()
        if case.even:
            elements = split(filled(elements, count), count)
        elif count > 1 and not case.from_function:
            if case.rebatch == "carry":
                elements = carry(elements, case.global_batch, count, worker * replicas)
            else:
                elements = split(elements, count)
        dealt.append(elements)
    if case.from_function:
        rounds = _from_function(dealt[0], replicas)
    elif len(dealt) > 1:
        rounds = _side_by_side(dealt, replicas)
    else:
        rounds = _dealt(dealt[0], workers, replicas)
    return islice(rounds, limit)


def _side_by_side(dealt, replicas):
    """Each worker's own slices in turn, until none has any."""
    while True:
        step = [list(islice(elements, replicas)) for elements in dealt]
        if not any(step):
            return
        yield [own + [None] * (replicas - len(own)) for own in step]


def _dealt(elements, workers, replicas):
    """Slice s is worker s mod W's, and there replica (s / W) mod R's."""
    while True:
        step = list(islice(elements, workers * replicas))
        if not step:
            return
        step += [None] * (workers * replicas - len(step))
        yield [[step[r * workers + w] for r in range(replicas)] for w in range(workers)]


def _from_function(elements, replicas):
    while True:
        step = list(islice(elements, replicas))
        if not step:
            return
        scalar = not all(isinstance(value, list) for value in step[0].values())
        if len(step) < replicas and scalar:
            return
        yield [step + [None] * (replicas - len(step))]
