/* test_check_stage.c - the forms a stage may be written in, and its arguments. */
#include "spec_fixture.h"

#include "spec/stages.h"
#include "unit/test_file.h"

static void
a_scalar_is_short_for_the_first_parameter(void **state)
{
    struct spec_file *file =
        parse(STREAM_OF("range: 5", "shuffle: 100", "batch: 4096", "take: -1"));

    (void)state;
    assert_int_equal(spec_int(stage_of(file, 0), "stop"), 5);
    assert_int_equal(spec_int(stage_of(file, 1), "buffer_size"), 100);
    assert_true(spec_given(stage_of(file, 1), "buffer_size"));
    assert_int_equal(spec_int(stage_of(file, 2), "batch_size"), 4096);
    assert_int_equal(spec_int(stage_of(file, 3), "count"), -1);
    spec_close(file);
}

static void
names_and_expressions_hold_no_nul(void **state)
{
    (void)state;
    assert_error_has(STREAM_OF("tfrecord: \"a\\0b\""), "filenames of tfrecord holds a NUL");
    assert_error_has(STREAM_OF("tfrecord: [a, \"a\\0b\"]"), "holds a NUL");
    assert_error_has(STREAM_OF("range: 5", "drop: \"value\\0\""), "columns of drop holds a NUL");
    assert_error_has(STREAM_OF("range: 5", "map: {value: \"value\\0 + 1\"}"), "holds a NUL");
    assert_error_has(STREAM_OF("range: 5", "filter: !!binary \"dgB2\""), "holds a NUL");
}

static void
what_is_not_written_takes_its_default(void **state)
{
    struct spec_file *file = parse(STREAM_OF("range: 5", "shuffle: {buffer_size: 2}", "repeat"));
    const struct spec_stage *shuffle = stage_of(file, 1);

    (void)state;
    assert_true(spec_bool(shuffle, "reshuffle_each_iteration"));
    assert_false(spec_given(shuffle, "reshuffle_each_iteration"));
    assert_null(spec_get(shuffle, "seed"));
    assert_int_equal(spec_int(stage_of(file, 2), "count"), -1);
    assert_true(spec_dtype(stage_of(file, 0), "output_type") == TUNDISH_INT64);
    assert_string_equal(spec_text(stage_of(file, 0), "name"), "value");
    spec_close(file);
}

static void
null_is_the_same_as_leaving_out_unless_it_means_something(void **state)
{
    struct spec_file *file =
        parse(STREAM_OF("range: 5",
                        "shuffle: {buffer_size: 2, seed: null, "
                        "reshuffle_each_iteration: null}",
                        "normalization: {axis: null, mean: 1, variance: 1.5}"));

    (void)state;
    assert_null(spec_get(stage_of(file, 1), "seed"));
    assert_true(spec_bool(stage_of(file, 1), "reshuffle_each_iteration"));
    assert_false(spec_given(stage_of(file, 1), "reshuffle_each_iteration"));
    assert_int_equal(spec_get(stage_of(file, 2), "axis")->kind, SPEC_NULL);
    assert_true(spec_number(stage_of(file, 2), "mean") == 1.0);
    assert_true(spec_number(stage_of(file, 2), "variance") == 1.5);
    spec_close(file);
    assert_error_has(STREAM_OF("range: 5", "batch: {batch_size: 5, drop_remainder: null}"),
                     "true or false, not null");
}

static void
range_takes_a_number_a_list_or_a_mapping(void **state)
{
    struct spec_file *file = parse(STREAM_OF("range: [1, 9, 2]"));

    (void)state;
    assert_int_equal(spec_int(stage_of(file, 0), "start"), 1);
    assert_int_equal(spec_int(stage_of(file, 0), "stop"), 9);
    assert_int_equal(spec_int(stage_of(file, 0), "step"), 2);
    spec_close(file);
    file = parse(STREAM_OF("range: [2, 3]"));
    assert_int_equal(spec_int(stage_of(file, 0), "start"), 2);
    assert_int_equal(spec_int(stage_of(file, 0), "step"), 1);
    spec_close(file);
    file = parse(STREAM_OF("range: [7]"));
    assert_int_equal(spec_int(stage_of(file, 0), "stop"), 7);
    spec_close(file);
    file = parse(STREAM_OF("range: {stop: 3, output_type: int32, name: x}"));
    assert_string_equal(spec_text(stage_of(file, 0), "name"), "x");
    spec_close(file);
    assert_errors(STREAM_OF("range: [1, 2, 3, 4]"),
                  "4:16: range takes [stop], [start, stop] or [start, stop, step], not 4 values\n");
    assert_errors(STREAM_OF("range: [1, 2, 0]"), "4:23: step of range must not be 0\n");
    assert_errors(STREAM_OF("range: [1, x]"),
                  "4:20: stop of range must be an integer, not \"x\"\n");
}

static void
paths_are_one_or_a_list(void **state)
{
    struct spec_file *file = parse(STREAM_OF("list_files: [a, b]"));

    (void)state;
    assert_int_equal(spec_get(stage_of(file, 0), "file_pattern")->count, 2);
    spec_close(file);
    file = parse(STREAM_OF("tfrecord: {filenames: a, compression_type: GZIP}"));
    assert_string_equal(spec_text(stage_of(file, 0), "filenames"), "a");
    spec_close(file);
    assert_error_has(STREAM_OF("tfrecord: [a, 5]"), "quote it if it is a text");
}

static void
a_whole_mapping_is_the_parameter_itself(void **state)
{
    struct spec_file *file =
        parse(STREAM_OF("from_tensor_slices: {columns: [1, 2], x: {values: [a], dtype: string}}",
                        "map: {columns: x + 1, y: 5, z: $x, w: true}", "rename: {x: y}"));
    const struct spec_value *map = spec_get(stage_of(file, 1), "expressions");

    (void)state;
    assert_int_equal(spec_get(stage_of(file, 0), "tensors")->count, 2);
    for (uint32_t i = 0; i < map->count; i++)
        assert_int_equal(map->items[i].kind, SPEC_TEXT);
    assert_string_equal(spec_map_get(map, "columns")->text, "x + 1");
    assert_string_equal(spec_map_get(map, "y")->text, "5");
    assert_string_equal(spec_map_get(map, "z")->text, "$x");
    assert_int_equal(spec_map_get(map, "z")->text_bytes, 2);
    assert_string_equal(spec_map_get(map, "w")->text, "true");
    assert_string_equal(spec_map_get(spec_get(stage_of(file, 2), "names"), "x")->text, "y");
    spec_close(file);
    assert_error_has(STREAM_OF("range: 5", "map: x"), "a mapping from columns to expressions");
    assert_error_has(STREAM_OF("range: 5", "map"), "map needs expressions");
    assert_error_has(STREAM_OF("range: 5", "map: {x: [1, 2]}"), "a vector is quoted");
    assert_error_has(STREAM_OF("range: 5", "rename: {x: 5}"), "quote it");
}

static void
a_filter_is_an_expression_whatever_yaml_makes_of_it(void **state)
{
    struct spec_file *file = parse(STREAM_OF("range: 5", "filter: value > 3", "filter: true"));

    (void)state;
    assert_string_equal(spec_text(stage_of(file, 1), "predicate"), "value > 3");
    assert_string_equal(spec_text(stage_of(file, 2), "predicate"), "true");
    spec_close(file);
}

static void
content_stages_need_a_mapping_unless_listed(void **state)
{
    (void)state;
    spec_close(parse(STREAM_OF("range: 5", "cast: int32", "one_hot: 5", "reshape: [5]",
                               "select: C*", "drop: [a, b]", "decode_raw: uint8")));
    assert_errors(STREAM_OF("range: 5", "string_lookup: vocab.txt"),
                  "5:24: string_lookup has no short form: expected a mapping of its parameters, as "
                  "{max_tokens: ...}, not \"vocab.txt\"\n");
    assert_error_has(STREAM_OF("range: 5", "unbatch: 5"), "unbatch has no short form");
}

static void
unknown_names_bring_the_nearest(void **state)
{
    (void)state;
    assert_errors(STREAM_OF("range: 5", "shufle: 5", "batch: {batchsize: 5}", "scan: x", "xyzzy"),
                  "5:9: there is no stage \"shufle\"; did you mean shuffle?\n"
                  "6:17: batch has no \"batchsize\"; did you mean batch_size?\n"
                  "7:9: scan is not supported\n"
                  "8:9: there is no stage \"xyzzy\"; `tundish help stages` lists them\n");
    assert_error_has(STREAM_OF("range: 5", "hashing: {num_bins: 3, output_mode: tf_idf}"),
                     "output_mode of hashing must be int, one_hot, multi_hot or count, not "
                     "\"tf_idf\"");
    assert_error_has(STREAM_OF("range: 5", "cast: flaot32"), "did you mean float32?");
    assert_error_has(STREAM_OF("range: 5", "decode_jpeg: {ratio: 3}"),
                     "ratio of decode_jpeg must be 1, 2, 4 or 8, not 3");
}

static void
types_and_ranges_are_checked_where_the_value_stands(void **state)
{
    (void)state;
    assert_errors(
        STREAM_OF("range: 5", "batch: {batch_size: 0, drop_remainder: yes}",
                  "shuffle: {buffer_size: 2.5, seed: '7'}", "batch: null"),
        "5:29: batch_size of batch must be an integer of at least 1, not 0\n"
        "5:48: drop_remainder of batch must be true or false, not \"yes\"; did you mean true?\n"
        "6:32: buffer_size of shuffle must be an integer of at least -2, not 2.5\n"
        "6:43: seed of shuffle must be an integer or null, not \"7\"; remove the quotes if it is "
        "not a text\n"
        "7:9: batch needs batch_size: Elements of a batch.\n");
    assert_error_has(STREAM_OF("range: 5", "random_contrast: {factor: 1.5}"),
                     "factor of random_contrast must be a number from 0 to 1");
    assert_error_has(STREAM_OF("range: 5", "string_lookup: {vocabulary: [a, 1]}"),
                     "quote it if it is a text");
    assert_error_has(STREAM_OF("range: 5", "reshape: [2, x]"), "not \"x\"");
    assert_error_has(STREAM_OF("range: 5", "reshape: [-2]"), "not -2");
}

static void
one_key_makes_a_stage(void **state)
{
    (void)state;
    assert_errors(STREAM_OF("range: 5", "shuffle:\n        buffer_size: 5"),
                  "6:9: a stage has one key, but \"buffer_size\" is next to \"shuffle\": indent "
                  "parameters further than the stage's name\n");
    assert_error_has(STREAM_OF("range: 5\n        batch: 5"), "begin the next stage with `- `");
    assert_error_has(STREAM_OF("range: 5", "[batch]"), "expected a stage, as `- batch: 32`");
    assert_error_has(STREAM_OF("range: 5", "{}"), "not an empty mapping");
    assert_error_has(STREAM_OF("range: 5", "5"), "not 5");
}

static void
parameters_are_checked_against_each_other(void **state)
{
    (void)state;
    assert_error_has(STREAM_OF("range: 5", "shuffle: 0"), "buffer_size");
    assert_error_has(STREAM_OF("range: 5", "shuffle: -1"), "buffer_size");
    spec_close(parse(STREAM_OF("range: 5", "shuffle: -2")));
    assert_error_has(STREAM_OF("range: 5", "shard: {num_shards: 2, index: 2}"), "less than");
    assert_error_has(STREAM_OF("range: 5", "shard: {num_shards: 2}"), "shard needs index");
    assert_error_has(STREAM_OF("range: 5", "shard: {num_shards: HINT}"), "SHARD_HINT");
    spec_close(parse(STREAM_OF("range: 5", "shard: {num_shards: SHARD_HINT}")));
    assert_error_has(STREAM_OF("range: 5", "interleave: {dataset: [{range: 2}], cycle_length: 2, "
                                           "num_parallel_calls: 3}"),
                     "num_parallel_calls");
    assert_error_has(STREAM_OF("range: 5", "batch: {batch_size: 2, num_parallel_calls: 0}"),
                     "AUTOTUNE");
    assert_error_has(STREAM_OF("range: 5", "bucket_by_sequence_length: {column: x, "
                                           "bucket_boundaries: [3, 2], bucket_batch_sizes: [1]}"),
                     "one entry more");
    assert_error_has(STREAM_OF("range: 5", "bucket_by_sequence_length: {column: x, "
                                           "bucket_boundaries: [3, 3], "
                                           "bucket_batch_sizes: [1, 1, 1]}"),
                     "ascending order");
    assert_error_has(STREAM_OF("sample_from_datasets: {datasets: [[{range: 5}]], weights: [1, 2]}"),
                     "as many weights as datasets");
    assert_error_has(STREAM_OF("zip: []"), "at least one dataset");
    assert_error_has(STREAM_OF("range: 5", "decode_csv: {record_defaults: [0], column_names: [a], "
                                           "field_delim: ';;'}"),
                     "one byte");
    assert_error_has(STREAM_OF("range: 5", "decode_csv: {record_defaults: [0], column_names: [a], "
                                           "select_cols: [1, 0]}"),
                     "select_cols must be in ascending order");
    assert_error_has(STREAM_OF("csv: {filenames: a, record_defaults: [0], column_names: [a], "
                               "select_cols: [1], exclude_cols: [0]}"),
                     "not both");
    assert_error_has(STREAM_OF("range: 5", "hashing: {num_bins: 3, salt: [1, 2, 3]}"), "salt");
    assert_error_has(STREAM_OF("range: 5", "resize: {size: [1]}"), "two entries");
}

static void
features_are_checked_by_their_kind(void **state)
{
    (void)state;
    assert_errors(
        STREAM_OF("tfrecord: a",
                  "parse_example:\n"
                  "          features:\n"
                  "            a: {type: FixedLn, dtype: int64, shape: []}\n"
                  "            b: {dtype: int64}\n"
                  "            c: 5\n"
                  "            d: {type: VarLen, dtype: int32, shape: []}\n"
                  "            e: {type: Ragged, dtype: int64, partitions: "
                  "[{RowLength: a}, {UniformRowLength: x}, 5, {RowSplits: 1}]}\n"
                  "            f: {type: FixedLenSequence, dtype: int64, shape: []}\n"
                  "            g: {type: FixedLen, dtype: int64}\n"
                  "            h*: {type: VarLen, dtype: int64}"),
        "7:23: type must be FixedLen, FixedLenSequence, VarLen or Ragged; did you mean FixedLen?\n"
        "8:16: the feature \"b\" needs type: FixedLen, FixedLenSequence, VarLen or Ragged\n"
        "9:16: the feature \"c\" must be a mapping, as {type: FixedLen, dtype: int64, shape: []}\n"
        "10:38: dtype of VarLen must be int64, float32 or string, not \"int32\"\n"
        "10:45: VarLen has no \"shape\"; it has type, dtype, key\n"
        "11:59: there is no partition \"RowLength\"; did you mean RowLengths?\n"
        "11:93: UniformRowLength must be an integer of at least 0\n"
        "11:97: expected a partition with one key, as {RowLengths: key} or {UniformRowLength: n}\n"
        "11:112: RowSplits must be a key of the record; quote it if it is a number\n"
        "12:16: the feature \"f\" needs allow_missing: true, as FixedLenSequence does in "
        "TensorFlow\n"
        "13:16: FixedLen needs shape: The shape in each record.\n"
        "14:13: the pattern \"h*\" matches names of `columns`, which parse_example does not "
        "have\n");
}

static void
entries_of_other_mappings_are_checked(void **state)
{
    (void)state;
    assert_errors(
        STREAM_OF("from_tensor_slices: {a: {valus: [1]}, b: null, c: {values: 1, npy: x}, "
                  "d: {values: [1], dtype: int}}"),
        "4:33: a column has either values or npy\n"
        "4:34: column has no \"valus\"; did you mean values?\n"
        "4:50: expected values for the column \"b\"\n"
        "4:59: a column has either values or npy\n"
        "4:104: dtype of column must be a dtype, not \"int\"; did you mean int32?\n");
    assert_error_has(
        STREAM_OF("csv: {filenames: a, column_names: [a, b, c], record_defaults: [int8, "
                  "[], {values: 1}]}"),
        "a field of a CSV file is");
    assert_error_has(STREAM_OF("csv: {filenames: a, column_names: [a], record_defaults: {a: {}}}"),
                     "record_defaults needs values");
    assert_error_has(STREAM_OF("program: {command: [x], spec: {a: {dtype: float}}}"),
                     "must be a dtype");
    assert_errors(
        STREAM_OF("webdataset: {filenames: a, columns: {x: [jpg, 1], y: png, z: {}}}",
                  "padded_batch: {batch_size: 2, padded_shapes: {x: [null], y: 5}, "
                  "padding_values: {x: [1], y: 0}}"),
        "4:55: columns of webdataset must be a text or a list of texts, not 1; quote it if "
        "it is a text\n"
        "4:70: columns of webdataset must be a text or a list of texts, not a mapping\n"
        "5:69: padded_shapes of padded_batch must be a shape (a list of integers and "
        "nulls) or null, not 5\n"
        "5:93: padding_values of padded_batch must be a number or true or false or a text "
        "or null, not a list\n");
    spec_close(parse(STREAM_OF("csv: {filenames: a, column_names: [a, b], record_defaults: "
                               "[\"int8\", {values: [], dtype: int64}]}")));
}

static void
autotune_is_a_number_of_calls(void **state)
{
    struct spec_file *file = parse(
        STREAM_OF("tfrecord: {filenames: a, num_parallel_reads: AUTOTUNE}",
                  "batch: {batch_size: 2, num_parallel_calls: AUTOTUNE}", "prefetch: AUTOTUNE"));

    (void)state;
    assert_int_equal(spec_int(stage_of(file, 0), "num_parallel_reads"), -1);
    assert_int_equal(spec_int(stage_of(file, 1), "num_parallel_calls"), -1);
    assert_int_equal(spec_int(stage_of(file, 2), "buffer_size"), -1);
    spec_close(file);
    spec_close(parse(STREAM_OF("text_line: {filenames: a, num_parallel_reads: -1}")));
    assert_errors(STREAM_OF("text_line: {filenames: a, num_parallel_reads: 0}", "batch: 2",
                            "prefetch: tf.data.AUTOTUNE", "shuffle: AUTOTUNE"),
                  "4:55: num_parallel_reads of text_line must be at least 1, or AUTOTUNE\n"
                  "6:19: buffer_size of prefetch must be an integer of at least -1 or AUTOTUNE, "
                  "not \"tf.data.AUTOTUNE\"; did you mean AUTOTUNE?\n"
                  "7:18: buffer_size of shuffle must be an integer of at least -2, not "
                  "\"AUTOTUNE\"\n");
}

static void
readers_have_the_parameters_of_their_namesakes(void **state)
{
    static const char *const readers[] = {
        "tfrecord: {filenames: a, buffer_size: 4096, name: null, num_parallel_reads: 2}",
        "text_line: {filenames: a, buffer_size: null, name: x, num_parallel_reads: null}",
        "fixed_length_record: {filenames: a, record_bytes: 4, name: null, num_parallel_reads: 3}",
        "fixed_length_record: {filenames: a, record_bytes: 4, buffer_size: 0}",
        "csv: {filenames: a, record_defaults: [0], column_names: [x], buffer_size: 1}",
        "list_files: {file_pattern: a, name: null}",
        "range: {stop: 5, name: null}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof readers / sizeof readers[0]; i++) {
        struct spec_file *file = parse(STREAM_OF(readers[i]));

        if (stage_parameter(stage_of(file, 0)->info, "name") >= 0)
            assert_string_equal(spec_text(stage_of(file, 0), "name"), i == 1 ? "x" : "value");
        spec_close(file);
    }
    assert_error_has(STREAM_OF("tfrecord: {filenames: a, buffer_size: -1}"),
                     "buffer_size of tfrecord must be an integer of at least 0");
}

TEST_FILE(test_check_stage)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(autotune_is_a_number_of_calls),
        cmocka_unit_test(readers_have_the_parameters_of_their_namesakes),
        cmocka_unit_test(a_scalar_is_short_for_the_first_parameter),
        cmocka_unit_test(names_and_expressions_hold_no_nul),
        cmocka_unit_test(what_is_not_written_takes_its_default),
        cmocka_unit_test(null_is_the_same_as_leaving_out_unless_it_means_something),
        cmocka_unit_test(range_takes_a_number_a_list_or_a_mapping),
        cmocka_unit_test(paths_are_one_or_a_list),
        cmocka_unit_test(a_whole_mapping_is_the_parameter_itself),
        cmocka_unit_test(a_filter_is_an_expression_whatever_yaml_makes_of_it),
        cmocka_unit_test(content_stages_need_a_mapping_unless_listed),
        cmocka_unit_test(unknown_names_bring_the_nearest),
        cmocka_unit_test(types_and_ranges_are_checked_where_the_value_stands),
        cmocka_unit_test(one_key_makes_a_stage),
        cmocka_unit_test(parameters_are_checked_against_each_other),
        cmocka_unit_test(features_are_checked_by_their_kind),
        cmocka_unit_test(entries_of_other_mappings_are_checked),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
