"""Keras on any of its backends.

    KERAS_BACKEND=jax tundish-launch FILE --replicas 1 -- python keras_fit.py

FILE has the columns x (float32, two of them) and label.
"""

import keras

import tundish
from tundish.keras import Adapter

model = keras.Sequential([keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
model.compile(keras.optimizers.Adam(0.05), "mse")
with tundish.open() as train:
    history = model.fit(Adapter(train, x="x", y="label"), epochs=3, verbose=0).history
print("loss", *(f"{loss:.4f}" for loss in history["loss"]))
