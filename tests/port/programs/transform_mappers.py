"""tf.Transform's mappers and analyzers, one after the other."""
import tensorflow as tf
import tensorflow_transform as tft


def raw():
    rows = {
        "words": ["a b c", "b", "", "c c a b", "x a", "a b"],
        "price": [1.0, 5.0, 2.0, 7.0, float("nan"), 2.0],
        "shop": ["p", "q", "p", "q", "p", "p"],
        "count": [3, 4, 5, 6, 7, 8],
        "pair": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0], [7.0, 9.0], [3.0, 3.0], [1.0, 1.0]],
    }
    return tf.data.Dataset.from_tensor_slices(rows).batch(4)


def rows_alone():
    return tf.data.Dataset.from_tensor_slices({"x": [1.0, 2.0]})


def numbers(inputs):
    count, price, pair, shop = (inputs[key] for key in ("count", "price", "pair", "shop"))
    return {
        "z": tft.scale_to_z_score(count),
        "z_of_each": tft.scale_to_z_score(pair, elementwise=True),
        "z_of_shop": tft.scale_to_z_score_per_key(tf.cast(count, tf.float32), shop),
        "twice": tft.scale_to_0_1(tft.scale_to_z_score(count)),
        "again": tft.scale_to_z_score(tft.scale_to_z_score(count) * 2.0),
        "between": tft.scale_by_min_max(price, -1.0, 1.0),
        "bucket": tft.bucketize(price, 3),
        "bucket_of_shop": tft.bucketize_per_key(count, shop, 2),
        "quantile": tft.apply_buckets(count, tft.quantiles(count, 3, 0.01)),
        "fixed": tft.apply_buckets(price, [[2.0, 5.0]]),
    }


def words(inputs):
    tokens = tf.strings.split(inputs["words"]).to_sparse()
    ids = tft.compute_and_apply_vocabulary(tokens, top_k=3)
    indices, weights = tft.tfidf(ids, 4)
    shops = tft.vocabulary(inputs["shop"], vocab_filename="shops")
    return {
        "ids": ids,
        "indices": indices,
        "weights": weights,
        "shop": tft.apply_vocabulary(inputs["shop"], shops, num_oov_buckets=2),
        "pairs": tft.ngrams(tokens, (2, 2), " "),
        "bag": tft.bag_of_words(tokens, (1, 2), "-"),
        "word_count": tft.word_count(tokens),
        "hashed": tft.hash_strings(inputs["shop"], 10),
        "dense": tft.sparse_tensor_to_dense_with_shape(ids, [None, 6], -1),
        "scaled": tft.scale_to_z_score(tf.cast(ids, tf.float32)),
    }


def refused(inputs):
    return {
        "centred": inputs["price"] - tft.mean(inputs["price"]),
        "components": tf.matmul(inputs["pair"], tft.pca(inputs["pair"], 1, tf.float32)),
        "other": tft.apply_vocabulary(inputs["words"], tft.vocabulary(inputs["shop"])),
        "grams": tft.ngrams(tf.strings.split(inputs["words"]).to_sparse(), (1, 2), " "),
    }
