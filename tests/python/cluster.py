"""A task of a cluster with parameter servers: cluster.py CLUSTER TYPE INDEX STEPS

The chief sums the rows of so many steps, which its workers take of datasets of their own; after half of them
it waits for a line on its standard input. The evaluator sums its stream at each such line.
"""

import json
import os
import sys

import tensorflow as tf

import tundish
import tundish.tensorflow

CLUSTER, TYPE, INDEX, STEPS = json.loads(sys.argv[1]), sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
os.environ["TF_CONFIG"] = json.dumps({"cluster": CLUSTER, "task": {"type": TYPE, "index": INDEX}})
resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
if TYPE == "evaluator":
    with tundish.open("eval") as reader:
        for _ in sys.stdin:
            values = tundish.tensorflow.dataset(reader).map(lambda batch: tf.reduce_sum(batch["value"]))
            print(sum(int(value) for value in values), flush=True)
    sys.exit()
if TYPE != "chief":
    tf.distribute.Server(resolver.cluster_spec(), job_name=TYPE, task_index=INDEX, protocol="grpc").join()

reader = tundish.open("train")
strategy = tf.distribute.ParameterServerStrategy(resolver)
coordinator = tf.distribute.coordinator.ClusterCoordinator(strategy)
with strategy.scope():
    weight = tf.Variable(0, dtype=tf.int64)


@tf.function
def step(iterator):
    def rows(batch):
        weight.assign_add(1)
        return tf.size(batch["value"])

    return strategy.run(rows, args=(next(iterator),))


@tf.function
def dataset():
    return strategy.distribute_datasets_from_function(
        lambda _: tundish.tensorflow.dataset(reader, sessions=True).repeat()
    )


batches = iter(coordinator.create_per_worker_dataset(dataset))
results = []
for half in range(2):
    results += [coordinator.schedule(step, args=(batches,)) for _ in range(STEPS // 2)]
    coordinator.join()
    print("half", flush=True)
    if half == 0:
        sys.stdin.readline()
print(json.dumps([int(weight), sum(int(result.fetch()) for result in results)]), flush=True)
os._exit(0)
