"""Numbers through a shuffle buffer of a million, 8,192 a batch."""

from .peer import Batch, Peer

ROWS = 10_000_000


def tfdata(_folder, _cell):
    from .tensorflow_peer import VERSION, tf, tuned

    tf.random.set_seed(42)
    numbers = tf.data.Dataset.range(ROWS)
    shuffled = numbers.shuffle(1_000_000, seed=7, reshuffle_each_iteration=False)
    dataset = tuned(shuffled.batch(8192))
    return Peer(VERSION, lambda: map(Batch, dataset.as_numpy_iterator()))


PEERS = {"tfdata": tfdata}
