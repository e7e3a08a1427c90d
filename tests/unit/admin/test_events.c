/* test_events.c - what is a mark in the charts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "events.h"
#include "stats/stats_writer.h"
#include "unit/test_file.h"

static struct watch_snapshot
look(const char *socket)
{
    struct tnd_stats_file file = TND_STATS_FILE_NONE;
    struct watch_snapshot snapshot;

    assert_int_equal(tnd_stats_open_server(socket, &file), TUNDISH_OK);
    assert_int_equal(watch_snapshot_open(&file, &snapshot), TUNDISH_OK);
    tnd_stats_close(&file);
    return snapshot;
}

static void
assert_last(const struct events *events, enum event_kind kind, const char *text)
{
    const struct event *event =
        events_at(events, (events->count < EVENTS ? events->count : EVENTS) - 1);

    assert_non_null(event);
    assert_string_equal(events_kind_name(event->kind), events_kind_name(kind));
    assert_non_null(strstr(event->text, text));
}

static void
epochs_deaths_and_bad_levels_are_events(void **state)
{
    struct events *events = calloc(1, sizeof *events);
    char folder[] = "/tmp/test_events.XXXXXX", socket[64];
    struct watch_snapshot before, now;
    struct tnd_stats_stream *stream;
    struct tnd_stats_reader *reader;
    struct stats *stats;

    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(socket, sizeof socket, "%s/s", folder);
    assert_int_equal(stats_open(socket, 1, &stats), TUNDISH_OK);
    stream = stats_add(stats, TND_STATS_KIND_stream, "stream=\"train\"");
    reader = stats_add(stats, TND_STATS_KIND_reader, "stream=\"train\",replica=\"3\"");
    before = look(socket);
    events_compare(events, 100, &before, &before);
    assert_null(events_at(events, 0));

    tnd_stats_set(&stream->epoch, 1);
    tnd_stats_set(&reader->died, 1);
    now = look(socket);
    events_compare(events, 101, &before, &now);
    assert_int_equal(events->count, 2);
    assert_string_equal(events_at(events, 0)->text, "epoch 1 of stream train");
    assert_last(events, EVENT_DEATH, "replica 3");
    events_compare(events, 102, &now, &now);
    assert_int_equal(events->count, 2);

    events_note_level(events, 103, &now, WATCH_WAITING);
    assert_int_equal(events->count, 2);
    events_note_level(events, 103, &now, WATCH_STUCK);
    assert_last(events, EVENT_ALERT, "stuck: ");
    watch_snapshot_close(&before);
    watch_snapshot_close(&now);
    stats_close(stats);
    assert_int_equal(rmdir(folder), 0);
    free(events);
}

static void
what_every_node_reports_is_kept_once(void **state)
{
    struct events *events = calloc(1, sizeof *events);
    struct event event = { .second = 50, .kind = EVENT_EPOCH, .text = "epoch 2" };

    (void)state;
    events_note(events, &event);
    event.rank = 1;
    event.second = 52;
    events_note(events, &event);
    assert_int_equal(events->count, 1);
    event.second = 90; /* that of another run */
    events_note(events, &event);
    assert_int_equal(events->count, 2);
    free(events);
}

static void
the_oldest_gives_way(void **state)
{
    struct events *events = calloc(1, sizeof *events);
    struct event event = { .kind = EVENT_EPOCH };

    (void)state;
    for (unsigned i = 0; i < EVENTS + 3; i++) {
        event.second = i;
        snprintf(event.text, sizeof event.text, "epoch %u", i);
        events_note(events, &event);
    }
    assert_string_equal(events_at(events, 0)->text, "epoch 3");
    assert_string_equal(events_at(events, EVENTS - 1)->text, "epoch 258");
    assert_null(events_at(events, EVENTS));
    free(events);
}

TEST_FILE(test_events)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(epochs_deaths_and_bad_levels_are_events),
        cmocka_unit_test(what_every_node_reports_is_kept_once),
        cmocka_unit_test(the_oldest_gives_way),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
