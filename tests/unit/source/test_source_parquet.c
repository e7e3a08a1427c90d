/* test_source_parquet.c - rows of Parquet files, where they come from, and files that change. */
#include "parquet_fixture.h"

#include <pthread.h>
#include <sched.h>

#include "batch/references.h"
#include "core/memory.h"
#include "order/run.h"
#include "source/files/ask_ahead.h"
#include "source/files/files_private.h"
#include "source/files/whereabouts.h"
#include "source/parquet/file.h"
#include "source/parquet/row_groups_private.h"
#include "source/scan/scan.h"
#include "unit/test_file.h"

#define TEXTS "[parquet: a.parquet, as_string]"

static void
put_counting(const struct folder *folder, const char *name, uint32_t groups, uint32_t per_group)
{
    struct bytes file = counting_file(groups, per_group);

    put_file(folder, name, file.data, file.used);
    free(file.data);
}

static void
rows_come_row_group_after_row_group(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 3, 2);
    assert_texts(&folder, TEXTS, "0|1|2|3|4|5|");
    put_counting(&folder, "a.parquet", 0, 0);
    assert_texts(&folder, TEXTS, "");
    folder_close(&folder);
}

static void
rows_are_found_by_number_in_any_order(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 4, 3);
    put_counting(&folder, "b.parquet", 1, 2);
    assert_texts(&folder, "[parquet: {filenames: [a.parquet, b.parquet]}, skip: 10, as_string]",
                 "10|11|0|1|");
    assert_texts(&folder,
                 "[list_files: {file_pattern: '?.parquet', shuffle: false}, "
                 "interleave: {dataset: [parquet], cycle_length: 2}, take: 5, as_string]",
                 "0|0|1|1|2|");
    folder_close(&folder);
}

/* A cache that has room for nothing but what is held gives the same. */
static void
row_groups_are_decoded_again_when_they_were_thrown_out(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_files_options options = { .row_group_bytes = 1 << 10 };
    struct row_groups *cache;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 8, 100);
    options.root = folder.path;
    options.cache_folder = folder.cache;
    assert_int_equal(source_files_open(&options, &files), TUNDISH_OK);
    cache = files_row_groups(files);
    {
        struct parquet_wanted wanted = { .name = (char *)(uintptr_t) "x", .dtype = TUNDISH_INT64 };
        struct parquet_columns columns = { .count = 1, .columns = &wanted };
        struct record_format format = { .scanner = &scanner_parquet, .parquet = &columns };
        struct source_file *file = files_enter(files, "a.parquet", 9, &format);
        const struct record_list *list;

        assert_int_equal(scan_complete(file, NULL, &list), TUNDISH_OK);
        assert_int_equal(list->count, 800);
        for (uint32_t i = 0; i < 32; i++) {
            const struct row_group *group, *again;
            uint32_t number = i * 5 % 8;
            const struct row_group_wanted hold = { .file = file, .number = number };
            bool is_bad;

            assert_int_equal(row_groups_hold(cache, &hold, &group, &is_bad), TUNDISH_OK);
            assert_int_equal(row_groups_hold(cache, &hold, &again, &is_bad), TUNDISH_OK);
            assert_ptr_equal(group, again);
            assert_int_equal(((const int64_t *)group->columns[0].column.values)[7],
                             100 * number + 7);
            row_groups_release(cache, group);
            row_groups_release(cache, again);
            /* One of 800 bytes fits: no other is there. */
            for (uint32_t other = 0; other < 8; other++)
                assert_true((file->parquet->groups[other] != NULL) == (other == number));
        }
        source_files_close(files);
    }
    folder_close(&folder);
}

/* Of a row group that is read here and there the values are not kept twice. */
static void
rows_here_and_there_make_tuples_of_a_row_group(void **state)
{
    struct folder folder;
    struct source_files *files;
    struct source_files_options options = { .row_group_bytes = 1 << 20 };
    struct parquet_wanted wanted = { .name = (char *)(uintptr_t) "x", .dtype = TUNDISH_INT64 };
    struct parquet_columns columns = { .count = 1, .columns = &wanted };
    struct record_format format = { .scanner = &scanner_parquet, .parquet = &columns };
    struct source_file *file;
    const struct record_list *list;
    const struct row_group *group, *again;
    bool is_bad;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 2, 100);
    options.root = folder.path;
    options.cache_folder = folder.cache;
    assert_int_equal(source_files_open(&options, &files), TUNDISH_OK);
    file = files_enter(files, "a.parquet", 9, &format);
    assert_int_equal(scan_complete(file, NULL, &list), TUNDISH_OK);
    for (int round = 0; round < 3; round++) {
        const struct row_group_wanted hold = { .file = file,
                                               .number = 1,
                                               .is_scattered = round == 1 };

        assert_int_equal(row_groups_hold(files_row_groups(files), &hold, &group, &is_bad),
                         TUNDISH_OK);
        assert_true((group->tuples != NULL) == (round > 0));
        if (round == 0) {
            /* While somebody reads its columns they stay. */
            const struct row_group_wanted here_and_there = { .file = file,
                                                             .number = 1,
                                                             .is_scattered = true };

            assert_int_equal(
                row_groups_hold(files_row_groups(files), &here_and_there, &again, &is_bad),
                TUNDISH_OK);
            assert_null(again->tuples);
            row_groups_release(files_row_groups(files), again);
            assert_int_equal(((const int64_t *)group->columns[0].column.values)[7], 107);
            assert_int_equal(group->bytes, 800);
        } else {
            assert_int_equal(parquet_tuple_value(group->tuples, &group->tuples->fields[0], 7), 107);
            assert_int_equal(group->bytes, 100);
        }
        row_groups_release(files_row_groups(files), group);
    }
    source_files_close(files);
    folder_close(&folder);
}

enum { GROUPS = 8, PER_GROUP = 1000, FIRST = 900, THREADS = 4 };

enum { SHORT_BYTES = 12000 };  /* for a row group that is decoded, and tuples of two */
enum { LARGER_BYTES = 18000 }; /* ... and of half of the rows */
enum { STEP_ROWS = 10 };       /* of each row group */

/* A file of eight row groups, with room for some. */
struct short_room {
    struct folder folder;
    struct source_files *files;
    struct parquet_wanted wanted;
    struct parquet_columns columns;
    struct source_file *file;
};

static void
short_room_open(struct short_room *room, uint64_t bytes, uint32_t reader_count)
{
    struct source_files_options options = { .row_group_bytes = bytes,
                                            .reader_count = reader_count };
    struct record_format format = { .scanner = &scanner_parquet, .parquet = &room->columns };
    const struct record_list *list;

    room->wanted =
        (struct parquet_wanted){ .name = (char *)(uintptr_t) "x", .dtype = TUNDISH_INT64 };
    room->columns = (struct parquet_columns){ .count = 1, .columns = &room->wanted };
    folder_open(&room->folder);
    put_counting(&room->folder, "a.parquet", GROUPS, PER_GROUP);
    options.root = room->folder.path;
    options.cache_folder = room->folder.cache;
    assert_int_equal(source_files_open(&options, &room->files), TUNDISH_OK);
    room->file = files_enter(room->files, "a.parquet", 9, &format);
    assert_int_equal(scan_complete(room->file, NULL, &list), TUNDISH_OK);
}

static void
short_room_close(struct short_room *room)
{
    source_files_close(room->files);
    folder_close(&room->folder);
}

/* No file can be made in the cache folder. */
static void
short_room_lose_folder(const struct short_room *room)
{
    files_services(room->files)->cache_status = tnd_fail(TUNDISH_E_SYSTEM, "the folder is lost");
    files_services(room->files)->cache_text = tnd_strdup(tnd_error_text());
}

static uint64_t
bytes_read(const struct short_room *room)
{
    struct source_files_stats stats;

    source_files_stats(room->files, &stats);
    return stats.bytes_read;
}

/* Take some of a row group's rows, which lie anywhere: how many were not what they should be. */
static uint32_t
take_rows(const struct short_room *room, uint32_t number, uint32_t begin, uint32_t end)
{
    struct row_groups *cache = files_row_groups(room->files);
    struct parquet_row rows[PER_GROUP];
    struct row_group_wanted wanted = {
        .file = room->file, .number = number, .is_scattered = true, .rows = rows
    };
    const struct row_group *group;
    uint32_t wrong = 0;
    bool is_bad;

    for (uint32_t row = begin; row < end; row++)
        rows[wanted.count++] = (struct parquet_row){ row * 7 % PER_GROUP, row };
    if (row_groups_hold(cache, &wanted, &group, &is_bad) != TUNDISH_OK)
        return wanted.count;
    for (uint32_t i = 0; i < wanted.count; i++) {
        uint64_t place = row_group_place(group, rows[i].row);
        uint64_t value = group->tuples != NULL
                             ? parquet_tuple_value(group->tuples, &group->tuples->fields[0], place)
                             : ((const uint64_t *)group->columns[0].column.values)[place];

        wrong += value != PER_GROUP * number + rows[i].row;
    }
    row_groups_release(cache, group);
    return wrong;
}

/* The rows that were taken must go, and not those that are still to be taken. */
static void
rows_not_taken_yet_stay_where_room_is_short(void **state)
{
    struct short_room room;
    uint64_t before, once;

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    before = bytes_read(&room);
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(&room, i, 0, FIRST), 0);
    once = bytes_read(&room);
    assert_true(once - before >= GROUPS * PER_GROUP * sizeof(int64_t));
    for (uint32_t row = FIRST; row < PER_GROUP; row += 50)
        for (uint32_t i = 0; i < GROUPS; i++)
            assert_int_equal(take_rows(&room, i, row, row + 50), 0);
    assert_int_equal(bytes_read(&room), once);
    /* Rows that went are decoded again when they are wanted again. */
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(&room, i, 0, PER_GROUP), 0);
    assert_int_equal(bytes_read(&room) - once, once - before);
    short_room_close(&room);
}

/* As of a shuffle over a repeat: rows that are left over from one round come in the next one, too,
 * and are not missing there. */
static void
rows_left_over_from_a_round_do_not_go_in_the_next(void **state)
{
    struct short_room room;
    uint64_t before, once;

    (void)state;
    short_room_open(&room, LARGER_BYTES, 0);
    before = bytes_read(&room);
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(&room, i, 0, FIRST), 0);
    once = bytes_read(&room) - before;
    for (uint32_t i = 0; i < GROUPS; i++) {
        assert_int_equal(take_rows(&room, i, 0, FIRST / 2), 0);
        assert_int_equal(take_rows(&room, i, FIRST, PER_GROUP), 0);
    }
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(&room, i, FIRST / 2, PER_GROUP), 0);
    assert_in_range(bytes_read(&room) - before, once, 2 * once);
    short_room_close(&room);
}

/* The steps of an order that takes rows of all row groups in turn: tell those of one. */
static void
deal_step(const struct short_room *room, uint32_t step)
{
    struct row_group_step dealt = {
        .step = step, .rows = tnd_alloc((size_t)GROUPS * STEP_ROWS * sizeof *dealt.rows)
    };

    for (uint32_t i = 0; i < GROUPS; i++)
        for (uint32_t row = step * STEP_ROWS; row < (step + 1) * STEP_ROWS; row++)
            dealt.rows[dealt.count++] =
                (struct row_group_row){ room->file, i, row * 7 % PER_GROUP };
    row_groups_deal(files_row_groups(room->files), &dealt);
}

static void
take_step(const struct short_room *room, uint32_t step)
{
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(room, i, step * STEP_ROWS, (step + 1) * STEP_ROWS), 0);
    row_groups_end_step(files_row_groups(room->files), 0, step);
}

/* Each row group has rows for each step, and only two have room. Those of a tenth of all rows have
 * room. */
static void
rows_of_steps_that_were_dealt_are_decoded_at_a_time(void **state)
{
    struct short_room room;
    struct row_groups *cache;
    uint64_t before, once;

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    cache = files_row_groups(room.files);
    before = bytes_read(&room);
    assert_int_equal(take_rows(&room, 0, 0, STEP_ROWS), 0);
    once = GROUPS * (bytes_read(&room) - before);
    assert_false(row_groups_is_short(cache));
    short_room_lose_folder(&room);
    row_groups_see(cache, room.file);
    assert_int_equal(take_rows(&room, 1, 0, STEP_ROWS), 0);
    assert_true(row_groups_is_short(cache));
    for (uint32_t step = 0; step < PER_GROUP / STEP_ROWS; step++)
        deal_step(&room, step);
    for (uint32_t step = 0; step < PER_GROUP / STEP_ROWS; step++)
        take_step(&room, step);
    assert_in_range(bytes_read(&room) - before, once, 12 * once);
    short_room_close(&room);
}

/* Of an order that takes rows again before an epoch is over another server makes every second step:
 * its rows are no longer expected here. */
static void
steps_that_others_make_leave_no_marks(void **state)
{
    struct short_room room;
    struct row_groups *cache;

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    cache = files_row_groups(room.files);
    short_room_lose_folder(&room);
    row_groups_see(cache, room.file);
    assert_int_equal(take_rows(&room, 1, 0, STEP_ROWS), 0);
    for (int round = 0; round < 3; round++) {
        for (uint32_t step = 0; step < PER_GROUP / STEP_ROWS; step++)
            deal_step(&room, step);
        assert_true(cache->dealt_rows > 0);
        for (uint32_t step = 0; step < PER_GROUP / STEP_ROWS; step++)
            if ((step + (uint32_t)round) % 2 == 0)
                take_step(&room, step);
            else
                row_groups_end_step(cache, 0, step);
    }
    assert_int_equal(take_rows(&room, 1, 0, STEP_ROWS), 0);
    assert_int_equal(cache->dealt_rows, 0);
    short_room_close(&room);
}

/* Tuples that have no room in memory stay in files: a row group is decoded once, however often its
 * rows are taken. */
static void
rows_that_have_no_room_stay_in_files(void **state)
{
    struct short_room room;
    struct row_groups *cache;
    uint64_t before, once;

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    cache = files_row_groups(room.files);
    row_groups_see(cache, room.file);
    before = bytes_read(&room);
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(&room, i, 0, STEP_ROWS), 0);
    once = bytes_read(&room) - before;
    for (int round = 0; round < 3; round++)
        for (uint32_t i = 0; i < GROUPS; i++) {
            assert_int_equal(take_rows(&room, i, 0, PER_GROUP), 0);
            assert_non_null(room.file->parquet->groups[i]->spill);
            assert_int_equal(room.file->parquet->groups[i]->bytes, 0);
        }
    assert_int_equal(bytes_read(&room) - before, once);
    assert_false(row_groups_is_short(cache)); /* so nobody tells rows of steps */
    short_room_close(&room);
}

/* Where no file can be made, row groups are decoded again. */
static void
rows_are_taken_though_there_is_no_folder_for_files(void **state)
{
    struct short_room room;
    struct row_groups *cache;
    uint64_t before, once;

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    cache = files_row_groups(room.files);
    short_room_lose_folder(&room);
    row_groups_see(cache, room.file);
    before = bytes_read(&room);
    for (uint32_t i = 0; i < GROUPS; i++)
        assert_int_equal(take_rows(&room, i, 0, PER_GROUP), 0);
    once = bytes_read(&room) - before;
    assert_true(row_groups_is_short(cache));
    for (uint32_t i = 0; i < GROUPS; i++) {
        assert_int_equal(take_rows(&room, i, 0, PER_GROUP), 0);
        assert_null(room.file->parquet->groups[i]->spill);
    }
    assert_int_equal(bytes_read(&room) - before, 2 * once);
    short_room_close(&room);
}

/* A row group is decoded before anybody wants it, and then not again. */
static void
a_row_group_that_is_expected_is_decoded_ahead(void **state)
{
    struct short_room room;
    struct row_groups *cache;
    uint64_t before, chunk;

    (void)state;
    short_room_open(&room, 64000, 1);
    cache = files_row_groups(room.files);
    before = bytes_read(&room);
    assert_int_equal(take_rows(&room, 0, 0, PER_GROUP), 0);
    chunk = bytes_read(&room) - before;
    assert_true(row_groups_expect(cache, room.file, 1));
    assert_true(row_groups_expect(cache, room.file, 1));
    while (bytes_read(&room) < before + 2 * chunk)
        sched_yield();
    assert_int_equal(take_rows(&room, 1, 0, PER_GROUP), 0);
    assert_int_equal(bytes_read(&room), before + 2 * chunk);
    /* What is not taken yet has half of the room. */
    for (uint32_t i = 2; i < 6; i++)
        assert_true(row_groups_expect(cache, room.file, i));
    assert_false(row_groups_expect(cache, room.file, 6));
    for (uint32_t i = 2; i < 6; i++)
        assert_int_equal(take_rows(&room, i, 0, PER_GROUP), 0);
    assert_int_equal(bytes_read(&room), before + 6 * chunk);
    short_room_close(&room);
}

/* Nor by nobody: without threads that read ahead all is decoded when it is wanted. */
static void
no_row_group_is_decoded_ahead_where_there_is_no_room(void **state)
{
    struct short_room room;

    (void)state;
    short_room_open(&room, SHORT_BYTES, 1);
    assert_false(row_groups_expect(files_row_groups(room.files), room.file, 1));
    assert_null(room.file->parquet->groups[1]);
    short_room_close(&room);
    short_room_open(&room, 64000, 0);
    assert_false(row_groups_expect(files_row_groups(room.files), room.file, 1));
    assert_int_equal(take_rows(&room, 1, 0, PER_GROUP), 0);
    short_room_close(&room);
}

/* The first batch has rows of two row groups of three. */
static void
row_groups_of_a_step_are_expected_when_it_is_dealt(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    struct ask_ahead *asking;
    const struct source_file *file;
    uint64_t words[PLAN_WIDTH_MAX];
    size_t count;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 3, 2);
    assert_int_equal(pipeline_open(&pipeline, &folder, 1, "[parquet: a.parquet, batch: 3]"),
                     TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 1, &count), ORDER_OK);
    file = files_file(pipeline.files, reference_file(run_of_word(words[0])->words));
    asking = ask_ahead_begin(pipeline.files);
    assert_non_null(asking);
    references_visit(pipeline.node, words, pipeline.node->width, 1, ask_ahead_add, asking);
    ask_ahead_end(asking, 0, 0);
    assert_non_null(file->parquet->groups[0]);
    assert_non_null(file->parquet->groups[1]);
    assert_null(file->parquet->groups[2]);
    ask_ahead_forget(pipeline.files, 0, 0);
    run_words_release(words, 1, pipeline.node->width, pipeline.node->run_words);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

struct taker {
    const struct short_room *room;
    uint32_t number, wrong;
};

static void *
take_quarter(void *argument)
{
    struct taker *taker = argument;

    for (uint32_t row = taker->number * 25; row < PER_GROUP; row += THREADS * 25)
        for (uint32_t i = 0; i < GROUPS; i++)
            taker->wrong += take_rows(taker->room, (i + taker->number) % GROUPS, row, row + 25);
    return NULL;
}

static void
threads_take_rows_of_row_groups_that_become_smaller(void **state)
{
    struct short_room room;
    pthread_t threads[THREADS];
    struct taker takers[THREADS];

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    for (uint32_t i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){ .room = &room, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, take_quarter, &takers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(takers[i].wrong, 0);
    }
    short_room_close(&room);
}

enum { BAD_GROUP = 3 };

/* Its chunk is cut. */
static void
damage_group(const struct short_room *room)
{
    const struct parquet_footer *footer = &room->file->parquet->footer;

    footer->chunks[BAD_GROUP * footer->wanted_count].bytes /= 2;
}

/* Those that wait for a row group that is bad are told, and others get on. */
static void *
take_bad_and_good(void *argument)
{
    struct taker *taker = argument;
    const struct parquet_row row = { .row = taker->number };
    const struct row_group_wanted wanted = { .file = taker->room->file,
                                             .number = BAD_GROUP,
                                             .is_scattered = true,
                                             .rows = &row,
                                             .count = 1 };
    const struct row_group *group;

    for (uint32_t i = 0; i < GROUPS; i++) {
        bool is_bad = false;

        if (i != BAD_GROUP) {
            taker->wrong += take_rows(taker->room, i, 0, PER_GROUP);
            continue;
        }
        taker->wrong += row_groups_hold(files_row_groups(taker->room->files), &wanted, &group,
                                        &is_bad) == TUNDISH_OK;
        taker->wrong +=
            !is_bad || strstr(tnd_error_text(), "a.parquet, row group 3, column 'x'") == NULL;
    }
    return NULL;
}

static void
a_bad_row_group_lets_all_who_wait_go(void **state)
{
    struct short_room room;
    pthread_t threads[THREADS];
    struct taker takers[THREADS];

    (void)state;
    short_room_open(&room, SHORT_BYTES, 0);
    damage_group(&room);
    row_groups_see(files_row_groups(room.files), room.file);
    for (uint32_t i = 0; i < THREADS; i++) {
        takers[i] = (struct taker){ .room = &room, .number = i };
        assert_int_equal(pthread_create(&threads[i], NULL, take_bad_and_good, &takers[i]), 0);
    }
    for (uint32_t i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(takers[i].wrong, 0);
    }
    assert_null(files_row_groups(room.files)->decoding);
    if (room.file->parquet->groups[BAD_GROUP] != NULL)
        assert_int_equal(room.file->parquet->groups[BAD_GROUP]->holds, 0);
    short_room_close(&room);
}

/* It may be read again: it is not what its bytes say. */
static void
a_failure_to_read_names_file_row_group_and_column(void **state)
{
    struct short_room room;
    char path[256];
    const struct row_group *group;
    bool is_bad = true;

    (void)state;
    short_room_open(&room, LARGER_BYTES, 0);
    snprintf(path, sizeof path, "%s/a.parquet", room.folder.path);
    assert_int_equal(truncate(path, 3 * 8 * PER_GROUP), 0);
    assert_int_equal(
        row_groups_hold(files_row_groups(room.files),
                        &(struct row_group_wanted){ .file = room.file, .number = BAD_GROUP },
                        &group, &is_bad),
        TUNDISH_E_DATA);
    assert_false(is_bad);
    assert_non_null(strstr(tnd_error_text(), "a.parquet, row group 3, column 'x': the file became "
                                             "shorter while it was served"));
    short_room_close(&room);
}

static void
an_element_tells_file_row_group_and_row(void **state)
{
    struct folder folder;
    struct pipeline pipeline;
    struct whereabouts where;
    uint64_t words[5 * PLAN_WIDTH_MAX];
    size_t count;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 3, 2);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, "[parquet: a.parquet]"), TUNDISH_OK);
    assert_int_equal(order_next(pipeline.iterator, words, 5, &count), ORDER_OK);
    assert_int_equal(count, 5);
    whereabouts_of(pipeline.node->body->root, pipeline.files, words + 3 * pipeline.node->width,
                   &where);
    assert_int_equal(where.record, 3);
    assert_string_equal(where.number_name, "row_group");
    assert_int_equal(where.number, 1);
    pipeline_close(&pipeline);
    folder_close(&folder);
}

/* Where bad rows are left out, a file without its end has none. */
static void
a_file_without_its_end_is_passed_over(void **state)
{
    struct bytes file = counting_file(1, 3);
    struct folder folder;

    (void)state;
    folder_open(&folder);
    folder.skip_damage = true;
    put_counting(&folder, "a.parquet", 1, 2);
    put_file(&folder, "b.parquet", file.data, file.used - 20);
    memset(file.data + file.used - 20, 0xFF, 12);
    put_file(&folder, "c.parquet", file.data, file.used);
    assert_texts(&folder,
                 "[parquet: {filenames: [a.parquet, b.parquet, c.parquet, a.parquet]}, as_string]",
                 "0|1|0|1|");
    free(file.data);
    folder_close(&folder);
}

static void
files_that_differ_or_are_none_are_told(void **state)
{
    const struct group_made none = { 0 };
    struct bytes file = { 0 }, footer = footer_of(&none, 0, 0, PARQUET_FLOAT);
    struct folder folder;
    char *texts;
    struct pipeline pipeline;

    (void)state;
    folder_open(&folder);
    put_counting(&folder, "a.parquet", 1, 1);
    bytes_add(&file, "PAR1", 4);
    end_file(&file, &footer);
    put_file(&folder, "b.parquet", file.data, file.used);
    put_text(&folder, "c.parquet", "not a Parquet file");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0,
                                   "[parquet: {filenames: [a.parquet, b.parquet]}, as_string]"),
                     TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 1);
    assert_string_equal(texts, "0|!b.parquet: column 'x' is float32 here, and int64 in the file "
                               "that the stage began with|");
    free(texts);
    pipeline_close(&pipeline);
    assert_refused(&folder, "[parquet: c.parquet]", "c.parquet: it is not a Parquet file");
    assert_refused(&folder, "[parquet: d.parquet]", "d.parquet: cannot be opened");
    assert_refused(&folder, "[parquet: {filenames: a.parquet, columns: [y]}]", "y");
    assert_refused(&folder, "[parquet: {filenames: a.parquet, columns: {x: {default_value: a}}}]",
                   "default_value");
    assert_refused(&folder, "[parquet: {filenames: a.parquet, columns: {x: {default: 1}}}]",
                   "takes {default_value: VALUE}");
    free(file.data);
    free(footer.data);
    folder_close(&folder);
}

TEST_FILE(test_source_parquet)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_come_row_group_after_row_group),
        cmocka_unit_test(rows_are_found_by_number_in_any_order),
        cmocka_unit_test(row_groups_are_decoded_again_when_they_were_thrown_out),
        cmocka_unit_test(rows_here_and_there_make_tuples_of_a_row_group),
        cmocka_unit_test(rows_not_taken_yet_stay_where_room_is_short),
        cmocka_unit_test(rows_left_over_from_a_round_do_not_go_in_the_next),
        cmocka_unit_test(rows_of_steps_that_were_dealt_are_decoded_at_a_time),
        cmocka_unit_test(steps_that_others_make_leave_no_marks),
        cmocka_unit_test(rows_that_have_no_room_stay_in_files),
        cmocka_unit_test(rows_are_taken_though_there_is_no_folder_for_files),
        cmocka_unit_test(threads_take_rows_of_row_groups_that_become_smaller),
        cmocka_unit_test(a_bad_row_group_lets_all_who_wait_go),
        cmocka_unit_test(a_row_group_that_is_expected_is_decoded_ahead),
        cmocka_unit_test(no_row_group_is_decoded_ahead_where_there_is_no_room),
        cmocka_unit_test(row_groups_of_a_step_are_expected_when_it_is_dealt),
        cmocka_unit_test(a_failure_to_read_names_file_row_group_and_column),
        cmocka_unit_test(an_element_tells_file_row_group_and_row),
        cmocka_unit_test(a_file_without_its_end_is_passed_over),
        cmocka_unit_test(files_that_differ_or_are_none_are_told),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
