"""Each program is ported: its batches are TensorFlow's, or the list of what is not carried over is right."""

import importlib.util
import unittest

import rig

# FILE:FUNCTION
COMPLETE = """
audio:waveforms audio:spectrograms augmentation:stateless captcha:make cifar:make
bert:make bert:distributed character_model:make data_guide:simple data_guide:tensors data_guide:repeated
data_guide:filtered data_guide:unseeded data_guide:as_long_as_it_is data_guide:names_of_files data_guide:in_a_list data_windows:dense_steps data_windows:windows dlrm:make dlrm:stacked fonts_csv:make
guide_input:make_dataset guide_input:distributed guide_input:from_function hashing:make
image_classification:make imbalanced:sampled imbalanced:chosen load_images:images_only load_images:make
melanoma:make mnist:make mnist:with_channel penguin:input_fn ranking:parsed ranking:buckets
ranking:ragged ranking:grouped retinanet:make subword:characters subword:words subword:lengths
taxi_reader:make taxi_reader:batched_features taxi_reader:parsed_batches text_classification:reviews text_classification:make text_classification:rarities text_files:labeled text_files:make
titanic_csv:make translation:make traps:loop_variable traps:popping traps:counting traps:reassigned
traps:closes_over_tensor vocabulary_tables:layer cifar:vectors vocabulary_tables:lines vocabulary_tables:table
vocabulary_tables:pairs traps:branches imbalanced:rows structures:negated structures:filtered structures:chosen
structures:lists structures:nested_lists structures:one_sampled structures:sampled structures:sampled_unseeded
structures:negated_and_used structures:negated_condition structures:grouped
keras_folders:image_split keras_folders:image_both keras_folders:image_unlabeled keras_folders:image_nearest
keras_folders:image_given keras_folders:image_augmented keras_folders:text_split keras_folders:text_binary
keras_folders:text_vectorized keras_folders:windows keras_folders:windows_shuffled keras_folders:windows_split
keras_folders:windows_within speaker:paths folders_gan:dcgan folders_gan:celeba folders_gan:vq_vae folders_gan:wgan
folders_gan:cyclegan folders_gan:pix2pix_whole segmentation:make segmentation:deeplab segmentation:tutorial
captioning:make captioning:translation captioning:masked_language_model captioning:sentiment
recommender:lookups
recommender:sequences structured:many_means structured:quantiles structured:census csv_guide:labeled csv_guide:selected
csv_guide:shuffled csv_guide:endless csv_guide:lines csv_guide:lines_of_each csv_guide:survived csv_guide:records
csv_guide:columns pipelines_guide:batched_pairs pipelines_guide:epochs pipelines_guide:shuffled_after_repeat
pipelines_guide:enumerated pipelines_guide:images_of_folders pipelines_guide:horizons
pipelines_guide:windows_of_labels pipelines_guide:vectorized pipelines_guide:cached pipelines_guide:interleaved
pipelines_guide:numpy_images pipelines_guide:detection pipelines_guide:speech pipelines_guide:frames
text_classification:callable_standardize
choices:cond_of_numbers choices:cond_of_constants choices:cond_of_texts choices:cond_of_vectors
choices:cond_of_pairs choices:cond_of_a_list choices:cond_of_a_plain_number choices:cond_of_functions
choices:nested_conds choices:elif_of_constants choices:elif_of_columns choices:elif_of_texts choices:filtered
outer:operators outer:texts outer:compared outer:indexed outer:twice_nested
everyday:stacked_with_a_number everyday:seeds_of_a_counter everyday:concatenated_with_numbers
everyday:concatenated_with_itself everyday:required_texts everyday:own_standardize everyday:own_standardize_of_rows
everyday:normalized_scalars everyday:normalized_scalars_by_a_table everyday:normalized_by_numbers
everyday:largest_as_int32 everyday:shapes_as_int64 everyday:known_shapes_as_int64 everyday:windows_in_batches
everyday:windows_in_whole_batches everyday:windows_of_own_sizes everyday:checked everyday:series everyday:frame
replicas:ragged replicas:ragged_in_a_dictionary replicas:ragged_terms replicas:ragged_features
replicas:sparse_features replicas:sparse_of_ragged
fused:mapped fused:mapped_whole fused:shuffled fused:shuffled_by_the_programs_seed fused:interleaved fused:sloppy
csv_guide:in_parallel
""".split()
# They need pandas.
FRAMES = ("everyday:frame_of_pandas", "everyday:numbers_of_pandas")
# By program: each line of the list, and what stands there.
LISTED = {
    "augmentation:brightness": [(15, "tf.image.random_brightness")],
    "imbalanced:resampled": [(29, "Dataset.rejection_resample")],
    "refused:generator": [(9, "Dataset.from_generator")],
    "refused:functions": [(13, "tf.py_function"), (14, "tf.numpy_function")],
    "refused:stateful": [(19, "operation AssignAddVariableOp")],
    "refused:variable": [(23, "tf.math.add of the variable Variable:0")],
    "refused:random": [(27, "tf.random.uniform")],
    "refused:loop": [(33, "a Python loop over a column")],
    "refused:many": [(42, "Dataset.scan"), (43, "tf.py_function"), (44, "Dataset.unique")],
    "refused:unseen": [(48, "_AssertCardinalityDataset")],
    "refused:sliced_lists": [(54, "stage map")],
    "fused:interleaved_blocks": [(37, "Dataset.parallel_interleave")],
    "refused:padded_too_far": [(85, "tf.pad")],
    "refused:joined_matrices": [(89, "tf.strings.reduce_join")],
    "folders_gan:jittered": [(78, "tf.image.random_crop"), (79, "tf.cond"), (79, "tf.random.uniform")],
    "folders_gan:pix2pix": [(57, "tf.strided_slice")],
    "keras_folders:image_named": [(9, "tf.strided_slice")],
    "pipelines_guide:generated": [(85, "Dataset.from_generator")],
    "structured:feature_space": [(35, "tf.keras.utils.FeatureSpace")],
    "structures:sampled_anew": [(55, "Dataset.sample_from_datasets")],
    "structures:sampled_doubles": [(50, "Dataset.sample_from_datasets")],
    "choices:divided": [(101, "tf.cond")],
    "refused:followed": [(63, "tf.pad")],
    "refused:reduced": [(73, "Dataset.reduce")],
    "refused:ragged_slices": [(94, "Dataset.from_tensor_slices")],
    "refused:ignoring": [(78, "Dataset.ignore_errors")],
}
FAILING = {
    "raises": r"failing.py:6: ValueError: no data today",
    "trains": r"failing.py:17: the program trains \(fit\)",
    "needs_gpu": r"failing.py:23: RuntimeError: this program needs a GPU",
    "exits": r"failing.py:27: SystemExit: 3",
    "no_dataset": r"no_dataset gives int, not a tf.data.Dataset",
}


class Programs(rig.PortTest):
    def complete(self, target):
        ported = self.port(_path(target), compares=True)
        self.assertEqual(ported.problems, [])
        for checked in self.check(ported):
            self.assertFalse(checked.failed, f"{checked.lines}\n{ported.compared}")
            if "within" not in checked.lines[0]:
                self.assertRegex(checked.lines[0], r"to the bit$|compared as sets|not compared: |^[23] workers of .*: neither gives ")

    @unittest.skipUnless(importlib.util.find_spec("pandas"), "needs pandas")
    def test_frames_of_pandas(self):
        for target in FRAMES:
            with self.subTest(target):
                self.complete(target)

    def test_asserts_and_prints_are_notes(self):
        notes = self.port("everyday.py:checked").notes
        self.assertEqual(len(notes), 3)
        self.assertIn("tf.debugging.assert_greater is left out: a row for which it is false", notes[0])
        self.assertIn("tf.print is left out", notes[1])

    def listed(self, target, expected):
        ported = self.port(_path(target))
        self.assertEqual(ported.text, "")
        found = sorted({(tuple(each.origin)[1], each.name.partition(" (")[0]) for each in ported.problems})
        self.assertEqual(found, expected)

    def test_ragged_slices_are_refused_by_their_name(self):
        (problem,) = self.port("refused.py:ragged_slices").problems
        self.assertEqual(problem.why, "tensors['lists'] is a ragged or sparse tensor made outside of the function")
        self.assertEqual(problem.remedy, "read its rows from a file, as lists")

    def test_what_fails_is_told_with_its_line(self):
        from tundish.port import program

        for function, said in FAILING.items():
            with self.subTest(function), self.assertRaisesRegex(program.ProgramFailed, said):
                self.port(f"failing.py:{function}")


class Streams(rig.PortTest):
    def test_streams_are_named_as_the_function_names_its_datasets(self):
        ported = self.port("image_classification.py:make")
        self.assertEqual([each.name for each in ported.streams], ["train", "val"])
        ported = self.port("text_files.py:make")
        self.assertEqual([each.name for each in ported.streams], ["train", "validation"])

    def test_arguments_reach_the_function(self):
        self.assertIn("batch: 7", self.port("pets.py:read", "7").text)
        self.assertIn("batch_size: 3,", self.port("bert.py:make", "batch_size=3").text)

    def test_the_context_of_a_distributed_dataset_stays_a_variable(self):
        text = self.port("guide_input.py:from_function").text
        self.assertIn("shard: {num_shards: $num_input_pipelines, index: $input_pipeline_id}", text)
        self.assertIn("batch: $per_replica_batch_size(8)", text)
        self.assertIn("distribute: {from_function: true}", text)

    def test_without_a_seed_the_file_has_none_and_the_comparison_has(self):
        ported = self.port("data_guide.py:unseeded", compares=True)
        self.assertNotIn("seed", ported.text)
        self.assertIn("shuffle: {buffer_size: 10, seed: 2}", ported.compared)


def _path(target):
    return target.replace(":", ".py:")


def _add_tests():
    for target in COMPLETE:
        name = target.replace(":", "_")
        setattr(Programs, f"test_complete_{name}", lambda self, target=target: self.complete(target))
    for target, expected in LISTED.items():
        name = target.replace(":", "_")
        setattr(
            Programs, f"test_listed_{name}", lambda self, t=target, e=expected: self.listed(t, e)
        )


_add_tests()

if __name__ == "__main__":
    unittest.main()
