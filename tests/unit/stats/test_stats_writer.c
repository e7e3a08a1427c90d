/* test_stats_writer.c - figures written by a server are read as they were meant, and a file that
 * lies is refused or ends early. */
#include "stats/stats_private.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "core/log.h"
#include "core/status.h"
#include "stats/stats_process.h"
#include "stats/stats_relay.h"
#include "unit/test_file.h"
#include "watch/snapshot.h"

struct fixture {
    char folder[64], socket[96], path[112];
    struct stats *stats;
};

static int
open_fixture(void **state)
{
    struct fixture *fixture = calloc(1, sizeof *fixture);

    strcpy(fixture->folder, "/tmp/test_stats.XXXXXX");
    assert_non_null(mkdtemp(fixture->folder));
    snprintf(fixture->socket, sizeof fixture->socket, "%s/server", fixture->folder);
    snprintf(fixture->path, sizeof fixture->path, "%s.stats", fixture->socket);
    assert_int_equal(stats_open(fixture->socket, 1, &fixture->stats), TUNDISH_OK);
    *state = fixture;
    return 0;
}

static int
close_fixture(void **state)
{
    struct fixture *fixture = *state;

    stats_close(fixture->stats);
    unlink(fixture->path);
    assert_int_equal(rmdir(fixture->folder), 0);
    free(fixture);
    return 0;
}

static void
take(struct fixture *fixture, struct watch_snapshot *ret_snapshot)
{
    struct tnd_stats_file file = TND_STATS_FILE_NONE;

    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&file, ret_snapshot), TUNDISH_OK);
    tnd_stats_close(&file);
}

static void
a_server_goes_on_when_its_file_is_cut_short(void **state)
{
    struct fixture *fixture = NULL;
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    struct tnd_stats_stream *early;

    /* In here, since cmocka takes SIGBUS for itself between its steps. */
    open_fixture(state);
    fixture = *state;
    early = stats_add(fixture->stats, TND_STATS_KIND_stream, "");
    assert_int_equal(truncate(fixture->path, 0), 0);
    tnd_stats_add(&early->rows, 1);
    for (int i = 0; i < 10000; i++)
        assert_non_null(stats_add(fixture->stats, TND_STATS_KIND_stream, ""));
    assert_non_null(stats_add_track(fixture->stats, "s", "t"));
    stats_add_text(fixture->stats, "pipeline", "", "text");
    tnd_log(TND_LOG_WARNING, "test", "a note");
    stats_drop(fixture->stats, early);
    stats_show_process(fixture->stats);
    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
    assert_int_equal(tnd_stats_read(&file), TUNDISH_E_LAYOUT);
    tnd_stats_close(&file);
    close_fixture(state);
}

static void
sets_with_the_same_labels_are_added_up(void **state)
{
    struct fixture *fixture = *state;
    char labels[TND_STATS_LABEL_BYTES] = "";
    struct tnd_stats_stage *one, *two, *other;
    struct watch_snapshot snapshot;
    const struct watch_set *set;

    stats_label(labels, "stream", "train");
    stats_label(labels, "stage", "map");
    one = stats_add(fixture->stats, TND_STATS_KIND_stage, labels);
    two = stats_add(fixture->stats, TND_STATS_KIND_stage, labels);
    stats_label(labels, "node", "4");
    other = stats_add(fixture->stats, TND_STATS_KIND_stage, labels);
    tnd_stats_add(&one->rows, 3);
    tnd_stats_add(&two->rows, 4);
    tnd_stats_add(&other->rows, 100);
    take(fixture, &snapshot);
    set = watch_find(&snapshot, "stage", "stream=\"train\",stage=\"map\"");
    assert_int_equal(watch_value(set, "rows"), 7);
    set = watch_next(&snapshot, "stage", set);
    assert_int_equal(watch_value(set, "rows"), 100);
    assert_null(watch_next(&snapshot, "stage", set));
    watch_snapshot_close(&snapshot);
}

enum { COUNTERS = 3, COUNTED = 10000 };

/* What a thread of the server does: sets of its own, and a track. */
static void *
count_on(void *context)
{
    struct fixture *fixture = context;
    struct tnd_stats_stage *stage = stats_add(fixture->stats, TND_STATS_KIND_stage, "");
    struct tnd_stats_stream *stream = stats_add(fixture->stats, TND_STATS_KIND_stream, "");
    struct tnd_stats_track_entry *track = stats_add_track(fixture->stats, "train", "worker");

    for (uint64_t i = 0; i < COUNTED; i++) {
        tnd_stats_add(&stage->rows, 1);
        tnd_stats_observe(&stream->step_make, i);
        stats_event(track, (int64_t)i, (int64_t)i + 1, stats_offset(fixture->stats, stage), i);
    }
    return NULL;
}

static uint64_t
counted_rows(struct fixture *fixture)
{
    const struct watch_set *set = NULL;
    struct watch_snapshot snapshot;
    uint64_t rows = 0;

    take(fixture, &snapshot);
    while ((set = watch_next(&snapshot, "stage", set)) != NULL)
        rows += watch_value(set, "rows");
    watch_snapshot_close(&snapshot);
    return rows;
}

static void
threads_count_while_others_read(void **state)
{
    struct fixture *fixture = *state;
    pthread_t threads[COUNTERS];
    uint64_t rows = 0;

    for (int i = 0; i < COUNTERS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, count_on, fixture), 0);
    for (int i = 0; i < 10; i++) {
        uint64_t now = counted_rows(fixture);

        assert_true(now >= rows && now <= COUNTERS * COUNTED);
        rows = now;
    }
    for (int i = 0; i < COUNTERS; i++)
        pthread_join(threads[i], NULL);
    assert_int_equal(counted_rows(fixture), COUNTERS * COUNTED);
}

static void
histograms_count_by_duration(void **state)
{
    struct fixture *fixture = *state;
    struct tnd_stats_stream *stream = stats_add(fixture->stats, TND_STATS_KIND_stream, "");
    struct watch_snapshot snapshot;
    const struct watch_set *set;
    uint32_t field = 0;

    tnd_stats_observe(&stream->step_make, 1024);              /* the first bucket's bound */
    tnd_stats_observe(&stream->step_make, 1025);              /* one more */
    tnd_stats_observe(&stream->step_make, UINT64_C(1) << 50); /* beyond all bounds */
    take(fixture, &snapshot);
    set = watch_next(&snapshot, "stream", NULL);
    while (strcmp(set->kind->fields[field].name, "step_make") != 0)
        field++;
    assert_int_equal(set->values[field], 3);
    assert_int_equal(watch_histogram_of(set, field)->buckets[0], 1);
    assert_int_equal(watch_histogram_of(set, field)->buckets[1], 1);
    assert_int_equal(watch_histogram_of(set, field)->buckets[TND_STATS_BUCKETS - 1], 1);
    assert_int_equal(watch_histogram_of(set, field)->sum_ns, 1024 + 1025 + (UINT64_C(1) << 50));
    watch_snapshot_close(&snapshot);
}

/* Nine of ten in the bucket up to 2.048 us, one of them in that up to 1.048576 ms. */
static void
quantiles_are_of_what_was_observed_in_between(void **state)
{
    struct fixture *fixture = *state;
    struct tnd_stats_stream *stream = stats_add(fixture->stats, TND_STATS_KIND_stream, "");
    struct watch_snapshot before, now;
    struct watch_histogram grown;

    for (int i = 0; i < 100; i++)
        tnd_stats_observe(&stream->step_make, UINT64_C(1) << 40);
    take(fixture, &before);
    for (int i = 0; i < 9; i++)
        tnd_stats_observe(&stream->step_make, 2000);
    tnd_stats_observe(&stream->step_make, 1000000);
    take(fixture, &now);
    assert_true(watch_observed(&before, watch_next(&now, "stream", NULL), "step_make", &grown));
    assert_false(watch_observed(&before, watch_next(&now, "stream", NULL), "nothing", &grown));
    assert_int_equal(grown.sum_ns, 9 * 2000 + 1000000);
    assert_in_range(watch_quantile_ns(&grown, 0.5), 1024, 2048);
    assert_in_range(watch_quantile_ns(&grown, 0.99), 524288, 1048576);
    memset(&grown, 0, sizeof grown);
    assert_int_equal(watch_quantile_ns(&grown, 0.5), 0);
    watch_snapshot_close(&before);
    watch_snapshot_close(&now);
}

static void
labels_are_quoted_and_read_back(void **state)
{
    struct fixture *fixture = *state;
    char labels[TND_STATS_LABEL_BYTES] = "", value[64];
    struct watch_snapshot snapshot;
    const struct watch_set *set;

    stats_label(labels, "stream", "a\"b\\c");
    stats_label_number(labels, "replica", 7);
    assert_string_equal(labels, "stream=\"a\\\"b\\\\c\",replica=\"7\"");
    stats_add(fixture->stats, TND_STATS_KIND_lane, labels);
    take(fixture, &snapshot);
    set = watch_next(&snapshot, "lane", NULL);
    watch_label(set, "stream", value, sizeof value);
    assert_string_equal(value, "a\"b\\c");
    watch_label(set, "replica", value, sizeof value);
    assert_string_equal(value, "7");
    watch_label(set, "ream", value, sizeof value);
    assert_string_equal(value, "");
    watch_snapshot_close(&snapshot);
}

/* A newline would forge a line of metrics, bytes that are not UTF-8 make the page unreadable. */
static void
labels_are_printable(void **state)
{
    char labels[TND_STATS_LABEL_BYTES] = "";

    (void)state;
    stats_label(labels, "group", "a\n\x1b[2J\xff\xc3\xa9");
    assert_string_equal(labels, "group=\"a\\\\x0a\\\\x1b[2J\\\\xff\xc3\xa9\"");
}

static void
long_labels_that_begin_alike_differ(void **state)
{
    char one[TND_STATS_LABEL_BYTES] = "", other[TND_STATS_LABEL_BYTES] = "";
    char name[1000];

    (void)state;
    memset(name, '"', sizeof name);
    name[sizeof name - 1] = '\0';
    for (int i = 0; i < 3; i++)
        stats_label(one, "key", name);
    stats_label_number(one, "replica", UINT64_MAX);
    name[sizeof name - 2] = 'x';
    for (int i = 0; i < 3; i++)
        stats_label(other, "key", name);
    stats_label_number(other, "replica", UINT64_MAX);
    assert_string_not_equal(one, other);
    assert_int_equal(strlen(one), strlen(other));
    assert_non_null(strstr(one, ",replica=\"18446744073709551615\""));
}

static void
a_text_is_kept_once(void **state)
{
    struct fixture *fixture = *state;
    uint64_t used;

    stats_add_text(fixture->stats, "plan", "train", "{}");
    used = tnd_stats_get(&fixture->stats->header->used_bytes);
    for (int i = 0; i < 1000; i++)
        stats_add_text(fixture->stats, "plan", "train", "{}");
    assert_int_equal(tnd_stats_get(&fixture->stats->header->used_bytes), used);
    stats_add_text(fixture->stats, "plan", "eval", "{}");
    assert_true(tnd_stats_get(&fixture->stats->header->used_bytes) > used);
}

static void
sets_that_are_gone_are_not_shown(void **state)
{
    struct fixture *fixture = *state;
    void *values = stats_add(fixture->stats, TND_STATS_KIND_reader, "");
    struct watch_snapshot snapshot;

    take(fixture, &snapshot);
    assert_non_null(watch_next(&snapshot, "reader", NULL));
    watch_snapshot_close(&snapshot);
    stats_drop(fixture->stats, values);
    take(fixture, &snapshot);
    assert_null(watch_next(&snapshot, "reader", NULL));
    watch_snapshot_close(&snapshot);
}

/* Forty stages, thirty vocabularies and fifty threads: all of it is shown. */
static void
there_is_room_for_large_jobs(void **state)
{
    struct fixture *fixture = *state;
    struct watch_snapshot snapshot;
    const struct watch_set *set = NULL;
    uint32_t count = 0;

    for (int thread = 0; thread < 50; thread++)
        for (int i = 0; i < 70; i++) {
            char labels[TND_STATS_LABEL_BYTES] = "";
            struct tnd_stats_stage *stage;

            stats_label_number(labels, "node", (uint64_t)i);
            stage = stats_add(fixture->stats, TND_STATS_KIND_stage, labels);
            tnd_stats_add(&stage->rows, 2);
        }
    take(fixture, &snapshot);
    while ((set = watch_next(&snapshot, "stage", set)) != NULL) {
        assert_int_equal(watch_value(set, "rows"), 100);
        count++;
    }
    assert_int_equal(count, 70);
    assert_int_equal(watch_value(watch_next(&snapshot, "server", NULL), "unseen_sets"), 0);
    watch_snapshot_close(&snapshot);
}

enum { MANY_SETS = 40000 };

static void
a_full_file_costs_figures_not_the_server(void **state)
{
    struct fixture *fixture = *state;
    struct watch_snapshot snapshot;
    struct watch_note note;
    struct tnd_stats_lane *last = NULL;
    uint64_t shown, not_shown;

    for (int i = 0; i < MANY_SETS; i++) {
        last = stats_add(fixture->stats, TND_STATS_KIND_lane, "");
        tnd_stats_set(&last->slots, 1);
    }
    assert_int_equal(stats_offset(fixture->stats, last), 0);
    take(fixture, &snapshot);
    shown = watch_value(watch_next(&snapshot, "lane", NULL), "slots");
    not_shown = watch_value(watch_next(&snapshot, "server", NULL), "unseen_sets");
    assert_true(shown > 10000 && not_shown > 0);
    assert_int_equal(shown + not_shown, MANY_SETS);
    assert_int_equal(watch_notes(&snapshot, 0, &note, 1), 1); /* said once */
    assert_non_null(strstr(note.text, "is full"));
    assert_int_equal(tnd_stats_get(&snapshot.copy.header->note_count), 1);
    watch_snapshot_close(&snapshot);
}

static void
warnings_are_noted(void **state)
{
    struct fixture *fixture = *state;
    struct watch_snapshot snapshot;
    struct watch_note notes[TND_STATS_NOTES];

    for (int i = 0; i < TND_STATS_NOTES + 5; i++)
        tnd_log(TND_LOG_WARNING, "test", "number %d", i);
    take(fixture, &snapshot);
    assert_int_equal(watch_notes(&snapshot, 0, notes, TND_STATS_NOTES), TND_STATS_NOTES);
    assert_string_equal(notes[0].text, "test: number 5");
    assert_int_equal(notes[0].number, 5);
    assert_int_equal(watch_notes(&snapshot, TND_STATS_NOTES + 4, notes, TND_STATS_NOTES), 1);
    assert_int_equal(watch_value(watch_next(&snapshot, "server", NULL), "log_warnings"),
                     TND_STATS_NOTES + 5);
    watch_snapshot_close(&snapshot);
}

static void
texts_are_found_by_name_and_stream(void **state)
{
    struct fixture *fixture = *state;
    struct watch_snapshot snapshot;

    stats_add_text(fixture->stats, "plan", "train", "{}");
    take(fixture, &snapshot);
    assert_string_equal(watch_text(&snapshot, "plan", "train")->text, "{}");
    assert_null(watch_text(&snapshot, "plan", "eval"));
    watch_snapshot_close(&snapshot);
}

/* Every byte of the file in turn says something else: it is read or refused, never believed. */
static void
a_file_that_lies_is_survived(void **state)
{
    struct fixture *fixture = *state;
    struct tnd_stats_file file = TND_STATS_FILE_NONE, lie;
    struct watch_snapshot snapshot;
    unsigned char *bytes;
    char path[128];

    stats_add(fixture->stats, TND_STATS_KIND_lane, "replica=\"0\"");
    stats_add_text(fixture->stats, "plan", "train", "{}");
    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
    assert_int_equal(tnd_stats_read(&file), TUNDISH_OK);
    bytes = (unsigned char *)file.header;
    snprintf(path, sizeof path, "%s/lie", fixture->folder);
    for (uint64_t at = 0; at < file.byte_count; at += at < sizeof *file.header ? 97 : 3) {
        unsigned char was = bytes[at];
        FILE *out = fopen(path, "w");

        bytes[at] ^= 0xff;
        assert_int_equal(fwrite(bytes, 1, file.byte_count, out), file.byte_count);
        fclose(out);
        bytes[at] = was;
        assert_int_equal(tnd_stats_open_file(path, &lie), TUNDISH_OK);
        if (watch_snapshot_open(&lie, &snapshot) == TUNDISH_OK)
            watch_snapshot_close(&snapshot);
        tnd_stats_close(&lie);
    }
    tnd_stats_close(&file);
    unlink(path);
}

static void
a_file_cut_short_is_refused(void **state)
{
    struct fixture *fixture = *state;
    struct tnd_stats_file file = TND_STATS_FILE_NONE;

    stats_add(fixture->stats, TND_STATS_KIND_lane, "");
    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
    assert_int_equal(truncate(fixture->path, sizeof(struct tnd_stats_header) + 100), 0);
    assert_int_equal(tnd_stats_read(&file), TUNDISH_E_LAYOUT);
    tnd_stats_close(&file);
}

static void
metrics_of_another_version_are_refused(void **state)
{
    struct fixture *fixture = *state;
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    FILE *out = fopen(fixture->path, "r+");

    assert_int_equal(fputc('x', out), 'x'); /* of the magic number */
    fclose(out);
    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
    assert_int_equal(tnd_stats_read(&file), TUNDISH_E_LAYOUT);
    assert_non_null(strstr(tnd_error_text(), "another version"));
    tnd_stats_close(&file);
}

/* It has made its file, and not filled it; or not even given it its size. */
static void
a_server_that_starts_is_said_to(void **state)
{
    struct fixture *fixture = *state;
    static const off_t sizes[] = { 0, 65536 };

    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        struct tnd_stats_file file = TND_STATS_FILE_NONE;

        assert_int_equal(truncate(fixture->path, 0), 0);
        assert_int_equal(truncate(fixture->path, sizes[i]), 0);
        assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
        assert_int_equal(tnd_stats_read(&file), TUNDISH_E_LAYOUT);
        assert_non_null(strstr(tnd_error_text(), "is starting"));
        tnd_stats_close(&file);
    }
}

static void
a_stopped_server_is_still_read(void **state)
{
    struct fixture *fixture = *state;
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    struct watch_snapshot snapshot;

    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_OK);
    stats_show_state(fixture->stats, TND_STATS_SERVING);
    stats_close(fixture->stats);
    fixture->stats = NULL;
    assert_int_equal(watch_snapshot_open(&file, &snapshot), TUNDISH_OK);
    assert_false(tnd_stats_is_alive(&snapshot.copy));
    watch_snapshot_close(&snapshot);
    tnd_stats_close(&file);
    assert_int_equal(tnd_stats_open_server(fixture->socket, &file), TUNDISH_E_SERVER_GONE);
}

/* Of a server that was killed, and of one that stops. */
static void
files_of_other_nodes_go_with_their_servers(void **state)
{
    struct fixture *fixture = *state;
    struct stats *next;
    char path[128];

    snprintf(path, sizeof path, "%s.2", fixture->path);
    stats_relay_keep(fixture->stats, 2, stats_relay_copy(fixture->stats), 1);
    assert_int_equal(access(path, F_OK), 0);
    assert_int_equal(stats_open(fixture->socket, 1, &next), TUNDISH_OK);
    assert_int_not_equal(access(path, F_OK), 0);
    stats_relay_keep(next, 2, stats_relay_copy(next), 1);
    assert_int_equal(access(path, F_OK), 0);
    stats_close(next);
    assert_int_not_equal(access(path, F_OK), 0);
    assert_int_not_equal(access(fixture->path, F_OK), 0);
}

#define WITH_FILE(test) cmocka_unit_test_setup_teardown(test, open_fixture, close_fixture)

TEST_FILE(test_stats_writer)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_goes_on_when_its_file_is_cut_short),
        WITH_FILE(sets_with_the_same_labels_are_added_up),
        WITH_FILE(histograms_count_by_duration),
        WITH_FILE(threads_count_while_others_read),
        WITH_FILE(quantiles_are_of_what_was_observed_in_between),
        WITH_FILE(labels_are_quoted_and_read_back),
        WITH_FILE(a_text_is_kept_once),
        cmocka_unit_test(long_labels_that_begin_alike_differ),
        cmocka_unit_test(labels_are_printable),
        WITH_FILE(sets_that_are_gone_are_not_shown),
        WITH_FILE(there_is_room_for_large_jobs),
        WITH_FILE(a_full_file_costs_figures_not_the_server),
        WITH_FILE(warnings_are_noted),
        WITH_FILE(texts_are_found_by_name_and_stream),
        WITH_FILE(a_file_that_lies_is_survived),
        WITH_FILE(a_file_cut_short_is_refused),
        WITH_FILE(metrics_of_another_version_are_refused),
        WITH_FILE(a_server_that_starts_is_said_to),
        WITH_FILE(a_stopped_server_is_still_read),
        WITH_FILE(files_of_other_nodes_go_with_their_servers),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
