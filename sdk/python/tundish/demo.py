"""A small network in NumPy, fed by a server of its own: python -m tundish.demo [--seconds 10]

It makes a click log of a few megabytes, serves it, trains, and prints the loss, the rows a second and
the share of the time that it waited for the server.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

import tundish

ROWS, NUMBERS, TERMS, BATCH, HIDDEN = 200_000, 13, 1000, 1024, 512
RATE = 0.02

PIPELINE = f"""
streams:
  train:
    dataset:
      - from_tensor_slices: {{I: {{npy: I.npy}}, C: {{npy: C.npy}}, label: {{npy: label.npy}}}}
      - shuffle: {{buffer_size: 50000, seed: 7}}
      - map: {{I: "log1p(I)"}}
      - batch: {{batch_size: {BATCH}, drop_remainder: true}}
"""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tundish.demo", description=(__doc__ or "").split("\n")[0])
    parser.add_argument("--seconds", type=float, default=10, help="how long to train (default 10)")
    seconds = parser.parse_args().seconds
    with tempfile.TemporaryDirectory(prefix="tundish-demo-") as folder:
        make_clicks(Path(folder))
        file = Path(folder, "demo.yaml")
        file.write_text(PIPELINE)
        with tundish.serve(file, cache=folder) as server, server.open("train") as reader:
            train(reader, seconds)


def make_clicks(folder: Path) -> None:
    """Counts I and terms C of each row, and a label that depends on both."""
    draw = np.random.default_rng(42)
    counts = draw.geometric(0.05, (ROWS, NUMBERS)).astype(np.float32)
    terms = draw.integers(0, TERMS, ROWS)
    score = np.log1p(counts) @ draw.normal(size=NUMBERS) + draw.normal(size=TERMS)[terms]
    labels = draw.random(ROWS) < 1 / (1 + np.exp(score.mean() - score))
    for name, values in {"I": counts, "C": terms, "label": labels.astype(np.float32)}.items():
        np.save(folder / f"{name}.npy", values)


class Network:
    """Numbers and an embedding of the term, through one hidden layer, to the logit of a click."""

    def __init__(self) -> None:
        draw = np.random.default_rng(1)
        self.into = draw.normal(0, 0.1, (NUMBERS, HIDDEN)).astype(np.float32)
        self.embedding = draw.normal(0, 0.1, (TERMS, HIDDEN)).astype(np.float32)
        self.out = draw.normal(0, 0.01, HIDDEN).astype(np.float32)

    def step(self, numbers: Any, terms: Any, labels: Any) -> float:
        """One step of gradient descent; the loss before it."""
        hidden = np.maximum(numbers @ self.into + self.embedding[terms], 0)
        score = hidden @ self.out
        error = (1 / (1 + np.exp(-score)) - labels) / len(labels)
        back = np.outer(error, self.out) * (hidden > 0)
        self.out -= RATE * (error @ hidden)
        self.into -= RATE * (numbers.T @ back)
        # A term is in few rows of a batch, so it takes larger steps.
        np.subtract.at(self.embedding, terms, RATE * TERMS / 100 * back)
        return float(np.mean(np.logaddexp(0, score) - labels * score))


def train(reader: tundish.Reader, seconds: float) -> None:
    network = Network()
    start = last = time.monotonic()
    report = Report()
    rows, losses = 0, []
    while last - start < seconds:
        for batch in reader:  # one epoch
            now = time.monotonic()
            loss = network.step(batch["I"], batch["C"], batch["label"])
            report.add(len(batch["label"]), loss, waited=now - last)
            last = time.monotonic()
            if last - report.start >= 1 or last - start >= seconds:
                report.print(batch.epoch, batch.step)
                rows += report.rows
                losses.append(report.loss / report.steps)
                report = Report()
            if last - start >= seconds:
                break
    if losses:
        print(f"{rows:,} rows; loss {losses[0]:.4f} in the first second, {losses[-1]:.4f} in the last")


class Report:
    """The events since the last line."""

    def __init__(self) -> None:
        self.start = time.monotonic()
        self.rows = self.steps = 0
        self.loss = self.waited = 0.0

    def add(self, rows: int, loss: float, waited: float) -> None:
        self.rows += rows
        self.steps += 1
        self.loss += loss
        self.waited += waited

    def print(self, epoch: int, step: int) -> None:
        took = time.monotonic() - self.start
        print(
            f"epoch {epoch} step {step}: loss {self.loss / self.steps:.4f}, "
            f"{self.rows / took:,.0f} rows/s, waited {self.waited / took:.1%}",
            flush=True,
        )


if __name__ == "__main__":
    main()
