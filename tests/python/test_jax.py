"""tundish.jax: a batch's memory as arrays of JAX, arrays over a mesh, places in Orbax's checkpoints."""

import asyncio
import json
import unittest
import warnings
from unittest import mock

import kinds
import rig

import tundish


class Jax(unittest.TestCase):
    def setUp(self):
        self.jax = rig.needs(self, "jax")
        rig.needs(self, "ml_dtypes")
        if self.jax.default_backend() != "cpu":
            self.skipTest("the tests are of JAX on the CPU")
        import tundish.jax

        self.jax.config.update("jax_enable_x64", True)
        self.addCleanup(self.jax.config.update, "jax_enable_x64", False)


class Values(Jax):
    def listed(self, column):
        if isinstance(column, tundish.Sparse):
            return column.dense().tolist()
        if hasattr(column, "to_list"):
            return column.to_list()
        return column.todense().tolist() if hasattr(column, "todense") else column.tolist()

    def test_every_kind_of_column_holds_what_the_stream_says(self):
        from jax.experimental.sparse import BCOO

        with rig.serve(kinds.pipeline()) as server, server.open("train", format="jax") as reader:
            for batch, expected in zip(reader, kinds.BATCHES, strict=True):
                self.assertEqual({name: self.listed(column) for name, column in batch.items()}, expected)
                self.assertEqual([str(batch[name].dtype) for name in kinds.DENSE],
                                 ["float32", "int32", "int64", "bool", "bfloat16", "uint8"])
                self.assertIsInstance(batch["ragged"].values, self.jax.Array)
                self.assertIsInstance(batch["sparse"], BCOO)
                self.assertIsInstance(batch["word"], tundish.Strings)

    def test_a_batch_without_rows_and_slices_without_rows(self):
        with rig.serve(kinds.pipeline(replicas=2)) as server:
            batch, readers = kinds.empty_batch(server)
            made = {name: tundish.jax.convert(column) for name, column in batch.items()}
            self.assertEqual({name: self.listed(column) for name, column in made.items()
                              if name not in ("sparse", "sparse_words")},
                             {name: [] for name in kinds.COLUMNS if not name.startswith("sparse")})
            self.assertEqual((made["x"].shape, made["sparse"].todense().shape), ((0, 2), (0, 3)))
            self.assertEqual(str(made["brain"].dtype), "bfloat16")
            self.assertEqual(tundish.jax.convert(batch["x"][0:0]).shape, (0, 2))
            self.assertEqual(tundish.jax.convert(batch["ragged"][0:0]).to_list(), [])
            for reader in readers:
                reader.close()

    def test_arrays_are_the_batchs_own_memory_for_as_long_as_they_live(self):
        with rig.serve(kinds.pipeline()) as server, server.open("train") as reader:
            batch = reader.next()
            for name in kinds.DENSE:
                for column in (batch[name], batch.array(name)):
                    array = tundish.jax.convert(column)
                    self.assertEqual(array.unsafe_buffer_pointer(), batch[name].ctypes.data, name)
            del column
            ragged = tundish.jax.convert(batch["ragged"])
            indices = tundish.jax.convert(batch["sparse"]).indices
            self.assertEqual(ragged.values.unsafe_buffer_pointer(), batch["ragged"].values.ctypes.data)
            self.assertEqual(indices.unsafe_buffer_pointer(), batch["sparse"].indices.ctypes.data)
            kept = tundish.jax.convert(batch["x"])
            del batch, array, ragged, indices
            self.assertEqual(reader.info.held_count, 1)
            self.assertEqual(kept.tolist(), kinds.BATCHES[0]["x"])
            del kept
            self.assertEqual(reader.info.held_count, 0)

    def test_they_are_also_where_jax_does_not_take_capsules_by_its_private_function(self):
        def wants_more(capsule, device, stream, layout):
            self.fail("never called: an argument is missing")

        with rig.serve(kinds.pipeline(*kinds.DENSE)) as server, server.open("train") as reader:
            batch = reader.next()
            for function in (None, wants_more, tundish.jax._taken):
                with mock.patch.object(tundish.jax, "_taken", function):
                    arrays = {name: tundish.jax.convert(batch[name]) for name in kinds.DENSE}
                for name, array in arrays.items():
                    self.assertEqual(array.unsafe_buffer_pointer(), batch[name].ctypes.data, name)
                    self.assertEqual(array.tolist(), kinds.BATCHES[0][name])
                    self.assertEqual(array.sharding, self.jax.numpy.zeros(1).sharding)
            self.assertIsNotNone(function, "this JAX has it no more: arrays take five times as long")
            del batch, arrays, array
            self.assertEqual(reader.info.held_count, 0)

    def test_a_donated_array_leaves_the_batch_as_it_is(self):
        with rig.serve(kinds.pipeline("x")) as server, server.open("train") as reader:
            batch = reader.next()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # JAX says where it cannot use what is donated
                double = self.jax.jit(lambda x: x * 2, donate_argnums=0)
                doubled = double(tundish.jax.convert(batch["x"]))
            self.assertEqual(doubled.tolist(), [[1, 2], [4, 6]])
            self.assertEqual(batch["x"].tolist(), kinds.BATCHES[0]["x"])

    def test_jit_takes_ragged_columns_and_batches_of_numpy(self):
        def total(columns):
            ragged = columns["ragged"]
            return columns["x"].sum() + ragged.values.sum(), ragged.row_splits[0][-1]

        with rig.serve(kinds.pipeline("x", "ragged")) as server, server.open("train") as reader:
            found = self.jax.jit(total)(dict(reader.next()))
            self.assertEqual([float(number) for number in found], [9.5, 2])

    def test_64_bits_without_x64_are_warned_of(self):
        self.jax.config.update("jax_enable_x64", False)
        with rig.serve(kinds.pipeline("id", "x", "ragged")) as server:
            batch = server.open("train", format="jax").next()
            with self.assertWarnsRegex(UserWarning, "32 bits of int64.*jax_enable_x64"):
                batch["id"]
            self.assertEqual((batch["id"].tolist(), str(batch["id"].dtype)), ([10, 11], "int32"))
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(batch["ragged"].to_list(), kinds.BATCHES[0]["ragged"])
                self.assertEqual(batch["x"].shape, (2, 2))


class Global(Jax):
    def sharding(self):
        from jax.sharding import NamedSharding, PartitionSpec

        mesh = self.jax.make_mesh((len(self.jax.devices()),), ("data",))
        return NamedSharding(mesh, PartitionSpec("data"))

    def test_this_processs_rows_are_its_batch(self):
        with rig.serve(kinds.pipeline("x", "label")) as server, server.open("train") as reader:
            for batch, expected in zip(reader, kinds.BATCHES):
                arrays = tundish.jax.global_arrays(batch, self.sharding())
                self.assertEqual({name: array.tolist() for name, array in arrays.items()},
                                 {name: expected[name] for name in arrays})
                self.assertEqual(arrays["x"].sharding, self.sharding())

    def test_what_is_not_dense_is_refused_by_name(self):
        with rig.serve(kinds.pipeline("x", "words")) as server, server.open("train") as reader:
            batch = reader.next()
            with self.assertRaisesRegex(TypeError, "'words' is Ragged.*to_dense"):
                tundish.jax.global_arrays(batch, self.sharding())
            self.assertEqual(list(tundish.jax.global_arrays({"x": batch["x"]}, self.sharding())), ["x"])


class Checkpoints(Jax):
    TEXT = kinds.pipeline("id", deliver="{epochs: 2}")

    def rest(self, reader):
        return [batch["id"].tolist() for batch in reader]

    def test_orbax_saves_and_loads_the_place_beside_the_parameters(self):
        rig.needs(self, "orbax.checkpoint")
        try:
            from orbax.checkpoint import v1 as ocp
        except ImportError:
            from orbax.checkpoint.experimental import v1 as ocp
        from tundish.jax import Checkpointable

        with rig.serve(self.TEXT) as server:
            parameters = {"w": self.jax.numpy.arange(3.0)}
            with server.open("train") as reader:
                reader.next()
                kept = {"model": parameters, "data": Checkpointable(reader)}
                ocp.save_checkpointables(server.path / "saved", kept)
                self.assertEqual(reader.next()["id"].tolist(), kinds.IDS[1])
            with server.open("train") as reader:
                kept = {"model": parameters, "data": Checkpointable(reader)}
                found = ocp.load_checkpointables(server.path / "saved", kept)
                self.assertEqual(found["model"]["w"].tolist(), [0, 1, 2])
                self.assertEqual(self.rest(reader), kinds.IDS[1:])
                self.assertEqual(self.rest(reader), kinds.IDS)

    def test_a_process_that_saved_nothing_takes_the_first_ones_place(self):
        from tundish.jax import Checkpointable

        async def load(checkpointable, directory):
            await (await checkpointable.load(directory))

        with rig.serve(self.TEXT) as server, server.open("train") as reader:
            reader.next()
            state = reader.state_dict()
            reader.next()
            (server.path / "process_0.json").write_text(json.dumps(state))
            with mock.patch.object(self.jax, "process_index", return_value=5):
                asyncio.run(load(Checkpointable(reader), server.path))
            self.assertEqual(self.rest(reader), kinds.IDS[1:])


if __name__ == "__main__":
    unittest.main()
