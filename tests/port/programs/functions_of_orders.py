"""Datasets that are used twice, and draw an order for each use."""
import tensorflow as tf

D = tf.data.Dataset


def numbers(count=10, seed=5):
    return D.range(count).shuffle(4, seed=seed)


def zipped():
    rows = numbers()
    return D.zip((rows, rows)).repeat(2).batch(3)


def mapped():
    rows = numbers().map(lambda x: {"x": x, "y": x * 10})
    return D.zip((rows, rows.map(lambda row: row["y"] + 1), rows.filter(lambda row: row["x"] > 2))).batch(2)


def concatenated():
    rows = numbers(6)
    return rows.concatenate(rows).repeat(2)


def sampled():
    rows = numbers()
    return D.sample_from_datasets([rows, rows.map(lambda x: -x)], [0.5, 0.5], seed=3)


def chosen():
    rows = numbers(6)
    return D.choose_from_datasets([rows, rows], D.range(2).repeat(5))


def of_itself_twice():
    rows = numbers(6)
    pairs = D.zip((rows, rows)).map(lambda a, b: a * 10 + b).shuffle(3, seed=2)
    return D.zip((pairs, pairs)).batch(2)


def one_order():
    rows = D.range(8).shuffle(8, seed=1, reshuffle_each_iteration=False)
    return D.zip((rows, rows)).batch(3)


def cached_both():
    rows = numbers()
    return D.zip((rows, rows)).cache().repeat(2).batch(3)


def bodies():
    def function(x):
        rows = D.range(x, x + 4).shuffle(4, seed=9)
        return D.zip((rows, rows))

    return D.range(3).flat_map(function).batch(3)


def by_the_program_s_seed():
    tf.random.set_seed(7)
    first = D.range(6).shuffle(6)
    rows = D.range(6).shuffle(6)
    return D.zip((first, rows, rows)).shuffle(3).batch(2)


def cached_before():
    rows = D.range(10).cache().shuffle(4, seed=5)
    return D.zip((rows, rows)).repeat(2).batch(5)


def cached_in_turn():
    rows = numbers().cache()
    return rows.concatenate(rows).repeat(2).batch(5)


def cached_once():
    rows = numbers()
    return D.zip((rows.cache(), rows)).repeat(2).batch(5)


def cached_twice():
    rows = numbers().cache()
    return D.zip((rows, rows.map(lambda x: x * 10))).repeat(2).batch(5)


def captured():
    rows = numbers(4)
    return D.range(3).flat_map(lambda x: rows)


def captured_with_one_order():
    rows = D.range(4).shuffle(4, seed=1, reshuffle_each_iteration=False)
    return D.range(3).flat_map(lambda x: D.zip((rows, rows))).batch(2)


def captured_in_a_body():
    def function(x):
        rows = numbers(3)
        return D.range(2).interleave(lambda y: rows.map(lambda z: z * 2), cycle_length=2)

    return D.range(2).flat_map(function)


def made_in_bodies():
    def function(x):
        return D.range(2).flat_map(lambda y: numbers(3).map(lambda z: z * 2))

    return D.range(2).flat_map(function)
