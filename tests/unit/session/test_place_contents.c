/* test_place_contents.c - what a place carries survives the trip, nothing else is taken for one,
 * and it is taken only where the batches are the same. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "content/learned/learned.h"
#include "core/memory.h"
#include "session/checkpoint/place_contents.h"
#include "shm/place.h"
#include "unit/test_file.h"

static const struct place example = {
    .fingerprint = UINT64_C(0x123456789abcdef0),
    .root_seed = 99,
    .worker_count = 3,
    .replicas = 2,
    .files = { .file_count = 7, .hashes = { 1, 2, 3 } },
    .split = { .workers = 2, .replicas = 8, .epoch = 3, .step = UINT64_MAX },
    .state_count = 4,
    .state = { 1, 2, UINT64_MAX, 4 },
};

static void
bytes_bring_the_same_place_back(void **state)
{
    uint8_t bytes[PLACE_BYTES_MAX + 1];
    struct place back;

    (void)state;
    place_write(&example, bytes);
    assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_OK);
    assert_memory_equal(&back, &example, sizeof back);
}

/* Code of the user's own takes a word more, and places without any are as they ever were. */
static void
code_comes_back_and_takes_a_word(void **state)
{
    struct place coded = example, back;
    uint8_t bytes[PLACE_BYTES_MAX + 1];

    (void)state;
    coded.code = UINT64_C(0x123456789ABCDEF0);
    assert_int_equal(place_bytes(&coded), place_bytes(&example) + 8);
    place_write(&coded, bytes);
    assert_int_equal(place_read(bytes, place_bytes(&coded), &back), TUNDISH_OK);
    assert_memory_equal(&back, &coded, sizeof back);
    for (size_t count = 0; count < place_bytes(&coded); count++)
        assert_int_equal(place_read(bytes, count, &back), TUNDISH_E_PLACE);
    /* A place without code is saved without its word. */
    memset(bytes + 96, 0, 8);
    assert_int_equal(place_read(bytes, place_bytes(&coded), &back), TUNDISH_E_PLACE);
}

/* With what the trainer's library puts around it: under 224 bytes, and 16 for each random stage. */
static void
a_place_is_small(void **state)
{
    struct place plain = example;
    struct tnd_place outer = { .step = 1 };

    (void)state;
    plain.state_count = 0;
    outer.header_bytes = place_bytes(&plain);
    assert_true(tnd_place_bytes(&outer) < 224);
    assert_int_equal(place_bytes(&example) - place_bytes(&plain), 2 * 16);
}

static void
every_shortening_is_refused(void **state)
{
    uint8_t bytes[PLACE_BYTES_MAX + 1];
    struct place back;

    (void)state;
    place_write(&example, bytes);
    for (size_t count = 0; count < place_bytes(&example); count++)
        assert_int_equal(place_read(bytes, count, &back), TUNDISH_E_PLACE);
    assert_int_equal(place_read(bytes, place_bytes(&example) + 1, &back), TUNDISH_E_PLACE);
}

static void
a_lying_count_is_refused(void **state)
{
    struct place lying = example;
    uint8_t bytes[PLACE_BYTES_MAX + 1];
    struct place back;

    (void)state;
    for (uint32_t count = 0; count <= PLACE_STATE_MAX; count++) {
        lying.state_count = count;
        place_write(&lying, bytes);
        if (count != example.state_count)
            assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_E_PLACE);
    }
}

static void
another_version_is_refused(void **state)
{
    uint8_t bytes[PLACE_BYTES_MAX + 1];
    struct place back;

    (void)state;
    place_write(&example, bytes);
    bytes[4] += 9;
    assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "another version"));
    bytes[4] -= 9;
    bytes[0]++;
    assert_int_equal(place_read(bytes, place_bytes(&example), &back), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "not a place"));
}

/* The second version had no split, and a header of 72 bytes. */
static void
a_place_of_the_version_before_is_read(void **state)
{
    uint8_t bytes[PLACE_BYTES_MAX], old[PLACE_BYTES_MAX];
    size_t state_bytes = example.state_count * sizeof *example.state, header = 72;
    struct place back, expected = example;

    (void)state;
    place_write(&example, bytes);
    memcpy(old, bytes, header);
    memcpy(old + header, bytes + place_bytes(&example) - state_bytes, state_bytes);
    old[4] = 2;
    expected.split = (struct place_split){ 0 };
    assert_int_equal(place_read(old, header + state_bytes, &back), TUNDISH_OK);
    assert_memory_equal(&back, &expected, sizeof back);
    assert_int_equal(place_read(old, header + state_bytes + 1, &back), TUNDISH_E_PLACE);
    assert_int_equal(place_read(old, header - 1, &back), TUNDISH_E_PLACE);
}

struct stream {
    struct spec_file *file;
    struct plan *plan;
    struct place_files files;
};

static char folder[] = "/tmp/tundish-test-place-XXXXXX";

static int
make_folder(void **state)
{
    (void)state;
    return mkdtemp(folder) == NULL;
}

static int
remove_folder(void **state)
{
    (void)state;
    return remove_tree(folder);
}

static void
write_file(const char *name, const char *text)
{
    char *path = tnd_sprintf("%s/%s", folder, name);
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
    free(path);
}

/* Whatever lies in the folder. */
static const struct learned learned = { .folder = folder, .is_analyzing = true };

static void
stream_open(struct stream *stream, const char *stages, const char *distribute, uint32_t workers,
            uint32_t replicas)
{
    char *text =
        tnd_sprintf("streams: {case: {dataset: [%s], distribute: {%s}}}", stages, distribute);
    struct plan_options options = {
        .worker_count = workers,
        .replicas = replicas,
        .root_seed = 1,
        .cache_folder = folder,
        .learned = &learned,
    };
    struct spec_errors errors = { 0 };

    if (spec_open_text(text, strlen(text), "case.yaml", folder, &errors, &stream->file) !=
            TUNDISH_OK ||
        plan_open(stream->file, &stream->file->streams[0], &options, &errors, &stream->plan) !=
            TUNDISH_OK)
        fail_msg("%s", spec_errors_text(&errors));
    assert_int_equal(place_files_open(stream->plan, &stream->files), TUNDISH_OK);
    free(text);
}

static void
stream_close(struct stream *stream)
{
    place_files_close(&stream->files);
    plan_close(stream->plan);
    spec_close(stream->file);
}

struct job {
    const char *stages, *distribute;
    uint32_t workers, replicas;
};

static tundish_status
take_up(const struct job *from, const struct job *to)
{
    struct stream stream;
    struct place place;
    tundish_status status;

    stream_open(&stream, from->stages, from->distribute, from->workers, from->replicas);
    place_ready(stream.plan, &stream.files, &place);
    stream_close(&stream);
    stream_open(&stream, to->stages, to->distribute, to->workers, to->replicas);
    status = place_check(&place, stream.plan, &stream.files);
    stream_close(&stream);
    return status;
}

static void
under_data_any_number_of_workers_and_replicas_will_do(void **state)
{
    static const struct job jobs[] = {
        { "{range: 9}, {batch: 4}", "", 1, 1 },
        { "{range: 9}, {batch: 4}", "", 3, 1 },
        { "{range: 9}, {batch: 4}", "", 2, 4 },
    };

    (void)state;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            assert_int_equal(take_up(&jobs[i], &jobs[k]), TUNDISH_OK);
}

static void
dealt_by_file_another_number_of_workers_is_refused(void **state)
{
    static const char stages[] = "{list_files: \"*.txt\"}, {interleave: {dataset: [text_line], "
                                 "cycle_length: 2}}, {batch: 4}";
    const struct job one = { stages, "", 1, 1 }, one_of_two = { stages, "", 1, 2 };
    const struct job two = { stages, "", 2, 1 }, three = { stages, "", 3, 1 };

    (void)state;
    write_file("a.txt", "1\n2\n");
    write_file("b.txt", "3\n");
    write_file("c.txt", "4\n");
    assert_int_equal(take_up(&one, &one_of_two), TUNDISH_OK);
    assert_int_equal(take_up(&two, &two), TUNDISH_OK);
    assert_int_equal(take_up(&two, &three), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "saved with 2 workers"));
    assert_non_null(strstr(tnd_error_text(), "there are 3 now"));
    assert_int_equal(take_up(&one, &two), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "saved with one worker"));
    assert_int_equal(take_up(&two, &one), TUNDISH_E_PLACE);
}

/* Each worker has whole batches of its own, every second or third of all. */
static void
in_whole_batches_another_number_of_workers_is_refused(void **state)
{
    static const char stages[] = "{range: 99}, {batch: 4}";
    static const char *const deliveries[] = { "auto_shard: DATA, delivery: queue",
                                              "auto_shard: DATA, delivery: broadcast" };
    const struct job lanes_of_one = { stages, "", 1, 2 };
    const struct job lanes = { stages, "auto_shard: DATA", 2, 1 };

    (void)state;
    for (int i = 0; i < 2; i++) {
        const struct job one = { stages, deliveries[i], 1, 1 };
        const struct job two = { stages, deliveries[i], 2, 1 };
        const struct job three = { stages, deliveries[i], 3, 1 };

        assert_int_equal(take_up(&lanes_of_one, &one), TUNDISH_OK);
        assert_int_equal(take_up(&one, &lanes_of_one), TUNDISH_OK);
        assert_int_equal(take_up(&two, &two), TUNDISH_OK);
        assert_int_equal(take_up(&two, &three), TUNDISH_E_PLACE);
        assert_non_null(strstr(tnd_error_text(), "saved with 2 workers"));
        assert_non_null(strstr(tnd_error_text(), "there are 3 now, delivery: "));
        assert_int_equal(take_up(&one, &two), TUNDISH_E_PLACE);
        assert_int_equal(take_up(&two, &one), TUNDISH_E_PLACE);
        assert_int_equal(take_up(&lanes, &two), TUNDISH_E_PLACE);
        assert_int_equal(take_up(&two, &lanes), TUNDISH_E_PLACE);
    }
}

static void
from_a_function_another_number_of_replicas_is_refused(void **state)
{
    const struct job two = { "{range: 9}", "from_function: true", 1, 2 };
    const struct job four = { "{range: 9}", "from_function: true", 1, 4 };

    (void)state;
    assert_int_equal(take_up(&two, &two), TUNDISH_OK);
    assert_int_equal(take_up(&two, &four), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "saved with 2 replicas"));
}

static void
where_rows_are_carried_over_one_replica_is_not_several(void **state)
{
    static const char whole[] = "{range: 9}, {batch: {batch_size: 4, drop_remainder: true}}";
    const struct job one = { "{range: 9}, {batch: 4}", "rebatch: carry", 1, 1 };
    const struct job two = { "{range: 9}, {batch: 4}", "rebatch: carry", 1, 2 };
    const struct job four = { "{range: 9}, {batch: 4}", "rebatch: carry", 2, 2 };
    const struct job whole_one = { whole, "rebatch: carry", 1, 1 };
    const struct job whole_two = { whole, "rebatch: carry", 1, 2 };

    (void)state;
    assert_int_equal(take_up(&two, &four), TUNDISH_OK);
    assert_int_equal(take_up(&one, &two), TUNDISH_E_PLACE);
    assert_int_equal(take_up(&four, &one), TUNDISH_E_PLACE);
    assert_int_equal(take_up(&whole_one, &whole_two), TUNDISH_OK);
}

static void
another_pipeline_is_refused(void **state)
{
    const struct job job = { "{range: 9}, {batch: 4}", "", 1, 1 };
    const struct job other = { "{range: 9}, {batch: 3}", "", 1, 1 };

    (void)state;
    assert_int_equal(take_up(&job, &other), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "another pipeline"));
}

static tundish_status
take_up_after(const char *stages, const char *name, const char *text)
{
    struct stream stream;
    struct place place;
    tundish_status status;

    stream_open(&stream, stages, "", 1, 1);
    place_ready(stream.plan, &stream.files, &place);
    stream_close(&stream);
    write_file(name, text);
    stream_open(&stream, stages, "", 1, 1);
    status = place_check(&place, stream.plan, &stream.files);
    stream_close(&stream);
    return status;
}

static void
a_changed_file_is_refused_by_name(void **state)
{
    static const char stages[] = "{list_files: \"rows-*\"}, {flat_map: {dataset: [text_line]}}";

    (void)state;
    write_file("rows-a", "1\n2\n");
    write_file("rows-b", "3\n");
    assert_int_equal(take_up_after(stages, "other", "x\n"), TUNDISH_OK);
    assert_int_equal(take_up_after(stages, "rows-b", "3\n"), TUNDISH_OK);
    assert_int_equal(take_up_after(stages, "rows-b", "4\n"), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "rows-b changed"));
    assert_null(strstr(tnd_error_text(), "rows-a"));
    assert_int_equal(take_up_after(stages, "rows-c", "5\n"), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "saved with 2 files, and there are 3"));
}

static void
a_changed_vocabulary_is_refused_by_name(void **state)
{
    static const char stages[] =
        "{from_tensor_slices: {c: [x, y], d: [x, y]}}, {string_lookup: {columns: [c, d], "
        "vocabulary: \"terms-{column}.txt\"}}";

    (void)state;
    write_file("terms-c.txt", "x\n");
    write_file("terms-d.txt", "x\n");
    assert_int_equal(take_up_after(stages, "terms-e.txt", "z\n"), TUNDISH_OK);
    assert_int_equal(take_up_after(stages, "terms-d.txt", "y\n"), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "terms-d.txt changed"));
    assert_null(strstr(tnd_error_text(), "terms-c.txt"));
}

/* Learned for another column: nothing; learned anew: other rows. */
static void
changed_statistics_are_refused_by_their_stage(void **state)
{
    static const char stages[] =
        "{from_tensor_slices: {v: [1.0, 2.0]}}, {scale_to_0_1: {columns: v}}";

    (void)state;
    write_file("v.min", "{\"dtype\": \"float32\", \"shape\": [], \"values\": [0]}");
    write_file("v.max", "{\"dtype\": \"float32\", \"shape\": [], \"values\": [4]}");
    assert_int_equal(take_up_after(stages, "w.max", "{}"), TUNDISH_OK);
    assert_int_equal(
        take_up_after(stages, "v.max", "{\"dtype\": \"float32\", \"shape\": [], \"values\": [5]}"),
        TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "what scale_to_0_1 learned changed"));
}

/* One file of the many that share a hash. */
static void
among_many_files_a_changed_one_is_narrowed_down(void **state)
{
    static const char stages[] = "{list_files: \"many-*\"}, {flat_map: {dataset: [text_line]}}";

    (void)state;
    for (int i = 10; i < 50; i++) {
        char *name = tnd_sprintf("many-%d", i);

        write_file(name, "1\n");
        free(name);
    }
    assert_int_equal(take_up_after(stages, "many-23", "2\n"), TUNDISH_E_PLACE);
    assert_non_null(strstr(tnd_error_text(), "many-23"));
    assert_null(strstr(tnd_error_text(), "many-30"));
    assert_non_null(strstr(tnd_error_text(), "perhaps others"));
}

TEST_FILE(test_place_contents)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_bring_the_same_place_back),
        cmocka_unit_test(a_place_is_small),
        cmocka_unit_test(every_shortening_is_refused),
        cmocka_unit_test(a_lying_count_is_refused),
        cmocka_unit_test(code_comes_back_and_takes_a_word),
        cmocka_unit_test(another_version_is_refused),
        cmocka_unit_test(a_place_of_the_version_before_is_read),
        cmocka_unit_test(under_data_any_number_of_workers_and_replicas_will_do),
        cmocka_unit_test(dealt_by_file_another_number_of_workers_is_refused),
        cmocka_unit_test(in_whole_batches_another_number_of_workers_is_refused),
        cmocka_unit_test(from_a_function_another_number_of_replicas_is_refused),
        cmocka_unit_test(where_rows_are_carried_over_one_replica_is_not_several),
        cmocka_unit_test(another_pipeline_is_refused),
        cmocka_unit_test(a_changed_file_is_refused_by_name),
        cmocka_unit_test(a_changed_vocabulary_is_refused_by_name),
        cmocka_unit_test(changed_statistics_are_refused_by_their_stage),
        cmocka_unit_test(among_many_files_a_changed_one_is_narrowed_down),
    };

    return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
