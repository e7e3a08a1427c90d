/* session_readers.c - metrics of trainers and their groups. */
#include "session/session_readers.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "session/session_private.h"
#include "tundish/tundish_device.h"

enum { CAPACITY_AT_FIRST = 16 };

struct session_reader_line {
    char group[TND_NAME_BYTES];
    uint32_t replica;
    int32_t pid; /* of a queue's reader, which nothing else tells from the others; else 0 */
    bool is_there;
    struct tnd_stats_reader *values;
    uint64_t waited_ns, taken, waits,
        short_waits;                 /* as last seen; waits of all buckets, the first */
    int64_t at_once;                 /* batches taken less waits, until they are counted */
    struct tnd_stats_device *device; /* NULL: it has none */
    uint32_t device_mode, device_why;
};

struct session_group_line {
    char name[TND_NAME_BYTES];
    bool is_there;
    struct tnd_stats_group *values;
    uint64_t attached, epoch, step, lag;
};

static void
label_reader(char labels[TND_STATS_LABEL_BYTES], const struct session *session,
             const struct session_reader_line *line)
{
    session_stats_label(labels, session);
    stats_label(labels, "group", line->group);
    stats_label_number(labels, "replica",
                       session->plan->options.worker * session->plan->replicas + line->replica);
    if (line->pid != 0)
        stats_label_number(labels, "process", (uint64_t)line->pid);
}

static int32_t
pid_of(const struct session *session, const struct feed_reader_stats *reader)
{
    return session->plan->stream->distribute.delivery == DELIVER_QUEUE ? reader->pid : 0;
}

static struct session_reader_line *
add_reader(struct session *session, const struct feed_reader_stats *reader)
{
    struct session_readers *readers = &session->counters.readers;
    struct session_reader_line *line;
    char labels[TND_STATS_LABEL_BYTES];

    readers->lines = tnd_realloc(readers->lines, readers->count + 1, sizeof *line);
    line = &readers->lines[readers->count++];
    *line =
        (struct session_reader_line){ .replica = reader->replica, .pid = pid_of(session, reader) };
    memcpy(line->group, reader->group, sizeof line->group);
    label_reader(labels, session, line);
    line->values = stats_add(session->counters.stats, TND_STATS_KIND_reader, labels);
    return line;
}

/* The line of a reader. Readers rarely change, so it is usually where it was last time. */
static struct session_reader_line *
find_reader(struct session *session, const struct feed_reader_stats *reader, uint32_t likely)
{
    struct session_readers *readers = &session->counters.readers;

    for (uint32_t i = 0; i < readers->count; i++) {
        struct session_reader_line *line = &readers->lines[(likely + i) % readers->count];

        if (line->replica == reader->replica && line->pid == pid_of(session, reader) &&
            strcmp(line->group, reader->group) == 0)
            return line;
    }
    return add_reader(session, reader);
}

static struct session_group_line *
find_group(struct session *session, const char *name)
{
    struct session_readers *readers = &session->counters.readers;
    struct session_group_line *line;
    char labels[TND_STATS_LABEL_BYTES];

    for (uint32_t i = 0; i < readers->group_count; i++)
        if (strcmp(readers->groups[i].name, name) == 0)
            return &readers->groups[i];
    readers->groups = tnd_realloc(readers->groups, readers->group_count + 1, sizeof *line);
    line = &readers->groups[readers->group_count++];
    *line = (struct session_group_line){ 0 };
    memcpy(line->name, name, sizeof line->name);
    session_stats_label(labels, session);
    stats_label(labels, "group", name);
    line->values = stats_add(session->counters.stats, TND_STATS_KIND_group, labels);
    return line;
}

static void
drop_reader(struct session_reader_line *line, struct stats *stats)
{
    stats_drop(stats, line->values);
    stats_drop(stats, line->device);
}

/* Drop the lines of readers and groups that feed_stats no longer lists. */
static void
drop_gone(struct session_readers *readers, struct stats *stats)
{
    uint32_t kept = 0;

    for (uint32_t i = 0; i < readers->count; i++)
        if (readers->lines[i].is_there)
            readers->lines[kept++] = readers->lines[i];
        else
            drop_reader(&readers->lines[i], stats);
    readers->count = kept;
    kept = 0;
    for (uint32_t i = 0; i < readers->group_count; i++)
        if (readers->groups[i].is_there)
            readers->groups[kept++] = readers->groups[i];
        else
            stats_drop(stats, readers->groups[i].values);
    readers->group_count = kept;
}

/* A trainer counts only its waits. Batches that it took without one belong into the shortest
 * bucket. */
static void
show_waits(struct session_reader_line *line, const struct feed_reader_stats *reader)
{
    struct tnd_stats_histogram *histogram = &line->values->next_wait;
    uint64_t waits = 0, first = tnd_stats_get(&histogram->buckets[0]);

    for (int i = 0; i < TND_WAIT_BUCKETS; i++) {
        waits += reader->wait_counts[i];
        if (i > 0)
            tnd_stats_set(&histogram->buckets[i], reader->wait_counts[i]);
    }
    line->at_once += (int64_t)(reader->taken_in_all - line->taken);
    line->at_once -= (int64_t)(waits - line->waits);
    first += reader->wait_counts[0] - line->short_waits;
    /* Waits and batches are read at different moments, so the difference may be negative for a
     * while. A histogram must not go back. */
    if (line->at_once > 0) {
        first += (uint64_t)line->at_once;
        line->at_once = 0;
    }
    tnd_stats_set(&histogram->buckets[0], first);
    tnd_stats_set(&histogram->sum_ns, (uint64_t)reader->waited_ns);
    line->taken = reader->taken_in_all;
    line->waits = waits;
    line->short_waits = reader->wait_counts[0];
}

/* The waits of its trainers count for the lane, even after the trainers are gone. */
static void
show_lane_wait(struct session *session, struct session_reader_line *line,
               const struct feed_reader_stats *reader)
{
    struct tnd_stats_lane *lane =
        session->counters.lanes[reader->replica % session->plan->replicas].values;
    uint64_t waited_ns = (uint64_t)reader->waited_ns;

    if (waited_ns > line->waited_ns)
        tnd_stats_add(&lane->wait, waited_ns - line->waited_ns);
    line->waited_ns = waited_ns;
}

static void
show_reader(struct session_reader_line *line, const struct feed_reader_stats *reader)
{
    struct tnd_stats_reader *values = line->values;

    line->is_there = true;
    tnd_stats_set(&values->attached, reader->attached);
    tnd_stats_set(&values->died, reader->died);
    tnd_stats_set(&values->process, (uint64_t)reader->pid);
    tnd_stats_set(&values->published, reader->published);
    tnd_stats_set(&values->taken, reader->taken);
    tnd_stats_set(&values->released, reader->released);
    tnd_stats_set(&values->wait, (uint64_t)reader->waited_ns);
    tnd_stats_set(&values->waiting, reader->waits_ns > 0 ? (uint64_t)reader->waits_ns : 0);
    tnd_stats_set(&values->silent, (uint64_t)reader->silent_ns);
    tnd_stats_set(&values->usual_step, (uint64_t)reader->usual_step_ns);
    tnd_stats_set(&values->pauses, reader->pace.pauses);
    tnd_stats_set(&values->paused, reader->pace.paused_ns);
    tnd_stats_set(&values->pause_every, reader->pace.every);
    show_waits(line, reader);
}

/* The words for what a trainer wrote, which may be anything. */
static const char *
device_mode(uint32_t mode)
{
    return mode == TUNDISH_DEVICE_COPY ? "copy" : mode == TUNDISH_DEVICE_PIN ? "pin" : "unknown";
}

static const char *
device_why(uint32_t why)
{
    static const char *const words[] = {
        [TUNDISH_DEVICE_ASKED] = "as the program asked",
        [TUNDISH_DEVICE_REGISTERED] = "since the driver took the shared memory",
        [TUNDISH_DEVICE_UNSUPPORTED] =
            "since the device cannot read memory that its process may not write",
        [TUNDISH_DEVICE_REFUSED] = "since the shared memory could not be registered",
        [TUNDISH_DEVICE_SLOW] = "since the driver took too long over the shared memory",
    };

    return why < sizeof words / sizeof *words && words[why] != NULL ? words[why]
                                                                    : "for an unknown reason";
}

/* Mode and reason are labels, so another mode is another set. A trainer that is gone keeps its
 * last figures. */
static void
show_device(struct session *session, struct session_reader_line *line,
            const struct device_stats *device)
{
    char labels[TND_STATS_LABEL_BYTES];

    if (device->mode == 0)
        return;
    if (line->device != NULL &&
        (line->device_mode != device->mode || line->device_why != device->why)) {
        stats_drop(session->counters.stats, line->device);
        line->device = NULL;
    }
    if (line->device == NULL) {
        label_reader(labels, session, line);
        stats_label(labels, "mode", device_mode(device->mode));
        stats_label(labels, "why", device_why(device->why));
        line->device = stats_add(session->counters.stats, TND_STATS_KIND_device, labels);
        line->device_mode = device->mode;
        line->device_why = device->why;
        /* The library says nothing itself, so it is the server that tells of what did not work. */
        if (device->mode == TUNDISH_DEVICE_COPY && device->why != TUNDISH_DEVICE_ASKED)
            tnd_log(
                TND_LOG_NOTICE, "trainer",
                "stream %s: replica %u of group \"%s\" copies batches through its own memory, %s",
                session->plan->stream->name,
                session->plan->options.worker * session->plan->replicas + line->replica,
                line->group, device_why(device->why));
    }
    tnd_stats_set(&line->device->copied, device->copied_bytes);
    tnd_stats_set(&line->device->copy, device->copy_ns);
    tnd_stats_set(&line->device->kernel, device->kernel_ns);
    tnd_stats_set(&line->device->wait, device->waited_ns);
}

/* The group's position is that of its slowest replica. */
static void
add_to_group(struct session_group_line *group, const struct feed_reader_stats *reader)
{
    uint64_t lag = reader->published > reader->taken ? reader->published - reader->taken : 0;
    bool is_first = !group->is_there;

    group->is_there = true;
    group->attached = (is_first ? 0 : group->attached) + reader->attached;
    group->lag = is_first || lag > group->lag ? lag : group->lag;
    if (is_first || reader->epoch < group->epoch ||
        (reader->epoch == group->epoch && reader->step < group->step)) {
        group->epoch = reader->epoch;
        group->step = reader->step;
    }
}

static void
show_groups(struct session_readers *readers)
{
    for (uint32_t i = 0; i < readers->group_count; i++) {
        const struct session_group_line *group = &readers->groups[i];

        tnd_stats_set(&group->values->attached, group->attached);
        tnd_stats_set(&group->values->epoch, group->epoch);
        tnd_stats_set(&group->values->step, group->step);
        tnd_stats_set(&group->values->lag, group->lag);
    }
}

static uint32_t
look_at_feed(struct session *session)
{
    struct session_readers *readers = &session->counters.readers;
    uint32_t count = feed_stats(session->feed, readers->seen, readers->capacity);

    if (count <= readers->capacity)
        return count;
    readers->capacity = count > CAPACITY_AT_FIRST ? 2 * count : CAPACITY_AT_FIRST;
    readers->seen = tnd_realloc(readers->seen, readers->capacity, sizeof *readers->seen);
    count = feed_stats(session->feed, readers->seen, readers->capacity);
    return count < readers->capacity ? count : readers->capacity;
}

void
session_readers_show(struct session *session)
{
    struct session_readers *readers = &session->counters.readers;
    uint32_t count = look_at_feed(session);

    for (uint32_t i = 0; i < readers->count; i++)
        readers->lines[i].is_there = false;
    for (uint32_t i = 0; i < readers->group_count; i++)
        readers->groups[i].is_there = false;
    for (uint32_t i = 0; i < count; i++) {
        const struct feed_reader_stats *reader = &readers->seen[i];
        struct session_reader_line *line = find_reader(session, reader, i);

        show_reader(line, reader);
        show_lane_wait(session, line, reader);
        show_device(session, line, &reader->device);
        add_to_group(find_group(session, reader->group), reader);
    }
    drop_gone(readers, session->counters.stats);
    show_groups(readers);
}

void
session_readers_close(struct session_readers *readers, struct stats *stats)
{
    for (uint32_t i = 0; i < readers->count; i++)
        drop_reader(&readers->lines[i], stats);
    for (uint32_t i = 0; i < readers->group_count; i++)
        stats_drop(stats, readers->groups[i].values);
    free(readers->lines);
    free(readers->groups);
    free(readers->seen);
}
