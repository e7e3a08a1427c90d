/* test_place_landmarks.c - landmarks come back in the next start over the same files, and nothing
 * else is taken for them.
 */
#include "unit/source/source_fixture.h"

#include <dirent.h>

#include "core/crc32c.h"
#include "session/checkpoint/place_landmarks.h"
#include "unit/test_file.h"

enum { NOTED = 40, HEADER_BYTES = 24, CRC_AT = 12, HEAD_BYTES = 48 };
enum { FILE_BYTES = HEADER_BYTES + HEAD_BYTES + NOTED * 8 };

static struct folder folder;

struct stream {
    struct spec_file *file;
    struct plan *plan;
    struct place_landmarks *landmarks;
};

static void
stream_open(struct stream *stream, const char *stages)
{
    struct spec_errors errors = { 0 };
    const struct plan_options options = { .worker_count = 1, .cache_folder = folder.cache };
    char *text = tnd_sprintf("streams: {case: {dataset: [%s]}}", stages);

    if (spec_open_text(text, strlen(text), "case.yaml", folder.path, &errors, &stream->file) !=
            TUNDISH_OK ||
        plan_open(stream->file, &stream->file->streams[0], &options, &errors, &stream->plan) !=
            TUNDISH_OK)
        fail_msg("%s", spec_errors_text(&errors));
    free(text);
    stream->landmarks = place_landmarks_open(stream->plan, NULL);
}

static void
stream_close(struct stream *stream)
{
    place_landmarks_close(stream->landmarks);
    plan_close(stream->plan);
    spec_close(stream->file);
}

static const char FILTERED[] = "{text_line: rows.txt}, {filter: 'length(value) > 3'}, {batch: 2}";

/* As a run leaves them. */
static void
note(const char *stages, uint64_t count)
{
    struct stream stream;
    struct order_landmarks *all;
    struct order_landmark_list *list;

    stream_open(&stream, stages);
    all = place_landmarks_all(stream.landmarks);
    assert_non_null(all);
    list = &all->lists[0];
    all->list_count = 1;
    *list = (struct order_landmark_list){ .pass = 77, .step = LANDMARK_STEP };
    for (uint64_t i = 1; i <= count; i++)
        order_landmarks_note(all, list,
                             &(struct order_landmark){ i * LANDMARK_STEP, 10 * i, NULL, 0 });
    stream_close(&stream);
}

/* How many a start finds. */
static uint64_t
found(const char *stages)
{
    struct stream stream;
    const struct order_landmarks *all;
    uint64_t count = 0;

    stream_open(&stream, stages);
    all = place_landmarks_all(stream.landmarks);
    for (uint32_t i = 0; i < all->list_count; i++) {
        assert_int_equal(all->lists[i].pass, 77);
        assert_int_equal(all->lists[i].step, LANDMARK_STEP);
        for (uint32_t k = 0; k < all->lists[i].count; k++)
            assert_int_equal(all->lists[i].passed[k], 10 * (k + 1));
        count += all->lists[i].count;
    }
    stream_close(&stream);
    return count;
}

/* The path of the one file of them; false: there is none. */
static bool
kept(char path[400])
{
    DIR *entries = opendir(folder.cache);
    struct dirent *entry;
    bool is_there = false;

    while ((entry = readdir(entries)) != NULL)
        if (strstr(entry->d_name, ".landmarks") != NULL) {
            snprintf(path, 400, "%s/%s", folder.cache, entry->d_name);
            is_there = true;
        }
    closedir(entries);
    return is_there;
}

static int
begin(void **state)
{
    (void)state;
    folder_open(&folder);
    put_text(&folder, "rows.txt", "one\nthree\n");
    return 0;
}

static int
end(void **state)
{
    (void)state;
    folder_close(&folder);
    return 0;
}

static void
they_come_back(void **state)
{
    (void)state;
    note(FILTERED, NOTED);
    assert_int_equal(found(FILTERED), NOTED);
}

static void
few_are_not_kept(void **state)
{
    char path[400];

    (void)state;
    note(FILTERED, 15);
    assert_false(kept(path));
}

static void
a_stream_without_filters_has_none(void **state)
{
    struct stream stream;

    (void)state;
    stream_open(&stream, "{text_line: rows.txt}, {batch: 2}");
    assert_null(stream.landmarks);
    stream_close(&stream);
}

static void
those_of_other_stages_or_files_are_not_taken(void **state)
{
    (void)state;
    note(FILTERED, NOTED);
    assert_int_equal(found("{text_line: rows.txt}, {filter: 'length(value) > 4'}, {batch: 2}"), 0);
    put_text(&folder, "rows.txt", "one\nthre\n");
    assert_int_equal(found(FILTERED), 0);
    put_text(&folder, "rows.txt", "one\nthree\n");
    assert_int_equal(found(FILTERED), NOTED);
}

static void
read_file(const char *path, uint8_t bytes[FILE_BYTES])
{
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fread(bytes, 1, FILE_BYTES, file), FILE_BYTES);
    assert_int_equal(fgetc(file), EOF);
    fclose(file);
}

static void
write_kept(const char *path, const uint8_t *bytes, size_t count)
{
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
}

static void
a_damaged_file_is_not_taken(void **state)
{
    uint8_t whole[FILE_BYTES], bytes[FILE_BYTES + 8] = { 0 };
    char path[400];

    (void)state;
    note(FILTERED, NOTED);
    assert_true(kept(path));
    read_file(path, whole);
    for (size_t i = 0; i < FILE_BYTES; i++) {
        memcpy(bytes, whole, FILE_BYTES);
        bytes[i] ^= 0x10;
        write_kept(path, bytes, FILE_BYTES);
        assert_int_equal(found(FILTERED), 0);
    }
    for (size_t count = 0; count < FILE_BYTES; count += 7) {
        write_kept(path, whole, count);
        assert_int_equal(found(FILTERED), 0);
    }
    memcpy(bytes, whole, FILE_BYTES);
    write_kept(path, bytes, sizeof bytes);
    assert_int_equal(found(FILTERED), 0);
    write_kept(path, whole, FILE_BYTES);
    assert_int_equal(found(FILTERED), NOTED);
}

/* With a checksum that fits. */
static void
an_impossible_list_is_not_taken(void **state)
{
    static const struct {
        size_t at;
        uint64_t value;
    } lies[] = {
        { HEADER_BYTES + 8, LANDMARK_STEP + 1 },            /* its step */
        { HEADER_BYTES + 8, LANDMARK_STEP / 2 },            /* ... */
        { HEADER_BYTES + 8, 0 },                            /* ... */
        { HEADER_BYTES + 16, NOTED + 1 },                   /* its count */
        { HEADER_BYTES + 16, LANDMARKS_AT_MOST + 1 },       /* ... */
        { HEADER_BYTES + 16, UINT64_MAX },                  /* ... */
        { HEADER_BYTES + 24, 2 },                           /* neither in parts nor not */
        { HEADER_BYTES + 32, 1 },                           /* states that are not there */
        { HEADER_BYTES + 32, 2 },                           /* ... */
        { HEADER_BYTES + 40, 8 },                           /* ... */
        { HEADER_BYTES + 40, UINT64_MAX },                  /* ... */
        { HEADER_BYTES + HEAD_BYTES, LANDMARK_STEP + 1 },   /* more pass than there are */
        { HEADER_BYTES + HEAD_BYTES + 8, 9 },               /* fewer than before */
        { HEADER_BYTES + HEAD_BYTES + 8 * 39, 390 + 257 },  /* more than a step has */
        { HEADER_BYTES + HEAD_BYTES + 8 * 20, UINT64_MAX }, /* ... */
    };
    uint8_t whole[FILE_BYTES], bytes[FILE_BYTES];
    char path[400];

    (void)state;
    note(FILTERED, NOTED);
    assert_true(kept(path));
    read_file(path, whole);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint32_t crc;

        memcpy(bytes, whole, sizeof bytes);
        memcpy(bytes + lies[i].at, &lies[i].value, sizeof lies[i].value);
        crc = tnd_crc32c(0, bytes + HEADER_BYTES, sizeof bytes - HEADER_BYTES);
        memcpy(bytes + CRC_AT, &crc, sizeof crc);
        write_kept(path, bytes, sizeof bytes);
        assert_int_equal(found(FILTERED), 0);
    }
}

static const char GROUPED[] =
    "{text_line: rows.txt}, {group_by_window: {key: 'cast(length(value), int64)', window_size: 2}}";

static void
note_states(uint64_t count)
{
    struct stream stream;
    struct order_landmarks *all;
    struct order_landmark_list *list;

    stream_open(&stream, GROUPED);
    all = place_landmarks_all(stream.landmarks);
    assert_non_null(all);
    list = &all->lists[0];
    all->list_count = 1;
    *list = (struct order_landmark_list){ .pass = 77, .step = LANDMARK_STEP };
    for (uint64_t i = 1; i <= count; i++) {
        uint8_t state[8] = { 1, (uint8_t)i };

        order_landmarks_note(all, list,
                             &(struct order_landmark){ i * LANDMARK_STEP, i, state, 1 + i % 3 });
    }
    stream_close(&stream);
}

/* How many with a state a start finds. */
static uint64_t
found_states(void)
{
    struct stream stream;
    const struct order_landmarks *all;
    struct order_landmark landmark;
    uint64_t count = 0;

    stream_open(&stream, GROUPED);
    all = place_landmarks_all(stream.landmarks);
    for (uint64_t i = 1; all->list_count > 0 && i <= all->lists[0].count; i++) {
        assert_true(order_landmarks_before(&all->lists[0], i + 1, &landmark));
        assert_int_equal(landmark.passed, i);
        assert_int_equal(landmark.state_bytes, 1 + i % 3);
        assert_int_equal(landmark.state[0], 1);
        if (landmark.state_bytes > 1)
            assert_int_equal(landmark.state[1], i);
        count++;
    }
    stream_close(&stream);
    return count;
}

static void
states_come_back(void **state)
{
    (void)state;
    note_states(NOTED);
    assert_int_equal(found_states(), NOTED);
}

static void
impossible_ends_of_states_are_not_taken(void **state)
{
    enum { ENDS = HEADER_BYTES + HEAD_BYTES + NOTED * 8, BYTES = ENDS + NOTED * 8 + 80 };
    static const struct {
        size_t at;
        uint64_t value;
    } lies[] = {
        { ENDS, UINT64_MAX },
        { ENDS, LANDMARK_STATE_BYTES + 1 },
        { ENDS + 8, 1 },
        { ENDS + 8 * (NOTED - 1), 79 },
        { ENDS + 8 * (NOTED - 1), 81 },
        { HEADER_BYTES + 32, 0 },
        { HEADER_BYTES + 40, 79 },
        { HEADER_BYTES + 40, 81 },
    };
    uint8_t whole[BYTES + 1], bytes[BYTES];
    char path[400];
    FILE *file;

    (void)state;
    note_states(NOTED);
    assert_true(kept(path));
    file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(whole, 1, sizeof whole, file), BYTES);
    fclose(file);
    for (size_t i = 0; i < sizeof lies / sizeof *lies; i++) {
        uint32_t crc;

        memcpy(bytes, whole, BYTES);
        memcpy(bytes + lies[i].at, &lies[i].value, sizeof lies[i].value);
        crc = tnd_crc32c(0, bytes + HEADER_BYTES, BYTES - HEADER_BYTES);
        memcpy(bytes + CRC_AT, &crc, sizeof crc);
        write_kept(path, bytes, BYTES);
        assert_int_equal(found_states(), 0);
    }
}

/* In a folder that others may write to. */
static void
a_link_is_not_taken(void **state)
{
    char path[400], elsewhere[80];

    (void)state;
    note(FILTERED, NOTED);
    assert_true(kept(path));
    snprintf(elsewhere, sizeof elsewhere, "%s/elsewhere", folder.path);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_int_equal(found(FILTERED), 0);
}

TEST_FILE(test_place_landmarks)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(they_come_back, begin, end),
        cmocka_unit_test_setup_teardown(few_are_not_kept, begin, end),
        cmocka_unit_test_setup_teardown(a_stream_without_filters_has_none, begin, end),
        cmocka_unit_test_setup_teardown(those_of_other_stages_or_files_are_not_taken, begin, end),
        cmocka_unit_test_setup_teardown(a_damaged_file_is_not_taken, begin, end),
        cmocka_unit_test_setup_teardown(an_impossible_list_is_not_taken, begin, end),
        cmocka_unit_test_setup_teardown(states_come_back, begin, end),
        cmocka_unit_test_setup_teardown(impossible_ends_of_states_are_not_taken, begin, end),
        cmocka_unit_test_setup_teardown(a_link_is_not_taken, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
