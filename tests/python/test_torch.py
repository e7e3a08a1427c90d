"""tundish.torch: the same values as tensors, once copied or not at all, and places that go on."""

import contextlib
import os
import pathlib
import pickle
import resource
import signal
import tempfile
import threading
import unittest

import kinds
import rig

import tundish


class Torch(unittest.TestCase):
    def setUp(self):
        self.torch = rig.needs(self, "torch")
        rig.needs(self, "ml_dtypes")

    def loader(self, server, *names, **options):
        from tundish.torch import DataLoader

        return DataLoader("train", server=server.socket, **options)

    def listed(self, column):
        torch = self.torch
        if isinstance(column, tundish.Sparse):
            return column.dense().tolist()
        if hasattr(column, "to_list"):
            return column.to_list()
        if column.layout == torch.jagged:
            return [row.tolist() for row in column.unbind()]
        return column.to_dense().tolist() if column.layout == torch.sparse_coo else column.tolist()


class Values(Torch):
    def assert_all_kinds(self, batches):
        torch = self.torch
        self.assertEqual(len(batches), len(kinds.BATCHES))
        for batch, expected in zip(batches, kinds.BATCHES):
            self.assertEqual({name: self.listed(column) for name, column in batch.items()}, expected)
            dtypes = [torch.float32, torch.int32, torch.int64, torch.bool, torch.bfloat16, torch.uint8]
            self.assertEqual([batch[name].dtype for name in kinds.DENSE], dtypes)
            self.assertIs(batch["ragged"].layout, torch.jagged)
            self.assertIs(batch["sparse"].layout, torch.sparse_coo)
            self.assertIsInstance(batch["deep"].values, torch.Tensor)
            self.assertIsInstance(batch["word"], tundish.Strings)

    def test_every_kind_of_column_holds_what_the_stream_says(self):
        with rig.serve(kinds.pipeline()) as server:
            self.assert_all_kinds(list(self.loader(server)))

    def test_without_a_copy_too(self):
        with rig.serve(kinds.pipeline()) as server:
            self.assert_all_kinds(list(self.loader(server, zero_copy=True)))

    def test_a_reader_may_have_the_format(self):
        with rig.serve(kinds.pipeline()) as server:
            with server.open("train", format="torch") as reader:
                self.assert_all_kinds([dict(batch) for batch in reader])

    def test_a_batch_without_rows_and_slices_without_rows(self):
        from tundish.torch import _assembled, _copied, _shared

        with rig.serve(kinds.pipeline(replicas=2)) as server:
            batch, readers = kinds.empty_batch(server)
            for tensor_of in (_copied, _shared):
                made = {name: _assembled(column, tensor_of) for name, column in batch.items()}
                self.assertEqual({name: self.listed(column) for name, column in made.items()},
                                 dict.fromkeys(kinds.COLUMNS, []))
                self.assertEqual((made["x"].shape, made["sparse"].shape), ((0, 2), (0, 3)))
                self.assertEqual(made["brain"].dtype, self.torch.bfloat16)
                self.assertEqual(_assembled(batch["x"][0:0], tensor_of).shape, (0, 2))
                self.assertEqual(self.listed(_assembled(batch["ragged"][0:0], tensor_of)), [])
            for reader in readers:
                reader.close()

    def test_ragged_columns_as_values_and_offsets(self):
        for zero_copy in (False, True):
            with rig.serve(kinds.pipeline("ragged", "deep", "words")) as server:
                found = list(self.loader(server, ragged="splits", zero_copy=zero_copy))
                for batch, expected in zip(found, kinds.BATCHES, strict=True):
                    values, offsets = batch["ragged"]
                    at = offsets.tolist()
                    rows = [values[begin:end].tolist() for begin, end in zip(at, at[1:])]
                    self.assertEqual((offsets.dtype, rows), (self.torch.int64, expected["ragged"]))
                    self.assertEqual(batch["deep"].to_list(), expected["deep"])
                    self.assertEqual(batch["words"].to_list(), expected["words"])
        from tundish.torch import DataLoader

        with self.assertRaisesRegex(tundish.ArgumentError, "'nested' or 'splits', not 'offsets'"):
            DataLoader("train", ragged="offsets")

    def test_columns_of_all_kinds_come_in_the_order_that_was_asked_for(self):
        names = ["ragged", "x", "word", "label", "sparse", "brain"]
        with rig.serve(kinds.pipeline()) as server:
            found = [list(map(self.listed, batch)) for batch in self.loader(server, columns=names)]
        self.assertEqual(found, [[batch[name] for name in names] for batch in kinds.BATCHES])

    def test_columns_make_tuples_in_their_order(self):
        with rig.serve(kinds.pipeline("x", "label")) as server:
            found = [(x.tolist(), y.tolist()) for y, x in self.loader(server, columns=("label", "x"))]
            self.assertEqual(found, [(batch["x"], batch["label"]) for batch in kinds.BATCHES])

    def test_collate_gets_the_columns_and_makes_what_the_loop_gets(self):
        def collate(columns):
            return sorted(columns), columns["x"].sum().item()

        with rig.serve(kinds.pipeline("x", "label", "id")) as server:
            found = list(self.loader(server, columns=("x", "id"), collate=collate))
            self.assertEqual(found, [(["id", "x"], 6.5), (["id", "x"], 22), (["id", "x"], 17)])

    def test_what_was_widened_is_not_copied_again(self):
        text = kinds.pipeline("byte", deliver="{epochs: 1, widen: {byte: {dtype: float32, scale: 2}}}")
        with rig.serve(text) as server, server.open("train", widen=True) as reader:
            from tundish.torch import DataLoader

            batch = reader.next()
            (tensor,) = DataLoader(reader, columns=["byte"])._made(batch)
            self.assertEqual((tensor.dtype, tensor.tolist()), (self.torch.float32, [[0, 510], [2, 4]]))
            self.assertEqual(tensor.data_ptr(), batch["byte"].ctypes.data)


class Memory(Torch):
    def test_tensors_may_be_written_to_and_hold_no_slot(self):
        with rig.serve(kinds.pipeline()) as server:
            loader = self.loader(server)
            kept = []
            for batch in loader:
                self.assertEqual(loader.reader.info.held_count, 0)
                kept.append(batch)
                for name in kinds.DENSE:
                    batch[name].zero_()
                batch["ragged"].values().zero_()
                batch["sparse"]._values().zero_()
            self.assertEqual([batch["x"].sum().item() for batch in kept], [0, 0, 0])

    def test_copies_take_the_pages_of_earlier_ones_and_leave_none_in_the_end(self):
        from tundish.torch import convert

        size = 1 << 24
        with rig.serve(rig.pipeline(f"range: {{stop: {size // 8}}}", f"batch: {size // 8}")) as server:
            with server.open("train") as reader:
                column = reader.next()["value"]
                before = anonymous_bytes()
                first, second = convert(column), convert(column)
                part = first[7:9]
                del first
                third = convert(column)  # the memory of the first is in use still
                part.zero_()
                self.assertEqual([second[7].item(), third[7].item(), part.sum().item()], [7, 7, 0])
                del second, part
                faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
                fourth = convert(column)
                faults = resource.getrusage(resource.RUSAGE_SELF).ru_minflt - faults
                self.assertLess(faults, size // resource.getpagesize() // 4)
                self.assertTrue((fourth.numpy() == column).all())
                del third, fourth
                self.assertLess(anonymous_bytes() - before, size)

    def test_copies_are_made_and_dropped_by_several_threads(self):
        from tundish.torch import convert

        def work():
            held = []
            for _ in range(200):
                held = [*held[-2:], convert(column)]
                right.append(bool((held[0].numpy() == column).all()))
                held[0].zero_()
                held = held[1:]

        with rig.serve(rig.pipeline("range: {stop: 10000}", "batch: 10000")) as server:
            with server.open("train") as reader:
                column, right = reader.next()["value"], []
                threads = [threading.Thread(target=work) for _ in range(4)]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                self.assertEqual(right, [True] * 800)

    def test_zero_copy_is_the_batchs_own_memory_for_as_long_as_a_tensor_lives(self):
        from tundish.torch import DataLoader

        with rig.serve(kinds.pipeline()) as server, server.open("train") as reader:
            batch = reader.next()
            made = DataLoader(reader, zero_copy=True)._made(batch)
            for name in kinds.DENSE:
                self.assertEqual(made[name].data_ptr(), batch[name].ctypes.data, name)
            self.assertEqual(made["ragged"].values().data_ptr(), batch["ragged"].values.ctypes.data)
            self.assertEqual(made["deep"].values.data_ptr(), batch["deep"].values.ctypes.data)
            self.assertEqual(made["sparse"]._values().data_ptr(), batch["sparse"].values.ctypes.data)
            tensor = made["x"][1]
            del batch, made
            self.assertEqual(reader.info.held_count, 1)
            self.assertEqual(tensor.tolist(), [2, 3])
            del tensor
            self.assertEqual(reader.info.held_count, 0)

    def test_a_torch_without_versioned_capsules_takes_the_same_memory(self):
        from torch.utils import dlpack

        with rig.serve(kinds.pipeline("brain")) as server, server.open("train") as reader:
            batch = reader.next()
            tensor = dlpack.from_dlpack(batch.array("brain").__dlpack__(copy=False))
            self.assertEqual((tensor.dtype, tensor.tolist()), (self.torch.bfloat16, [0.5, -1]))
            self.assertEqual(tensor.data_ptr(), batch["brain"].ctypes.data)

    def test_without_cuda_pin_memory_is_ignored(self):
        with rig.serve(kinds.pipeline("x", "brain")) as server:
            x, brain = next(iter(self.loader(server, columns=("x", "brain"), pin_memory=True)))
            self.assertEqual((x.tolist(), brain.tolist()), (kinds.BATCHES[0]["x"], [0.5, -1]))
            self.assertEqual([x.is_pinned(), brain.is_pinned()], [self.torch.cuda.is_available()] * 2)


def anonymous_bytes():
    with open("/proc/self/status", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon:")) << 10


class Epochs(Torch):
    def test_one_for_is_one_epoch_and_the_length_is_its_steps(self):
        with rig.serve(kinds.pipeline("id", deliver="{epochs: 2}")) as server:
            loader = self.loader(server, columns=["id"])
            self.assertEqual(len(loader), 3)
            found = [[ids.tolist() for (ids,) in loader] for _ in range(4)]
            self.assertEqual(found, [kinds.IDS, kinds.IDS, [], []])

    def test_a_length_that_nobody_knows_is_a_type_error(self):
        text = rig.pipeline("range: {stop: 6}", "filter: 'value > 1'", "batch: 2")
        with rig.serve(text) as server:
            loader = self.loader(server)
            with self.assertRaises(TypeError):
                len(loader)
            self.assertEqual([batch["value"].tolist() for batch in loader], [[2, 3], [4, 5]])

    def test_a_length_that_is_said_counts_where_the_pipeline_tells_none(self):
        for stages, steps in (("filter: 'value > 1'",), 9), ((), 3):
            with rig.serve(rig.pipeline("range: {stop: 6}", *stages, "batch: 2")) as server:
                self.assertEqual(len(self.loader(server, length=9)), steps)
        from tundish.torch import DataLoader

        with self.assertRaisesRegex(tundish.ArgumentError, "length is .*, not -1"):
            DataLoader("train", length=-1)

    def test_a_resumed_run_and_one_resumed_from_it_get_the_same_rows_as_one_that_was_not_stopped(self):
        stages = ("range: {stop: 20}", "shuffle: {buffer_size: 20}", "batch: 2")
        text = rig.pipeline(*stages, deliver="{epochs: 3}")

        def read(state, steps):
            """So many batches, over ends of epochs, in a run of its own; and the state after them."""
            found = []
            with rig.serve(text) as server:
                loader = self.loader(server, columns=["value"])
                if state is not None:
                    loader.load_state_dict(pickle.loads(pickle.dumps(state)))
                    self.assertEqual(loader.state_dict(), state)
                while len(found) < steps:
                    for (values,) in loader:
                        found.append(values.tolist())
                        if len(found) == steps:
                            break
                return found, loader.state_dict()

        whole, _ = read(None, 30)
        first, state = read(None, 7)
        second, state = read(state, 8)
        third, _ = read(state, 15)
        self.assertEqual(first + second + third, whole)
        self.assertEqual(sorted(sum(whole[:10], [])), list(range(20)))
        self.assertNotEqual(whole[:10], whole[10:20])

    def test_a_state_can_be_taken_before_the_first_batch(self):
        with rig.serve(kinds.pipeline("id")) as server:
            loader = self.loader(server, columns=["id"])
            loader.load_state_dict(loader.state_dict())
            self.assertEqual([ids.tolist() for (ids,) in loader], kinds.IDS)


class Errors(Torch):
    def test_an_iterator_goes_on_after_its_server_has_returned(self):
        with rig.serve(rig.pipeline("range: {stop: 8}", "batch: 2")) as server:
            batches = iter(self.loader(server, columns=["value"]))
            found = [next(batches)[0].tolist()]
            server.kill()
            server.start()
            with contextlib.suppress(StopIteration):
                while True:
                    with contextlib.suppress(tundish.ServerGone):
                        found.append(next(batches)[0].tolist())
            self.assertEqual(found, [[0, 1], [2, 3], [4, 5], [6, 7]])


class Written(Torch):
    """torch has no read-only tensors, and a batch's memory is."""

    def run_of(self, make, before="", write="x.div_(2)"):
        script = (
            f"import sys, warnings, numpy, torch, tundish\n{before}\nwarnings.simplefilter('ignore')\n"
            f"with tundish.open('train') as reader:\n    batch = [reader.next(), reader.next()][1]\n"
            f"    x = {make}\n    {write}\n    print(x.tolist())\n"
        )
        text = rig.pipeline("range: {stop: 8}", "map: {x: 'cast(value, float32)'}", "batch: 2", deliver="{}")
        with rig.serve(text) as server:
            return server.python(script, check=False)

    def test_a_write_is_named_before_the_signal_ends_the_process(self):
        line = (
            r'tundish: the program wrote to column "x" of the batch of epoch 0, step 1, which is '
            r'read-only: change a copy, as of batch\["x"\]\.copy\(\)\n'
        )
        for make in ("torch.from_dlpack(batch['x'])", "torch.from_numpy(batch.x)[1:]"):
            done = self.run_of(make)
            self.assertEqual(done.returncode, -signal.SIGSEGV, make)
            self.assertRegex(done.stderr, f"^{line}$")

    def test_the_handler_that_was_there_before_is_called_as_well(self):
        done = self.run_of("torch.from_dlpack(batch['x'])", "import faulthandler; faulthandler.enable()")
        self.assertEqual(done.returncode, -signal.SIGSEGV)
        self.assertRegex(done.stderr, r"^tundish: the program wrote to column .*\n.*Segmentation fault")

    def test_another_fault_has_its_usual_end_without_a_line(self):
        done = self.run_of("torch.zeros(1)", write="import ctypes; ctypes.string_at(8)")
        self.assertEqual((done.returncode, done.stderr), (-signal.SIGSEGV, ""))

    def test_the_older_capsules_which_cannot_say_read_only_are_copies(self):
        done = self.run_of("torch.utils.dlpack.from_dlpack(batch.array('x').__dlpack__())")
        self.assertEqual(done.stdout, "[1.0, 1.5]\n", done.stderr)


class Closing(Torch):
    def test_a_block_closes_the_reader_that_the_loader_opened(self):
        with rig.serve(kinds.pipeline("id")) as server:
            with self.loader(server, columns=["id"]) as loader:
                (first,) = next(iter(loader))
                reader = loader.reader
            self.assertTrue(reader.closed)
            self.assertEqual(first.tolist(), kinds.IDS[0])
            loader.close()
            with self.assertRaisesRegex(tundish.MisuseError, "closed"):
                iter(loader)

    def test_one_that_was_given_stays_open(self):
        from tundish.torch import DataLoader

        with rig.serve(kinds.pipeline("id")) as server, server.open("train") as reader:
            with DataLoader(reader, columns=["id"]) as loader:
                next(iter(loader))
            self.assertEqual(reader.next()["id"].tolist(), kinds.IDS[1])

    def test_one_that_was_never_opened_stays_so(self):
        from tundish.torch import DataLoader

        loader = DataLoader("train", server="/nowhere")
        loader.close()
        with self.assertRaisesRegex(tundish.MisuseError, "closed"):
            iter(loader)


class Refusals(Torch):
    def test_what_torchs_loader_does_itself_has_another_place(self):
        from tundish.torch import DataLoader

        places = {"num_workers": "--threads", "shuffle": "pipeline file", "collate_fn": "collate="}
        for option, remedy in places.items():
            with self.assertRaisesRegex(tundish.ArgumentError, f"no {option}: .*{remedy}"):
                DataLoader("train", **{option: 4})

    def test_what_a_user_of_torch_writes_first_is_answered_when_it_is_made(self):
        from tundish.torch import DataLoader

        class Rows(self.torch.utils.data.Dataset):
            pass

        answers = (
            ((3,), {}, r"takes a stream's name or a Reader, not int: .*pipeline file.*`program`"),
            ((Rows(),), {}, "Rows has no __len__"),
            (("train",), {"batch_size": 4}, "no batch_size: its place is the pipeline file"),
            (("train",), {"dataset": 4}, "no dataset: the pipeline file says what is read"),
            (("train",), {"colums": ["x"]}, "no option 'colums': did you mean 'columns'"),
            (("train",), {"sever": "x"}, "no option 'sever': did you mean 'server'"),
            (("train",), {"batchsize": 4}, "no option 'batchsize': did you mean 'batch_size'"),
            (("train",), {"pin_memory_device": "cuda"}, "no pin_memory_device: device="),
            (("train",), {"snapshot_every_n_steps": 1}, "no snapshot_every_n_steps: state_dict"),
        )
        for arguments, options, answer in answers:
            with self.assertRaisesRegex(tundish.ArgumentError, answer):
                DataLoader(*arguments, **options)
        with self.assertRaisesRegex(tundish.ArgumentError, "a stream's name, not list"):
            tundish.open([1, 2, 3])

    def test_a_pipeline_file_is_served(self):
        from tundish.torch import DataLoader

        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, "rows.yaml")
            with open(file, "w") as made:
                made.write(rig.pipeline("range: {stop: 8}", "batch: 4", deliver="{}"))
            for source in (file, pathlib.Path(file)):
                with DataLoader(source, columns=("value",)) as loader:
                    for _ in range(2):
                        self.assertEqual([rows.tolist() for (rows,) in loader], [[0, 1, 2, 3], [4, 5, 6, 7]])
                    place, other = loader.state_dict(), DataLoader(source)
                    self.assertEqual(len(other), 2)  # whose server is another
                    self.assertEqual(len(list(loader)), 2)
                    other.load_state_dict(place)
                    self.assertEqual(len(list(other)), 2)
                    socket = other.reader._kept.socket
                    self.assertTrue(os.path.exists(socket))
                    other.close()
                    self.assertFalse(os.path.exists(socket))

    def test_a_loader_of_a_file_that_is_made_anew_shuffles_anew_unless_the_file_has_a_seed(self):
        from tundish.torch import DataLoader

        def orders(file):
            for _ in range(2):
                with DataLoader(file, columns=("value",)) as loader:
                    yield [n for (rows,) in loader for n in rows.tolist()]

        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder, "rows.yaml")
            text = rig.pipeline("range: {stop: 100}", "shuffle: {buffer_size: -2}", "batch: 10", deliver="{}")
            for seed in ("", "seed: 1\n"):
                file.write_text(text.replace("seed: 1\n", seed))
                first, second = orders(file)
                self.assertEqual(sorted(first), list(range(100)))
                self.assertEqual(first == second, bool(seed))

    def test_a_missing_column_names_the_nearest(self):
        with rig.serve(kinds.pipeline("label")) as server:
            with self.assertRaisesRegex(tundish.ColumnError, "did you mean 'label'"):
                iter(self.loader(server, columns=("lable",)))

    def test_options_that_contradict_each_other(self):
        from tundish.torch import DataLoader

        with rig.serve(kinds.pipeline("x")) as server:
            with self.assertRaisesRegex(tundish.ArgumentError, "zero_copy .* pin_memory"):
                self.loader(server, zero_copy=True, pin_memory=True)
            with server.open("train", format="torch") as reader:
                with self.assertRaisesRegex(tundish.ArgumentError, "without format="):
                    DataLoader(reader)
                with self.assertRaisesRegex(tundish.ArgumentError, "open already: group"):
                    DataLoader(reader, group="other")

    def test_a_state_of_another_kind(self):
        with rig.serve(kinds.pipeline("x")) as server:
            for opened in (False, True):
                loader = self.loader(server)
                if opened:
                    iter(loader)
                with self.assertRaisesRegex(tundish.PlaceError, "state"):
                    loader.load_state_dict({"epoch": 3})
            loader.reader.close()

    def test_strings_have_no_tensor(self):
        with rig.serve(kinds.pipeline("word", "words")) as server:
            (batch, *_) = self.loader(server)
            for name in ("word", "words"):
                with self.assertRaisesRegex(TypeError, "string_lookup"):
                    batch[name].torch()
            with self.assertRaises(TypeError):
                self.torch.as_tensor(batch["word"])


class Frameworks(Torch):
    """Loops of others, where they are installed."""

    def test_accelerate_shards_nothing(self):
        accelerate = rig.needs(self, "accelerate")
        from accelerate.data_loader import DataLoaderShard

        with rig.serve(kinds.pipeline("id")) as server:
            accelerator = accelerate.Accelerator(cpu=True)
            loader = self.loader(server, columns=["id"])
            self.assertIs(accelerator.prepare(loader), loader)
            self.assertIs(accelerator.prepare_data_loader(loader), loader)
            self.assertNotIsInstance(loader, DataLoaderShard)
            self.assertEqual([ids.tolist() for (ids,) in loader], kinds.IDS)

    def test_lightning_trains_on_it_and_its_checkpoint_holds_the_place(self):
        lightning = rig.needs(self, "pytorch_lightning")
        torch = self.torch

        class Model(lightning.LightningModule):
            def __init__(self):
                super().__init__()
                self.layer = torch.nn.Linear(2, 1)
                self.seen = []

            def training_step(self, batch, _):
                x, ids = batch
                self.seen.append(ids.tolist())
                return self.layer(x).sum()

            def configure_optimizers(self):
                return torch.optim.SGD(self.parameters(), lr=0.01)

        def trainer(**limits):
            return lightning.Trainer(accelerator="cpu", logger=False, enable_checkpointing=False,
                                     enable_progress_bar=False, enable_model_summary=False, **limits)

        with rig.serve(kinds.pipeline("x", "id")) as server:
            loader = self.loader(server, columns=("x", "id"))
            model, begun = Model(), trainer(max_steps=4)
            begun.fit(model, loader)
            self.assertEqual(model.seen, kinds.IDS + kinds.IDS[:1])
            begun.save_checkpoint(server.path / "checkpoint")
            loader.reader.close()
            again = Model()
            trainer(max_steps=9).fit(again, self.loader(server, columns=("x", "id")),
                                      ckpt_path=server.path / "checkpoint", weights_only=False)
            self.assertEqual(again.seen, kinds.IDS[1:] + kinds.IDS)


if __name__ == "__main__":
    unittest.main()
