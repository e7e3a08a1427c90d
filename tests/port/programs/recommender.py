"""Recommenders: MovieLens as lines, as columns, and as pairs of embeddings' indexes."""
import keras
import numpy as np
import tensorflow as tf

COLUMNS = ["user_id", "movie_id", "rating"]


def _ratings():
    rng = np.random.default_rng(2)
    return {
        "user_id": [f"user_{i}" for i in rng.integers(0, 6, 30)],
        "movie_id": [f"movie_{i}" for i in rng.integers(0, 9, 30)],
        "rating": rng.integers(1, 6, 30).astype(np.float32),
    }


def lookups():
    data = _ratings()
    users = keras.layers.StringLookup(vocabulary=sorted(set(data["user_id"])), mask_token=None)
    movies = keras.layers.StringLookup(vocabulary=sorted(set(data["movie_id"])), mask_token=None)
    ds = tf.data.Dataset.from_tensor_slices(data).shuffle(30, seed=42, reshuffle_each_iteration=False)
    train = ds.take(24).map(lambda x: ({"user": users(x["user_id"]), "movie": movies(x["movie_id"])}, x["rating"] / 5.0))
    test = ds.skip(24).take(6).map(lambda x: {"user": users(x["user_id"]), "rating": x["rating"]})
    return {"train": train.batch(8).cache(), "test": test.batch(4)}


def sequences(batch_size=4):
    """Lists of movies and ratings in one field of a CSV line."""
    rows = [f"{u}|{','.join(str((u * k) % 7) for k in range(1, 5))}|{','.join(str(k) for k in range(1, 5))}" for u in range(9)]
    with open("ratings.csv", "w") as file:
        file.write("\n".join(["user|movies|ratings", *rows]) + "\n")

    def process(features):
        movie_ids = tf.strings.split(tf.expand_dims(features["movies"], -1), ",").to_tensor()
        features["target"] = movie_ids[:, -1]
        features["movies"] = movie_ids[:, :-1]
        ratings = tf.strings.to_number(tf.strings.split(tf.expand_dims(features["ratings"], -1), ","), tf.float32)
        ratings = ratings.to_tensor()
        target = ratings[:, -1]
        features["ratings"] = ratings[:, :-1]
        return features, target

    dataset = tf.data.experimental.make_csv_dataset(
        "ratings.csv", batch_size=batch_size, column_names=["user", "movies", "ratings"], num_epochs=1,
        header=True, field_delim="|", shuffle=False,
    )
    return dataset.map(process)
