/* test_check_stream.c - distribute, deliver, and what a stream's stages may refer to. */
#include "spec_fixture.h"
#include "unit/test_file.h"

static const char *
stream_with(const char *rest)
{
    static char text[1024];

    snprintf(text, sizeof text, "streams:\n  case:\n    dataset: [range: 5, batch: 2]\n    %s\n",
             rest);
    return text;
}

static void
a_stream_has_the_defaults_of_the_page(void **state)
{
    struct spec_file *file = parse(STREAM_OF("range: 5"));
    const struct spec_distribute *distribute = &file->streams[0].distribute;
    const struct spec_deliver *deliver = &file->streams[0].deliver;

    (void)state;
    assert_true(distribute->replicas == 1 && distribute->groups == 1);
    assert_true(distribute->auto_shard == SHARD_AUTO && distribute->rebatch == REBATCH_SPLIT);
    assert_true(distribute->delivery == DELIVER_LANES && !distribute->from_function);
    assert_true(!distribute->files_local && !distribute->drop_remainder_step);
    assert_int_equal(distribute->evaluation_shards, 0);
    assert_true(deliver->slots == 8 && deliver->lane_bytes == 0 && deliver->memory_limit == 0);
    assert_true(deliver->max_batch_bytes == 0 && !deliver->memory_memfd && !deliver->huge_pages);
    assert_true(deliver->compression == COMPRESS_AUTO && !deliver->checksums);
    assert_true(!deliver->skip_errors && deliver->skip_limit == UINT64_MAX);
    assert_true(!deliver->detach_slow_group && deliver->group_wait_ns == -1);
    assert_true(deliver->rejoin_ns == INT64_C(30000000000));
    assert_true(deliver->epochs == 0 && deliver->widen == NULL);
    assert_false(file->has_seed);
    assert_null(file->learn_from);
    spec_close(file);
}

static void
distribute_is_read(void **state)
{
    struct spec_file *file =
        parse(stream_with("distribute: {replicas: 4, auto_shard: DATA, rebatch: carry, groups: 3, "
                          "files: local, drop_remainder_step: true, evaluation_shards: 12}"));
    const struct spec_distribute *distribute = &file->streams[0].distribute;

    (void)state;
    assert_true(distribute->replicas == 4 && distribute->auto_shard == SHARD_DATA);
    assert_true(distribute->rebatch == REBATCH_CARRY && distribute->groups == 3);
    assert_true(distribute->files_local && distribute->drop_remainder_step);
    assert_int_equal(distribute->evaluation_shards, 12);
    spec_close(file);
    file = parse(stream_with("distribute: {delivery: broadcast, evaluation_shards: auto}"));
    assert_true(file->streams[0].distribute.delivery == DELIVER_BROADCAST);
    assert_int_equal(file->streams[0].distribute.evaluation_shards, -1);
    spec_close(file);
}

static void
distribute_is_checked(void **state)
{
    (void)state;
    assert_errors(
        stream_with("distribute: {replica: 3, auto_shard: auto, rebatch: splitt, "
                    "groups: 0, evaluation_shards: x, files: $x}"),
        "4:18: distribute has no \"replica\"; did you mean replicas?\n"
        "4:42: auto_shard of distribute must be AUTO, FILE, DATA, HINT or OFF, not \"auto\"; did "
        "you mean AUTO?\n"
        "4:57: rebatch of distribute must be split, carry or tensorflow, not \"splitt\"; did you "
        "mean split?\n"
        "4:73: groups of distribute must be an integer from 1 to 4096, not 0\n"
        "4:95: evaluation_shards must be an integer of at least 1 or auto, not \"x\"\n"
        "4:105: files of distribute cannot be $x: it must be known before the pipeline runs\n");
    assert_error_has(stream_with("distribute: {delivery: queue, replicas: 2}"),
                     "with delivery: queue, replicas must be 1, not 2");
}

static void
a_key_that_another_mapping_has_is_named_with_it(void **state)
{
    (void)state;
    assert_errors(stream_with("distribute: {auto_shard_policy: FILE, slots: 4}"),
                  "4:18: distribute has no \"auto_shard_policy\"; did you mean auto_shard?\n"
                  "4:43: distribute has no \"slots\"; deliver has slots\n");
    assert_error_has(stream_with("options: {auto_shard_policy: FILE}"),
                     "4:5: stream has no \"options\"; did you mean distribute?");
    assert_error_has(stream_with("auto_shard_policy: FILE"),
                     "4:5: stream has no \"auto_shard_policy\"; distribute has auto_shard");
    assert_error_has("options: {}\nstreams: {a: {dataset: [range: 5]}}\n",
                     "1:1: pipeline file has no \"options\"; stream has distribute");
}

static void
deliver_is_read(void **state)
{
    struct spec_file *file = parse(
        stream_with("deliver: {slots: 3, lane_bytes: 64MiB, max_batch_bytes: 1000, memory_limit: "
                    "1.5GB, memory: memfd, huge_pages: true, compression: zstd:7, checksums: true, "
                    "on_error: skip:10, slow_group: detach, group_wait: 5m, rejoin: 100ms, epochs: "
                    "2, widen: {value: {dtype: float32, scale: [1, 2.5], offset: 1}}}"));
    const struct spec_deliver *deliver = &file->streams[0].deliver;

    (void)state;
    assert_true(deliver->slots == 3 && deliver->lane_bytes == 64 << 20);
    assert_true(deliver->max_batch_bytes == 1000 && deliver->memory_limit == 1500000000);
    assert_true(deliver->memory_memfd && deliver->huge_pages && deliver->checksums);
    assert_true(deliver->compression == COMPRESS_ZSTD && deliver->zstd_level == 7);
    assert_true(deliver->skip_errors && deliver->skip_limit == 10);
    assert_true(deliver->detach_slow_group && deliver->epochs == 2);
    assert_true(deliver->group_wait_ns == INT64_C(300000000000));
    assert_true(deliver->rejoin_ns == 100000000);
    assert_int_equal(deliver->widen->count, 1);
    spec_close(file);
    file = parse(stream_with("deliver: {on_error: skip, compression: narrow}"));
    assert_true(file->streams[0].deliver.skip_errors);
    assert_true(file->streams[0].deliver.skip_limit == UINT64_MAX);
    assert_true(file->streams[0].deliver.compression == COMPRESS_NARROW);
    spec_close(file);
}

static void
deliver_is_checked(void **state)
{
    (void)state;
    assert_error_has(stream_with("deliver: {slots: 2}"), "from 3 to 1024, not 2");
    assert_error_has(stream_with("deliver: {lane_bytes: 5 MiB}"), "a number of bytes");
    assert_error_has(stream_with("deliver: {lane_bytes: 0}"), "a number of bytes");
    assert_error_has(stream_with("deliver: {lane_bytes: 99999999TiB}"), "a number of bytes");
    assert_error_has(stream_with("deliver: {group_wait: 30}"), "a duration (30s, 5m, 100ms)");
    assert_error_has(stream_with("deliver: {rejoin: -5s}"), "a duration");
    assert_error_has(stream_with("deliver: {memory: shmm}"), "did you mean shm?");
    assert_error_has(stream_with("deliver: {compression: zst}"), "did you mean zstd?");
    assert_error_has(stream_with("deliver: {compression: 'zstd:99'}"), "1 to 22");
    assert_error_has(stream_with("deliver: {compression: 'none:1'}"), "zstd:LEVEL");
    assert_error_has(stream_with("deliver: {on_error: 'skip:-1'}"), "skip:LIMIT");
    assert_error_has(stream_with("deliver: {on_error: skp}"), "skip:LIMIT");
    assert_error_has(stream_with("deliver: {epochs: 0}"), "at least 1");
    assert_error_has(stream_with("deliver: {widen: {x: {dtype: int32}}}"), "dtype of widen");
    assert_error_has(stream_with("deliver: {widen: {x: 5}}"), "widen must be a mapping");
}

static void
variables_have_a_meaning_where_they_stand(void **state)
{
    (void)state;
    assert_errors(STREAM_OF("range: [0, $x]", "batch: $num_input_pipelines"),
                  "4:20: $x has no meaning here: $name is a column of the element outside, within "
                  "interleave and flat_map\n"
                  "5:16: $num_input_pipelines needs `distribute: {from_function: true}`\n");
    spec_close(parse(STREAM_OF("range: 5", "flat_map: {dataset: [{range: [0, $value]}, {flat_map: "
                                           "{dataset: [{from_tensors: {x: [$value]}}]}}]}")));
    spec_close(parse("streams: {case: {dataset: [range: 5, shard: {num_shards: "
                     "$num_input_pipelines, index: $input_pipeline_id}, batch: "
                     "$per_replica_batch_size(8)], distribute: {from_function: true}}}\n"));
    assert_error_has("streams: {case: {dataset: [range: 5, batch: $per_replica_batch_size], "
                     "distribute: {from_function: true}}}\n",
                     "$per_replica_batch_size(G)");
    assert_error_has("streams: {case: {dataset: [range: $other], distribute: {from_function: "
                     "true}}}\n",
                     "$other has no meaning here");
    assert_error_has("datasets: {a: [{range: [0, $value]}]}\n"
                     "streams: {x: {dataset: [{range: 2}, {flat_map: a}]}, y: {dataset: a}}\n",
                     "1:28: $value has no meaning here");
}

static void
what_must_be_known_beforehand_cannot_be_a_variable(void **state)
{
    static const char *const stages[] = {
        "cast: $value",
        "batch: {batch_size: 2, drop_remainder: $value}",
        "shuffle: {buffer_size: 2, seed: $value}",
        "string_lookup: {vocabulary: [a, $value]}",
        "normalization: {mean: [[$value]], variance: 1}",
        "padded_batch: {batch_size: 2, padding_values: {x: $value}}",
        "op: {library: a, name: b, parameters: {c: $value}}",
        "select: [$value]",
        "rename: {a: $value}",
    };

    (void)state;
    for (size_t i = 0; i < sizeof stages / sizeof stages[0]; i++) {
        char outer[256];

        snprintf(outer, sizeof outer, "flat_map: {dataset: [{range: $value}, {%s}]}", stages[i]);
        assert_error_has(STREAM_OF("range: 5", outer), "cannot be $value: it must be known");
    }
    spec_close(parse(STREAM_OF("range: 5", "flat_map: {dataset: [{range: 5}, {filter: $value}, "
                                           "{map: {x: $value}}, {batch: $value}]}")));
}

static void
a_bare_reader_needs_an_element_outside(void **state)
{
    struct spec_file *file =
        parse(STREAM_OF("list_files: a", "interleave: {dataset: [tfrecord], cycle_length: 2}"));
    const struct spec_dataset *inner = spec_get(stage_of(file, 1), "dataset")->dataset;
    const struct spec_value *filenames = spec_get(&inner->stages[0], "filenames");

    (void)state;
    assert_int_equal(filenames->kind, SPEC_VARIABLE);
    assert_string_equal(filenames->text, "value");
    assert_false(spec_given(&inner->stages[0], "filenames"));
    spec_close(file);
    assert_error_has(STREAM_OF("tfrecord"), "4:9: tfrecord needs filenames here");
}

static void
learn_from_names_a_stream(void **state)
{
    struct spec_file *file =
        parse("seed: -5\nlearn_from: a\nstreams: {a: {dataset: [range: 5]}}\n");

    (void)state;
    assert_true(file->has_seed && file->seed == -5);
    assert_string_equal(file->learn_from, "a");
    spec_close(file);
    assert_error_has("learn_from: trian\nstreams: {train: {dataset: [range: 5]}}\n",
                     "1:13: learn_from: there is no stream \"trian\"; did you mean train?");
}

TEST_FILE(test_check_stream)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_has_the_defaults_of_the_page),
        cmocka_unit_test(distribute_is_read),
        cmocka_unit_test(distribute_is_checked),
        cmocka_unit_test(a_key_that_another_mapping_has_is_named_with_it),
        cmocka_unit_test(deliver_is_read),
        cmocka_unit_test(deliver_is_checked),
        cmocka_unit_test(variables_have_a_meaning_where_they_stand),
        cmocka_unit_test(what_must_be_known_beforehand_cannot_be_a_variable),
        cmocka_unit_test(a_bare_reader_needs_an_element_outside),
        cmocka_unit_test(learn_from_names_a_stream),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
