"""Texts that mean something else in a pipeline file."""
import tensorflow as tf

TEXTS = [
    "cd ${HOME}", "$${X} $$", "$value", "s in {column}", "{{column}}", "a\x85b", "\u2028 \u2029", "\x01\x7f\t\n\r", "null",
    "it's", 'say "no"', "\\n \\1", "x: y # z", "\ufeff\ue000", "`value`", "é", " ", "[UNK]",
]  # fmt: skip
BYTES = [b"\x89PNG\r\n", b"\xff\x00", b"\xed\xa0\x80${HOME}", b"\xc3"]


def rows(texts=(*TEXTS, *BYTES)):
    return tf.data.Dataset.from_tensor_slices(list(texts))


def slices():
    return rows().map(lambda s: {"s": s, "length": tf.strings.length(s)}).batch(5)


def dictionaries():
    columns = {"a ${HOME}": TEXTS, "b {x}": [[text, "-"] for text in TEXTS], "$value": list(range(len(TEXTS)))}
    return tf.data.Dataset.from_tensor_slices(columns).batch(4)


def bodies():
    inner = tf.data.Dataset.range(2).flat_map(lambda value: tf.data.Dataset.from_tensor_slices(TEXTS))
    return inner.batch(7)


def expressions():
    def function(s):
        made = {f"added_{i}": s + text for i, text in enumerate(TEXTS)}
        made |= {f"same_{i}": s == text for i, text in enumerate(TEXTS)}
        return made | {"joined": tf.strings.join([s, "|", s], separator="{column} ${HOME}")}

    return rows().map(function).batch(3)


def filtered():
    return rows().filter(lambda s: tf.logical_or(s == "s in {column}", s == "cd ${HOME}")).batch(3)


def rewritten():
    return rows(TEXTS).map(
        lambda s: (
            tf.strings.regex_replace(s, r"\$\{HOME\}", "{column} ${X}"),
            tf.strings.regex_replace(s, "\x85", "$value"),
            tf.strings.split(s + "${" + s, sep="${")[0],
        )
    ).batch(2)


def defaults():
    def function(s):
        features = {"x": tf.io.FixedLenFeature([], tf.string, "${HOME}{column}")}
        features["${K}"] = tf.io.FixedLenFeature([2], tf.string, [b"\xff", "$value"])
        made = tf.io.parse_single_example("", features)
        made["field"], made["number"] = tf.io.decode_csv(",1", [["\x85${HOME}"], [0]])
        return made | {"s": s}

    return rows(TEXTS).map(function).batch(2)


def padded():
    words = rows(["a", "b c", "d e f"]).map(tf.strings.split)
    return words.padded_batch(2, padding_values="${HOME}\x85{column}")


def looked_up():
    words = [text for text in TEXTS if text != "[UNK]"]
    few = tf.keras.layers.StringLookup(vocabulary=words[:5])
    many = tf.keras.layers.StringLookup(vocabulary=words)
    initializer = tf.lookup.KeyValueTensorInitializer(tf.constant(BYTES), tf.constant([4, 5, 6, 7], tf.int64))
    table = tf.lookup.StaticHashTable(initializer, -1)
    return rows().map(lambda s: {"few": few(s), "many": many(s), "table": table.lookup(s)}).batch(6)


def table_of_texts():
    initializer = tf.lookup.KeyValueTensorInitializer(TEXTS, list(range(len(TEXTS))))
    table = tf.lookup.StaticHashTable(initializer, -1)
    return rows().map(table.lookup).batch(6)
