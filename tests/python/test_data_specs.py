"""What a program is told of each function's result is what the server makes of it, and TensorFlow.

Each function of the table in TF_DATA.md runs once, in rows and where it can in batches."""

import importlib.util
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

import rig
import tundish
from tundish import tf, tft
from tundish.data import Dataset, nest
from tundish.data.lowering import RULES
from tundish.data.lowering.rule import Refusal

GREY = [[[i * 10 + j + k for k in range(1)] for j in range(5)] for i in range(6)]
ROWS = {
    "x": [[[1.5, -2.0, 3.0, 0.5]] * 3, [[0.25, 4.0, -1.0, 2.0]] * 3],
    "v": [[0.5, -1.0, 2.0, 3.5], [1.0, 0.0, -0.5, 4.0]],
    "f": [0.5, 1.5],
    "n": [1, 2],
    "i": [[3, 1, 2], [0, 2, 1]],
    "b": [[True, False], [True, True]],
    "s": ["a b", "c"],
    "w": [["12", "7"], ["1", "0"]],
    "code": ["aGk", "aGlp"],
    "raw": ["\x01\x00\x02\x00\x03\x00\x04\x00"] * 2,
    "line": ["1,2.5,x", "3,4.5,y"],
    "empty": ["", ""],
    "grey": [GREY, GREY],
    "image": [[[[7.0, 8.0, 9.0]] * 5] * 6] * 2,
    "sound": [[float(i % 7) for i in range(64)]] * 2,
}
UNARY = "abs sign sqrt exp floor round sin cos tanh sigmoid square negative identity zeros_like ones_like".split()
BINARY = "add subtract multiply divide truediv maximum minimum pow".split()
TRUTH = "less less_equal greater greater_equal equal not_equal".split()
# Of a row `r` with these columns.
SAMPLES = {
    **{f"tf.{name}": f"tf.{name}(r['x'])" for name in UNARY},
    **{f"tf.{name}": f"tf.{name}(r['x'], r['v'])" for name in (*BINARY, *TRUTH)},
    **{f"tf.math.{name}": f"tf.math.{name}(r['v'])"
       for name in "log log1p expm1 ceil is_nan is_finite is_inf".split()},
    **{f"tf.math.{name}": f"tf.math.{name}(r['x'], r['f'])"
       for name in "divide_no_nan squared_difference floordiv floormod".split()},
    **{f"tf.reduce_{name}": f"tf.reduce_{name}(r['x'], axis=-1)" for name in "sum mean min max".split()},
    **{f"tf.reduce_{name}": f"tf.reduce_{name}(r['b'], axis=0, keepdims=True)" for name in ("any", "all")},
    "tf.math.reduce_std": "tf.math.reduce_std(r['x'], axis=0)",
    "tf.math.reduce_variance": "tf.math.reduce_variance(r['x'], axis=-1, keepdims=True)",
    "tf.pad": "tf.pad(r['x'], [[0, 1], [0, 2]])",
    "tf.roll": "tf.roll(r['x'], 1, axis=1)",
    "tf.sequence_mask": "tf.sequence_mask(r['n'], 5)",
    "tf.strings.reduce_join": "tf.strings.reduce_join(r['w'], separator='-')",
    "tf.image.per_image_standardization": "tf.image.per_image_standardization(r['image'])",
    "tf.nn.tanh": "tf.nn.tanh(r['v'])",
    "tf.nn.sigmoid": "tf.nn.sigmoid(r['v'])",
    "tf.logical_and": "tf.logical_and(r['b'], r['n'] > 1)",
    "tf.logical_or": "tf.logical_or(r['b'], r['b'])",
    "tf.logical_not": "tf.logical_not(r['b'])",
    "tf.math.logical_xor": "tf.math.logical_xor(r['b'], r['b'])",
    "tf.argmax": "tf.argmax(r['x'], axis=1)",
    "tf.cast": "tf.cast(r['x'], tf.int64)",
    "tf.clip_by_value": "tf.clip_by_value(r['x'], -1.0, r['f'])",
    "tf.where": "tf.where(r['x'] > 0, r['x'], 0.0)",
    "tf.cond": "tf.cond(r['n'] > 1, lambda: r['f'] * 2, lambda: r['f'])",
    "tf.constant": "tf.constant([[1, 2], [3, 4]], tf.int64)",
    "tf.zeros": "tf.zeros([2, 3])",
    "tf.ones": "tf.ones([2], tf.int32)",
    "tf.fill": "tf.fill([2, 2], 7)",
    "tf.range": "tf.range(1, 9, 3)",
    "tf.concat": "tf.concat([r['x'], r['x'] * 2], axis=1)",
    "tf.stack": "tf.stack([r['v'], r['v'] + 1], axis=-1)",
    "tf.unstack": "tf.unstack(r['x'], axis=1)[2]",
    "tf.split": "tf.split(r['x'], [1, 2])[1]",
    "tf.slice": "tf.slice(r['x'], [1, 0], [2, -1])",
    "tf.strided_slice": "r['x'][1:, ::-2]",
    "tf.gather": "tf.gather(r['x'], 2, axis=1)",
    "tf.expand_dims": "tf.expand_dims(r['x'], -2)",
    "tf.squeeze": "tf.squeeze(r['grey'], axis=-1)",
    "tf.reshape": "tf.reshape(r['x'], [2, -1])",
    "tf.reverse": "tf.reverse(r['x'], [1])",
    "tf.transpose": "tf.transpose(r['x'])",
    "tf.tile": "tf.tile(r['v'][:, tf.newaxis], [1, 3])",
    "tf.repeat": "tf.repeat(r['x'], 2, axis=-1)",
    "tf.broadcast_to": "tf.broadcast_to(r['v'], [3, 4])",
    "tf.shape": "tf.shape(r['x'])[0]",
    "tf.size": "tf.size(r['v'])",
    "tf.ensure_shape": "tf.ensure_shape(r['x'], [3, 4])",
    "tf.one_hot": "tf.one_hot(r['i'], 5)",
    "tf.random.stateless_uniform": "tf.random.stateless_uniform([3], [r['n'], 7])",
    "tf.strings.as_string": "tf.strings.as_string(r['i'])",
    "tf.strings.join": "tf.strings.join([r['s'], '-', r['w']])",
    "tf.strings.length": "tf.strings.length(r['w'])",
    "tf.strings.lower": "tf.strings.lower(r['w'])",
    "tf.strings.upper": "tf.strings.upper(r['s'])",
    "tf.strings.strip": "tf.strings.strip(r['s'])",
    "tf.strings.substr": "tf.strings.substr(r['w'], 0, 1)",
    "tf.strings.split": "tf.strings.split(r['w'], '2')",
    "tf.strings.ngrams": "tf.strings.ngrams(r['w'], 2)",
    "tf.strings.regex_replace": "tf.strings.regex_replace(r['w'], '2', 'x')",
    "tf.strings.regex_full_match": "tf.strings.regex_full_match(r['w'], '.2')",
    "tf.strings.unicode_split": "tf.strings.unicode_split(r['s'], 'UTF-8')",
    "tf.strings.to_number": "tf.strings.to_number(r['w'], tf.int64)",
    "tf.strings.to_hash_bucket_fast": "tf.strings.to_hash_bucket_fast(r['w'], 9)",
    "tf.strings.to_hash_bucket_strong": "tf.strings.to_hash_bucket_strong(r['w'], 9, [1, 2])",
    "tf.io.decode_base64": "tf.io.decode_base64(r['code'])",
    "tf.io.decode_compressed": "tf.io.decode_compressed(r['w'])",
    "tf.io.decode_csv": "tf.io.decode_csv(r['line'], [[0], tf.constant([], tf.float64), ['']])[1]",
    "tf.io.decode_raw": "tf.io.decode_raw(r['raw'], tf.int16)",
    "tf.io.parse_single_example": "tf.io.parse_single_example(r['empty'], {"
    "'a': tf.io.FixedLenFeature([2], tf.int64, [1, 2]), 'b': tf.io.VarLenFeature(tf.string),"
    " 'c': tf.io.FixedLenSequenceFeature([3], tf.float32, True), 'd': tf.io.RaggedFeature(tf.int64)})",
    "tf.io.read_file": "tf.io.read_file(r['s'])",
    "tf.io.decode_image": "tf.io.decode_image(r['s'], 3, expand_animations=False)",
    "tf.io.decode_jpeg": "tf.io.decode_jpeg(r['s'], channels=3)",
    "tf.io.decode_png": "tf.io.decode_png(r['s'], 1)",
    "tf.audio.decode_wav": "tf.audio.decode_wav(r['s'], 1, 16)",
    "tf.signal.stft": "tf.abs(tf.signal.stft(r['sound'], 16, 8))",
    "tf.image.resize": "tf.image.resize(r['image'], [3, 4])",
    "tf.image.adjust_brightness": "tf.image.adjust_brightness(r['image'], 0.25)",
    "tf.image.central_crop": "tf.image.central_crop(r['image'], 0.5)",
    "tf.image.convert_image_dtype": "tf.image.convert_image_dtype(tf.cast(r['grey'], tf.uint8), tf.float32)",
    "tf.image.crop_to_bounding_box": "tf.image.crop_to_bounding_box(r['image'], 1, 0, 2, 3)",
    "tf.image.flip_left_right": "tf.image.flip_left_right(r['image'])",
    "tf.image.flip_up_down": "tf.image.flip_up_down(r['image'])",
    "tf.image.rot90": "tf.image.rot90(r['image'])",
    "tf.image.pad_to_bounding_box": "tf.image.pad_to_bounding_box(r['image'], 1, 2, 9, 8)",
    "tf.image.resize_with_crop_or_pad": "tf.image.resize_with_crop_or_pad(r['image'], 4, 9)",
    "tf.image.grayscale_to_rgb": "tf.image.grayscale_to_rgb(r['grey'])",
    **{f"tf.image.stateless_random_{name}": f"tf.image.stateless_random_{name}(r['image'], seed=[1, 2])"
       for name in ("flip_left_right", "flip_up_down")},
    "tf.image.stateless_random_brightness": "tf.image.stateless_random_brightness(r['image'], 0.1, seed=[1, 2])",
    "tf.RaggedTensor.from_sparse": "tf.RaggedTensor.from_sparse(tf.sparse.from_dense(r['x']))",
    "tf.RaggedTensor.from_tensor": "tf.RaggedTensor.from_tensor(r['x'], padding=0.5)",
    "tf.RaggedTensor.to_sparse": "tf.strings.split(r['w'], '2').to_sparse()",
    "tf.RaggedTensor.to_tensor": "tf.strings.split(r['w'], '2').to_tensor('?')",
    "tf.sparse.from_dense": "tf.sparse.from_dense(r['x'])",
    "tf.sparse.to_dense": "tf.sparse.to_dense(tf.sparse.from_dense(r['x']))",
    "tf.lookup.StaticHashTable.lookup": "tf.lookup.StaticHashTable("
    "tf.lookup.KeyValueTensorInitializer(['7', '12'], [5, 6]), -1).lookup(r['w'])",
    "tf.lookup.StaticVocabularyTable.lookup": "tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer("
    "['7', '12'], [0, 1], value_dtype=tf.int64), 2).lookup(r['w'])",
    **{f"tf.keras.layers.{name}": (f"tf.keras.layers.{name}({parameters})", value) for name, parameters, value in (
        ("CategoryEncoding", "5, output_mode='multi_hot'", "r['i']"),
        ("CenterCrop", "2, 3", "r['image']"),
        ("Discretization", "[0.0, 1.0]", "r['v']"),
        ("Hashing", "7", "r['w']"),
        ("HashedCrossing", "7", "(r['s'], r['n'])"),
        ("IntegerLookup", "vocabulary=[1, 2]", "r['i']"),
        ("MelSpectrogram", "fft_length=16, sequence_stride=8, num_mel_bins=4, sampling_rate=100, max_freq=50", "r['sound']"),
        ("Normalization", "mean=[1.0, 2.0, 3.0, 4.0], variance=[1.0, 1.0, 1.0, 1.0]", "r['x']"),
        ("RandomBrightness", "0.1, seed=1", "r['image']"),
        ("RandomContrast", "0.1, seed=1", "r['image']"),
        ("RandomCrop", "2, 3, seed=1", "r['image']"),
        ("RandomFlip", "seed=1", "r['image']"),
        ("RandomRotation", "0.1, seed=1", "r['image']"),
        ("RandomTranslation", "0.1, 0.1, seed=1", "r['image']"),
        ("RandomZoom", "0.1, seed=1", "r['image']"),
        ("Rescaling", "0.5", "r['i']"),
        ("Resizing", "3, 2", "r['image']"),
        ("StringLookup", "vocabulary=['7']", "r['w']"),
        ("TextVectorization", "vocabulary=['a'], output_sequence_length=4", "r['s']"),
    )},
    **{f"tft.{name}": f"tft.{name}(r['v'])" for name in (
        "scale_by_min_max", "scale_to_0_1", "scale_to_gaussian", "scale_to_z_score")},
    **{f"tft.{name}": f"tft.{name}(r['v'][0], r['s'])" for name in (
        "scale_by_min_max_per_key", "scale_to_0_1_per_key", "scale_to_z_score_per_key")},
    "tft.bucketize": "tft.bucketize(r['v'], 3)",
    "tft.hash_strings": "tft.hash_strings(r['w'], 9)",
    "tft.compute_and_apply_vocabulary": "tft.compute_and_apply_vocabulary(r['w'])",
    "tft.sparse_tensor_to_dense_with_shape":
        "tft.sparse_tensor_to_dense_with_shape(tf.sparse.from_dense(r['x']), [None, 4], 0.5)",
}  # fmt: skip
SPARSE = "sparse(r['s'])"
# What batches have: the same of the parts that rows have none of.
BATCHES = {
    "tf.io.parse_example": SAMPLES["tf.io.parse_single_example"].replace("_single", ""),
    "tf.reduce_max": "tf.reduce_max(r['x'], axis=[0, 2])",
    "tf.keras.layers.TextVectorization": ("tf.keras.layers.TextVectorization(vocabulary=['a'])", "r['s']"),
    "tf.strings.split": "tf.strings.split(r['s'])",
    "tf.image.resize": "tf.image.resize(r['image'], [3, 4], antialias=True)",
    "tf.one_hot": "tf.one_hot(r['n'], 5)",
    "tf.concat": "tf.concat([r['x'], r['x'] * 2], axis=0)",
    "tf.stack": "tf.stack([r['n'], r['n'] + 1])",
    "tf.strings.unicode_split": "tf.strings.unicode_split(r['w'], 'UTF-8')",
    "tf.strings.ngrams": "tf.strings.ngrams(tf.strings.split(r['s']), 2)",
    "tf.reshape": "tf.reshape(r['x'], [-1, 12])",
    **{name: f"tf.sparse.to_dense(tf.SparseTensor({SPARSE}.indices, {SPARSE}.values,"
             f" [{SPARSE}.dense_shape[0], 3]), '-')"
       for name in ("tf.SparseTensor", *(f"tf.SparseTensor.{part}" for part in ("indices", "values", "dense_shape")))},
    "tft.vocabulary": "tft.apply_vocabulary(r['w'], tft.vocabulary(r['w']))",
    "tft.apply_vocabulary": "tft.apply_vocabulary(r['s'], tft.vocabulary(r['s']))",
    "tft.quantiles": "tft.apply_buckets(r['v'], tft.quantiles(r['v'], 3, 0.01))",
    "tft.apply_buckets": "tft.apply_buckets(r['v'], [[0.5, 1.5]])",
    "tft.bucketize_per_key": "tft.bucketize_per_key(r['f'], r['s'], 2)",
    "tft.ngrams": f"tft.ngrams({SPARSE}, (2, 2), ' ')",
    "tft.bag_of_words": f"tft.bag_of_words({SPARSE}, (1, 2), ' ')",
    "tft.word_count": f"tft.word_count({SPARSE})",
    "tft.tfidf": f"tft.tfidf(tft.compute_and_apply_vocabulary({SPARSE}), 5)[1]",
}
HAS_TENSORFLOW = importlib.util.find_spec("tensorflow") is not None


def known(program):
    """What the program is told: a list of (dtype, shape, kind)."""
    leaves = nest.flatten(program.element_spec)
    return [(leaf.dtype, None if leaf.shape is None else list(leaf.shape), leaf.kind) for leaf in leaves]


def planned(program, folder, learns):
    """What the server says."""
    path = Path(folder, "pipeline.yaml")
    tundish.data.save(path, train=program)
    if learns:  # or it has nothing to learn, and says so
        subprocess.run([rig.TUNDISH, "analyze", str(path)], check=False, capture_output=True)
    columns = {each["name"]: each for each in tundish.plan(path)["element_spec"]}
    fields = nest.flatten(program.node.structure)
    own = [columns[field.name.text] for field in fields]
    return [(each["dtype"], each["shape"], each["kind"]) for each in own]


def agree(one, other):
    """Whether two say nothing that contradicts: what is not known is None."""
    if len(one) != len(other):
        return False
    for (dtype, shape, kind), (other_dtype, other_shape, other_kind) in zip(one, other):
        if None not in (dtype, other_dtype) and dtype != other_dtype:
            return False
        if shape is None or other_shape is None:
            continue
        if len(shape) != len(other_shape) or kind != other_kind:
            return False
        if any(None not in pair and pair[0] != pair[1] for pair in zip(shape, other_shape)):
            return False
    return True


def of_tensorflow(program):
    """The same of TensorFlow."""
    import tensorflow

    found = []
    for spec in tensorflow.nest.flatten(program.element_spec):
        kind = "dense"
        if isinstance(spec, tensorflow.RaggedTensorSpec):
            kind = "ragged"
        if isinstance(spec, tensorflow.SparseTensorSpec):
            kind = "sparse"
        found.append((spec.dtype.name, None if spec.shape.rank is None else spec.shape.as_list(), kind))
    return found


def built(maker, of, text, is_batched, transform=None):
    rows = maker.from_tensor_slices(ROWS)
    rows = rows.batch(2, drop_remainder=True) if is_batched else rows
    names = {"tf": of, "tft": transform}
    made = {}  # one object for a column, as in a program that keeps it in a variable
    names["sparse"] = lambda s: made.setdefault(id(s), of.strings.split(s).to_sparse())
    if isinstance(text, tuple):  # a layer is made once, and called in the function
        layer, text = eval(text[0], names), f"layer({text[1]})"
        names["layer"] = layer
    return rows.map(eval(f"lambda r: {text}", names))


class Specs(unittest.TestCase):
    def check(self, samples, is_batched):
        for name, text in samples.items():
            with self.subTest(name, text=text), tempfile.TemporaryDirectory() as folder:
                program = built(Dataset, tf, text, is_batched, tft)
                told, made = known(program), planned(program, folder, name.startswith("tft."))
                self.assertTrue(agree(told, made), f"told {told}, made {made}")
                if HAS_TENSORFLOW and not name.startswith("tft."):
                    import tensorflow

                    theirs = of_tensorflow(built(tensorflow.data.Dataset, tensorflow, text, is_batched))
                    self.assertTrue(agree(told, theirs), f"told {told}, TensorFlow {theirs}")
                    self.assertTrue(agree(made, theirs), f"made {made}, TensorFlow {theirs}")

    def setUp(self):
        rig.needs(self, "numpy")
        os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

    def test_of_rows(self):
        self.check(SAMPLES, False)

    def test_of_batches(self):
        self.check(BATCHES, True)

    def test_each_entry_of_the_table_is_there(self):
        sampled = {*SAMPLES, *BATCHES}
        names = {name for name, rule in RULES.items() if not isinstance(rule, Refusal)}
        names = {name for name in names if not name.startswith("tundish.")}
        self.assertEqual(sorted(names - sampled), [], "give each a line in SAMPLES or BATCHES")
        self.assertEqual(sorted(sampled - names), [], "the table has none of these")


if __name__ == "__main__":
    unittest.main()
