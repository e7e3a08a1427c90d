"""Conditions in maps: tf.cond, elif, nested ones, of numbers, of texts, of several results."""
import tensorflow as tf

D = tf.data.Dataset


def cond_of_numbers():
    return D.range(5).map(lambda x: tf.cond(x > 2, lambda: x * 2, lambda: x)).batch(2)


def cond_of_constants():
    return D.range(5).map(lambda x: tf.cond(x > 2, lambda: tf.constant(1, tf.int64), lambda: tf.constant(0, tf.int64))).batch(2)


def cond_of_texts():
    return D.range(5).map(lambda x: tf.cond(pred=x > 2, true_fn=lambda: "more", false_fn=lambda: "less")).batch(2)


def cond_of_vectors():
    rows = D.from_tensor_slices([[1.0, 2.0], [-3.0, 4.0]])
    return rows.map(lambda v: tf.cond(v[0] > 0, lambda: v, lambda: tf.constant([0.5, -0.5]))).batch(2)


def cond_of_pairs():
    def pair(x):
        a, b = tf.cond(x > 2, lambda: (x, x + 1), lambda: (x * 10, x))
        return {"a": a, "b": b}

    return D.range(5).map(pair).batch(2)


def cond_of_a_list():
    return D.range(5).map(lambda x: tf.cond(x > 2, lambda: [x], lambda: [x - 1])).batch(2)


def cond_of_a_plain_number(is_training=True):
    return D.range(5).map(lambda x: tf.cond(tf.constant(is_training), lambda: x * 2, lambda: tf.square(x))).batch(2)


def cond_of_functions():
    return D.range(5).map(lambda x: tf.cond(x > 2, lambda: tf.square(x), lambda: tf.zeros_like(x))).batch(2)


def nested_conds():
    def level(x):
        return tf.cond(x > 3, lambda: x, lambda: tf.cond(x > 1, lambda: x * 10, lambda: x * 100))

    return D.range(6).map(level).batch(4)


def _grade(x):
    if x < 2:
        grade = 0
    elif x < 4:
        grade = 1
    elif x < 5:
        grade = 5
    else:
        grade = 2
    return grade


def elif_of_constants():
    return D.range(7).map(_grade).batch(4)


def elif_of_columns():
    def scaled(x):
        if x < 2:
            y = x
        elif x < 4:
            y = x * 2
        else:
            if x == 5:
                y = x * 3
            else:
                y = -x
        return y

    return D.range(7).map(scaled).batch(4)


def elif_of_texts():
    def named(x):
        if x == 0:
            name = "zero"
        elif x == 1:
            name = "one"
        else:
            name = "many"
        return name

    return D.range(4).map(lambda x: {"x": x, "name": named(x)}).batch(3)


def filtered():
    return D.range(9).filter(lambda x: tf.cond(x > 4, lambda: x % 2 == 0, lambda: True)).batch(3)


def divided():
    return D.range(1, 5).map(lambda x: tf.cond(x > 2, lambda: 10 // x, lambda: x)).batch(3)
