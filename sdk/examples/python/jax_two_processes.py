"""One array over the batches of several processes.

    tundish-launch FILE --replicas 2 -- python jax_two_processes.py

FILE has the columns x (float32, two of them), label and id, and all replicas get as many rows. Each
process reads its own replica's rows; the step sees the global batch.
"""

import os

import jax
import jax.numpy as jnp
from jax.sharding import NamedSharding, PartitionSpec

import tundish
from tundish.jax import global_arrays

RATE = 0.001


@jax.jit
def step(weights: jax.Array, batch: dict[str, jax.Array]) -> tuple[jax.Array, jax.Array, jax.Array]:
    def loss_of(weights: jax.Array) -> jax.Array:
        return jnp.mean((batch["x"] @ weights - batch["label"]) ** 2)

    loss, gradient = jax.value_and_grad(loss_of)(weights)
    return weights - RATE * gradient, loss, batch["id"].sum()


def main() -> None:
    jax.distributed.initialize(
        f"{os.environ['MASTER_ADDR']}:{os.environ['MASTER_PORT']}",
        num_processes=int(os.environ["WORLD_SIZE"]),
        process_id=int(os.environ["RANK"]),
    )
    mesh = jax.make_mesh((jax.device_count(),), ("data",))
    by_rows = NamedSharding(mesh, PartitionSpec("data"))
    weights = jax.device_put(jnp.zeros(2), NamedSharding(mesh, PartitionSpec()))
    with tundish.open() as train:
        for batch in train:
            weights, loss, ids = step(weights, global_arrays(batch, by_rows))
            print(f"rank {jax.process_index()} step {batch.step} ids {ids} loss {loss:.4f}", flush=True)


if __name__ == "__main__":
    main()
