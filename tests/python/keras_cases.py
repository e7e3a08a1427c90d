"""The cases of test_keras.py, for the one backend that Keras has in a process (KERAS_BACKEND)."""

import os
import unittest

import kinds
import rig

import tundish

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import keras  # noqa: E402

from tundish.keras import Adapter, _Dataset  # noqa: E402

BACKEND = keras.backend.backend()
TEXT = kinds.pipeline("x", "id", "label", "byte")
# Two rows an epoch, which nobody can know before.
FILTERED = rig.pipeline(
    "from_tensor_slices: {x: {values: [[1, 2], [3, 4], [5, 6]], dtype: float32}, id: [1, 2, 3]}",
    "filter: id > 1",
    "batch: 1",
    deliver="{epochs: 4}",
)
# By Total, of the ids: their sum and how many they are.
BATCHES = [2021, 2025, 1014]
EPOCH = 5060


@keras.saving.register_keras_serializable()
class Total(keras.metrics.Metric):
    """The sum of all y, and 1000 for each of them: of which rows there were."""

    def __init__(self, name="total", **options):
        super().__init__(name=name, **options)
        self.total = self.add_variable((), "zeros", name="total")

    def update_state(self, y, predicted, sample_weight=None):
        self.total.assign_add(keras.ops.sum(keras.ops.cast(y, "float32") + 1000))

    def result(self):
        return self.total + 0.0


def built():
    model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Total()])
    return model


def unbuilt():
    """Keras takes a batch to build this one."""
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=[Total()])
    return model


def iter_of(data):
    """What a loop of Keras gets of this backend."""
    name = {"torch": "torch_dataloader", "jax": "jax_iterator", "tensorflow": "tf_dataset"}[BACKEND]
    return getattr(data, f"get_{name}")()


class Case(unittest.TestCase):
    def reader(self, text=TEXT, **options):
        server = self.enterContext(rig.serve(text))
        return self.enterContext(server.open("train", **options))

    def totals(self, model, data, **options):
        return model.fit(data, verbose=0, **options).history["total"]


class Fit(Case):
    def test_each_epoch_has_each_row_once(self):
        for make in (built, unbuilt):
            data = Adapter(self.reader(), "x", "id")
            self.assertEqual(self.totals(make(), data, epochs=3), [EPOCH] * 3)

    def test_steps_per_epoch_go_on_in_the_streams_epoch(self):
        for make in (built, unbuilt):
            data = Adapter(self.reader(), "x", "id")
            self.assertEqual(self.totals(make(), data, epochs=3, steps_per_epoch=1), BATCHES)

    def test_a_fit_of_one_step_is_not_given_the_same_batch_again(self):
        data, model = Adapter(self.reader(), "x", "id"), unbuilt()
        found = [self.totals(model, data, epochs=1, steps_per_epoch=1)[0] for _ in range(2)]
        self.assertEqual(found, [BATCHES[0], BATCHES[0]])  # each fit begins an epoch
        self.assertEqual(data._source.reader.next()["id"].tolist(), kinds.IDS[1])

    def test_an_epoch_that_a_callback_stops_at_its_first_step_begins_again(self):
        """As the documentation says: nothing is lost. After more steps the next epoch begins."""
        for after, begins_again in ((1, True), (3, False)):
            data, model = Adapter(self.reader(), "x", "id"), built()
            stop = keras.callbacks.LambdaCallback(on_train_batch_end=lambda batch, logs: setattr(
                model, "stop_training", batch + 1 >= after))  # fmt: skip
            self.assertEqual(self.totals(model, data, callbacks=[stop]), [sum(BATCHES[:after])])
            self.assertEqual(bool(data._source._kept), begins_again)
            self.assertEqual(self.totals(model, data), [EPOCH])

    def test_a_replica_without_rows_of_a_step_gets_an_empty_batch(self):
        server = self.enterContext(rig.serve(kinds.pipeline("x", "id", replicas=2, deliver="{epochs: 1}")))
        other, reader = [self.enterContext(server.open("train", replica=r)) for r in (0, 1)]
        self.assertEqual([batch["id"].tolist() for batch in other], [[10], [12], [14]])
        seen = [y.shape[0] for _, y in iter_of(Adapter(reader, "x", "id"))]
        self.assertEqual(seen, [1, 1, 0])

    def test_an_unknown_length_is_found_out(self):
        data = Adapter(self.reader(FILTERED), "x", "id")
        self.assertIsNone(data.num_batches)
        self.assertEqual(self.totals(unbuilt(), data, epochs=4), [2005] * 4)

    def test_validation_data_has_its_own_reader_and_begins_anew_each_time(self):
        history = unbuilt().fit(Adapter(self.reader(), "x", "id"), epochs=3, verbose=0,
                                validation_data=Adapter(self.reader(), "x", "id")).history  # fmt: skip
        self.assertEqual((history["total"], history["val_total"]), ([EPOCH] * 3, [EPOCH] * 3))

    def test_evaluate_and_predict_take_it(self):
        model, reader = built(), self.reader()
        told = model.evaluate(Adapter(reader, "x", "id"), verbose=0, return_dict=True)
        self.assertEqual(told["total"], EPOCH)
        found = model.predict(Adapter(reader, "x"), verbose=0)
        kernel, bias = model.get_weights()
        rows = [row for batch in kinds.BATCHES for row in batch["x"]]
        for row, expected in zip(found, rows, strict=True):
            self.assertAlmostEqual(row[0], float((expected @ kernel + bias)[0]), places=4)

    def test_several_inputs_come_in_order_or_by_name(self):
        for wanted in (["byte", "x"], {"right": "x", "left": "byte"}):
            left, right = keras.Input((2,), name="left"), keras.Input((2,), name="right")
            told = keras.ops.sum(left * 100 + right, axis=1, keepdims=True)
            found = keras.Model([left, right], told).predict(Adapter(self.reader(), wanted), verbose=0)
            expected = [sum(byte) * 100 + sum(x) for batch in kinds.BATCHES
                        for byte, x in zip(batch["byte"], batch["x"])]  # fmt: skip
            self.assertEqual(found[:, 0].tolist(), expected)

    def test_sample_weights_weigh(self):
        model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1, "linear", True, "zeros")])
        model.compile("sgd", "mse")
        data = Adapter(self.reader(), x="x", y="id", sample_weight="label")
        loss = model.evaluate(data, verbose=0)
        rows = [id * id * weight for batch in kinds.BATCHES
                for id, weight in zip(batch["id"], batch["label"])]  # fmt: skip
        self.assertAlmostEqual(loss, sum(rows) / 5, places=3)

    def test_no_slot_is_held_by_the_batches_that_keras_keeps(self):
        reader = self.reader()
        data = Adapter(reader, "x", "id")
        unbuilt().fit(data, verbose=0, steps_per_epoch=1)
        held = reader.info.held_count
        self.assertLessEqual(held, 1 if BACKEND == "tensorflow" else 0)


class OtherKinds(Case):
    def test_a_kind_that_the_backend_has_not_is_refused_with_a_remedy(self):
        refused = {"torch": ("word", "ragged", "sparse"), "jax": ("word", "ragged")}.get(BACKEND, ())
        reader = self.reader(kinds.pipeline())
        for name in refused:
            with self.assertRaisesRegex(tundish.ArgumentError, f"{name!r}.*{BACKEND} takes none: add"):
                Adapter(reader, name)
        with self.assertRaisesRegex(tundish.ColumnError, "did you mean 'label'"):
            Adapter(reader, "x", "labels")
        with self.assertRaisesRegex(tundish.ArgumentError, "give y as well"):
            Adapter(reader, "x", sample_weight="label")

    def test_those_it_has_are_its_own(self):
        data = Adapter(self.reader(kinds.pipeline()), {"torch": ["x"], "jax": ["sparse"]}.get(
            BACKEND, ["word", "ragged", "sparse"]), "id")  # fmt: skip
        if BACKEND == "torch":
            (x,), _ = next(iter(data.get_torch_dataloader()))
            x.zero_()
        elif BACKEND == "jax":
            (sparse,), _ = next(iter(data.get_jax_iterator()))
            self.assertEqual(sparse.todense().tolist(), kinds.BATCHES[0]["sparse"])
        else:
            (word, ragged, sparse), _ = next(iter(data.get_tf_dataset()))
            self.assertEqual(word.numpy().tolist(), kinds.BATCHES[0]["word"])
            self.assertEqual(ragged.to_list(), kinds.BATCHES[0]["ragged"])
            self.assertEqual(sparse.shape.as_list(), [2, 3])


class PublicWay(Case):
    """Where Keras has no adapters of others any more."""

    def test_each_epoch_has_each_row_once(self):
        for make in (built, unbuilt):
            data = _Dataset(self.reader(), "x", "id")
            self.assertEqual(self.totals(make(), data, epochs=3, shuffle=False), [EPOCH] * 3)

    def test_an_unknown_length_is_refused(self):
        with self.assertRaisesRegex(tundish.ArgumentError, "install Keras"):
            _Dataset(self.reader(FILTERED), "x", "id")


if __name__ == "__main__":
    unittest.main()
