"""tundish.tensorflow: a batch's memory as eager tensors, and batches as elements of a Dataset."""

import os
import unittest

import kinds
import rig

import tundish


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


if __name__ == "__main__":
    unittest.main()
