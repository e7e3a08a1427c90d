"""tundish.tensorflow: a batch's memory as eager tensors, and batches as elements of a Dataset."""

import contextlib
import json
import os
import socket
import subprocess
import sys
import unittest
from pathlib import Path

import kinds
import rig

import tundish

TASK = Path(__file__).with_name("cluster.py")


class TensorFlow(unittest.TestCase):
    def setUp(self):
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
        self.tf = rig.needs(self, "tensorflow")
        import tundish.tensorflow

        self.adapter = tundish.tensorflow

    def listed(self, column):
        tf = self.tf
        if isinstance(column, tf.SparseTensor):
            return tf.sparse.to_dense(column).numpy().tolist()
        return column.to_list() if isinstance(column, tf.RaggedTensor) else column.numpy().tolist()

    def assert_all_kinds(self, batches):
        tf = self.tf
        self.assertEqual(len(batches), len(kinds.BATCHES))
        for batch, expected in zip(batches, kinds.BATCHES):
            self.assertEqual({name: self.listed(column) for name, column in batch.items()}, expected)
            self.assertEqual([batch[name].dtype for name in kinds.DENSE],
                             [tf.float32, tf.int32, tf.int64, tf.bool, tf.bfloat16, tf.uint8])
            self.assertEqual(batch["deep"].ragged_rank, 2)


class Exported:
    """A capsule as numpy takes it."""

    def __init__(self, capsule):
        self.capsule = capsule

    def __dlpack__(self, **_):
        return self.capsule

    def __dlpack_device__(self):
        return 1, 0


class Eager(TensorFlow):
    def test_every_kind_of_column_holds_what_the_stream_says(self):
        with rig.serve(kinds.pipeline()) as server, server.open("train") as reader:
            for _ in range(2):
                self.assert_all_kinds(list(self.adapter.iterate(reader)))

    def test_a_batch_without_rows_and_slices_without_rows(self):
        with rig.serve(kinds.pipeline(replicas=2)) as server:
            batch, readers = kinds.empty_batch(server)
            made = {name: self.adapter.convert(column) for name, column in batch.items()}
            self.assertEqual({name: self.listed(column) for name, column in made.items()},
                             dict.fromkeys(kinds.COLUMNS, []))
            self.assertEqual((made["x"].shape, made["deep"].shape), ((0, 2), (0, None, None)))
            self.assertEqual(made["brain"].dtype, self.tf.bfloat16)
            self.assertEqual(self.adapter.convert(batch["x"][0:0]).shape, (0, 2))
            self.assertEqual(self.adapter.convert(batch["ragged"][0:0]).to_list(), [])
            for reader in readers:
                reader.close()

    def test_a_reader_may_have_the_format(self):
        with rig.serve(kinds.pipeline()) as server, server.open("train", format="tf") as reader:
            self.assert_all_kinds([dict(batch) for batch in reader])

    def test_columns_are_chosen_by_name(self):
        with rig.serve(kinds.pipeline("x", "word")) as server, server.open("train") as reader:
            found = [list(batch) for batch in self.adapter.iterate(reader, ["word"])]
            self.assertEqual(found, [["word"]] * 3)
            with self.assertRaisesRegex(tundish.ColumnError, "did you mean 'word'"):
                self.adapter.iterate(reader, ["wrod"])

    def test_tensors_are_the_batchs_own_memory_for_as_long_as_they_live(self):
        with rig.serve(kinds.pipeline()) as server, server.open("train") as reader:
            batch = reader.next()
            for name in kinds.DENSE:
                # TensorFlow's DLPack has no bool, NumPy's no bfloat16.
                if name not in ("flag", "brain"):
                    tensor = self.adapter.convert(batch[name])
                    self.assertEqual(self.address(tensor), batch[name].ctypes.data, name)
            ragged = self.adapter.convert(batch["ragged"])
            self.assertEqual(self.address(ragged.values), batch["ragged"].values.ctypes.data)
            kept = self.adapter.convert(batch["x"])
            del batch, tensor, ragged
            self.assertEqual(reader.info.held_count, 1)
            self.assertEqual(kept.numpy().tolist(), kinds.BATCHES[0]["x"])
            del kept
            self.assertEqual(reader.info.held_count, 0)

    def address(self, tensor):
        import numpy

        return numpy.from_dlpack(Exported(self.tf.experimental.dlpack.to_dlpack(tensor))).ctypes.data

    def test_what_works_in_place_works_on_memory_of_its_own(self):
        tf = self.tf

        @tf.function
        def chain(x):
            return tf.nn.relu(-x) + tf.sqrt(x)

        with rig.serve(kinds.pipeline("x")) as server, server.open("train") as reader:
            batch = reader.next()
            variable = tf.Variable(self.adapter.convert(batch["x"]))
            variable.assign_add(tf.ones_like(variable))
            variable.scatter_nd_update([[0, 0]], [7.0])
            self.assertEqual(variable.numpy().tolist(), [[7, 2], [3, 4]])
            chain(self.adapter.convert(batch["x"]))
            self.assertEqual(batch["x"].tolist(), kinds.BATCHES[0]["x"])


class Datasets(TensorFlow):
    def test_every_kind_of_column_holds_what_the_stream_says(self):
        with rig.serve(kinds.pipeline()) as server, server.open("train") as reader:
            dataset = self.adapter.dataset(reader)
            for _ in range(2):
                self.assert_all_kinds(list(dataset))

    def test_its_element_spec_is_the_streams(self):
        tf = self.tf
        with rig.serve(kinds.pipeline()) as server, server.open("train") as reader:
            spec = self.adapter.element_spec(reader)
            self.assertEqual(self.adapter.dataset(reader).element_spec, spec)
            self.assertEqual(spec["x"], tf.TensorSpec([None, 2], tf.float32))
            self.assertEqual(spec["word"], tf.TensorSpec([None], tf.string))
            deep = tf.RaggedTensorSpec([None, None, None], tf.int32, 2, tf.int64)
            self.assertEqual(spec["deep"], deep)
            self.assertEqual(spec["sparse"], tf.SparseTensorSpec([None, 3], tf.float32))

    def test_each_iteration_is_one_epoch_and_repeat_takes_them_all(self):
        with rig.serve(kinds.pipeline("id")) as server, server.open("train") as reader:
            dataset = self.adapter.dataset(reader)
            self.assertEqual([batch["id"].numpy().tolist() for batch in dataset], kinds.IDS)
            found = [batch["id"].numpy().tolist() for batch in dataset.repeat()]
            self.assertEqual(found, kinds.IDS * 2)
            self.assertTrue(reader.ended)

    def test_iterators_beside_each_other_have_sessions_of_their_own(self):
        stages = ("range: {stop: 60}", "shuffle: {buffer_size: 60}", "batch: 10")
        text = rig.pipeline(*stages, distribute="from_function: true", deliver="{}")
        with rig.serve(text) as server, server.open("train") as reader:
            dataset = self.adapter.dataset(reader, sessions=True)
            iterators = [iter(dataset.repeat(2)) for _ in range(2)]
            found = [[], []]
            for _ in range(12):
                for rows, iterator in zip(found, iterators):
                    rows.append(next(iterator)["value"].numpy().tolist())
            for rows in found:
                first, second = (sum(rows[begin : begin + 6], []) for begin in (0, 6))
                self.assertEqual((sorted(first), sorted(second)), ([*range(60)], [*range(60)]))
                self.assertNotEqual(first, second)
            self.assertEqual(reader.next().step, 0)

    def test_no_batch_is_taken_before_the_program_asks(self):
        with rig.serve(kinds.pipeline("id")) as server, server.open("train") as reader:
            iterator = iter(self.adapter.dataset(reader))
            for ids in kinds.IDS:
                place = reader.place
                self.assertEqual(next(iterator)["id"].numpy().tolist(), ids)
                self.assertNotEqual(reader.place, place)
            self.assertEqual(self.rest_after(place, server), kinds.IDS[2:])

    def rest_after(self, place, server):
        with server.open("train", group="another", place=place) as reader:
            return [batch["id"].tolist() for batch in reader]

    def test_a_failure_of_the_reader_is_told(self):
        with rig.serve(kinds.pipeline("id")) as server, server.open("train") as reader:
            dataset = self.adapter.dataset(reader)
            reader.close()
            with self.assertRaisesRegex(self.tf.errors.OpError, "reader is closed"):
                list(dataset)


class Cluster(TensorFlow):
    """ClusterCoordinator's, with a chief, two parameter servers, two workers and an evaluator."""

    def task(self, server, cluster, kind, index):
        process = subprocess.Popen(
            [sys.executable, TASK, json.dumps(cluster), kind, str(index), "40"],
            env=server.environment | {"GRPC_FAIL_FAST": "use_caller"},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        for close in (process.stdin.close, process.stdout.close, process.wait, process.kill):
            self.addCleanup(close)
        return process

    def asked(self, evaluator):
        evaluator.stdin.write("\n")
        evaluator.stdin.flush()
        return int(evaluator.stdout.readline())

    def test_each_worker_has_a_session_and_one_that_is_killed_loses_no_step(self):
        stages = ("range: {stop: 60}", "shuffle: {buffer_size: 60}", "batch: 10")
        text = rig.pipeline(*stages, distribute="from_function: true", deliver="{}")
        text += "  eval: {dataset: [{range: {stop: 25}}, {batch: 4}]}\n"
        with contextlib.ExitStack() as stack:
            sockets = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(5)]
            chief, *others = [f"127.0.0.1:{each.getsockname()[1]}" for each in sockets]
        cluster = {"chief": [chief], "ps": others[:2], "worker": others[2:]}
        with rig.serve(text) as server:
            tasks = {(kind, i): self.task(server, cluster, kind, i) for kind in cluster if kind != "chief" for i in range(2)}
            chief = self.task(server, cluster, "chief", 0)
            evaluator = self.task(server, cluster, "evaluator", 0)
            self.assertEqual(chief.stdout.readline(), "half\n")
            self.assertEqual(self.asked(evaluator), sum(range(25)))
            tasks["worker", 1].kill()
            tasks["worker", 1].wait()
            self.task(server, cluster, "worker", 1)
            self.assertEqual(self.asked(evaluator), sum(range(25)))
            chief.stdin.write("\n")
            chief.stdin.flush()
            self.assertEqual(chief.stdout.readline(), "half\n")
            steps, rows = json.loads(chief.stdout.readline())
            self.assertEqual(rows, 400)
            self.assertGreaterEqual(steps, 40)  # a step of the killed one may have been taken twice
            self.assertGreaterEqual(server.log().count("notice session: session train-"), 2)


if __name__ == "__main__":
    unittest.main()
