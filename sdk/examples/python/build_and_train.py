"""Build a pipeline in Python, as in a notebook, and train on it: no TensorFlow, no YAML by hand.

    python build_and_train.py
"""

import tempfile
from pathlib import Path

import numpy
import tundish
from tundish import layers, tf
from tundish.data import AUTOTUNE, Dataset, TextLineDataset

# Some files: hours of use, the plan of a customer, and whether it was kept.
folder = Path(tempfile.mkdtemp(prefix="customers-"))
random = numpy.random.default_rng(1)
for part in range(3):
    hours = random.exponential(20, 400)
    plans = random.choice(["free", "basic", "team"], 400)
    kept = (numpy.log1p(hours) + (plans == "team") + random.normal(0, 0.3, 400) > 3).astype(int)
    lines = [f"{h:.3f},{p},{k}" for h, p, k in zip(hours, plans, kept)]
    (folder / f"part-{part}.csv").write_text("\n".join(lines) + "\n")

# %% The pipeline. The function runs once, with columns in place of values.
plan_index = layers.StringLookup(vocabulary=["free", "basic", "team"], num_oov_indices=1)


def parse(line):
    hours, plan, kept = tf.io.decode_csv(line, [[0.0], ["free"], [0]])
    features = {"hours": tf.math.log1p(tf.maximum(hours, 0)), "plan": tf.one_hot(plan_index(plan), 4)}
    return features, tf.cast(kept, tf.float32)


train = (
    Dataset.list_files(str(folder / "part-*.csv"), seed=1)
    .interleave(TextLineDataset, cycle_length=3, num_parallel_calls=AUTOTUNE)
    .shuffle(1000, seed=7)
    .map(parse)
    .batch(64, drop_remainder=True)
    .prefetch(AUTOTUNE)
)

# %% What a person would have written, and the first batch.
print(train.yaml())
(first,) = train.peek(1)
print({name: column.shape for name, column in first.items()})

# %% Train: a logistic regression. Each `for` is an epoch.
weights, bias = numpy.zeros(5), 0.0
with tundish.open(train) as reader:
    for epoch in range(5):
        losses = []
        for batch in reader:
            x = numpy.column_stack([batch["hours"], batch["plan"]])
            guess = 1 / (1 + numpy.exp(-(x @ weights + bias)))
            error = guess - batch["kept"]
            weights -= 0.5 * x.T @ error / len(error)
            bias -= 0.5 * error.mean()
            losses.append(-numpy.log(numpy.where(batch["kept"] == 1, guess, 1 - guess) + 1e-9).mean())
        print(f"epoch {epoch}: loss {numpy.mean(losses):.3f}")

# %% Keep the pipeline for jobs: `tundish-launch customers.yaml -- python train.py`
train.save(folder / "customers.yaml", stream="train")
