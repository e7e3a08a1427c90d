/* stats_writer.c - writes the file of metrics beside the socket.
 *
 * Entries grow from the front, tracks of events from the end. Writers hold the lock to add; readers
 * take no lock and never stop a writer. A reader looks only at what used_bytes and tracks_offset
 * cover, so an entry is complete before these count it. */
#include "stats/stats_writer.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/hash_farm.h"
#include "core/mapped.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/printable.h"
#include "core/status.h"
#include "stats/stats_private.h"
#include "stats/stats_relay.h"

/* The file is sparse and large enough for all that may come. Blocks are allocated one by one before
 * they are used, so that a full disk is an error here and not a SIGBUS later. */
static const uint64_t FILE_BYTES = UINT64_C(16) << 20;
static const uint64_t THREAD_BYTES = UINT64_C(1) << 20;
static const uint64_t FILE_BYTES_MAX = TND_STATS_FILE_BYTES_MAX;
static const uint64_t BLOCK_BYTES = UINT64_C(256) << 10;

struct unseen {
    struct unseen *next;
    alignas(TND_STATS_LINE) unsigned char bytes[];
};

/* Make the file under another name and rename it: a client sees the old server's file or a whole
 * new one. */
static tundish_status
make_file(const char *path, uint64_t file_bytes, int *ret_file, struct tnd_mapped **ret_map)
{
    char fresh[PATH_BYTES + 8];
    struct tnd_mapped *map = NULL;
    tundish_status status;
    int file, error;

    snprintf(fresh, sizeof fresh, "%s.new", path);
    unlink(fresh);
    file = open(fresh, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (file < 0)
        return tnd_fail_errno(errno, "cannot make %s", fresh);
    if (fcntl(file, F_OFD_SETLK, &tnd_stats_lock) != 0) {
        status = tnd_fail_errno(errno, "cannot lock %s", fresh);
        close(file);
        unlink(fresh);
        return status;
    }
    error = ftruncate(file, (off_t)file_bytes) != 0 ? errno
                                                    : posix_fallocate(file, 0, (off_t)BLOCK_BYTES);
    if (error != 0) {
        close(file);
        unlink(fresh);
        return tnd_fail(TUNDISH_E_SYSTEM, "no room for %s, which needs %llu KiB: %s%s", fresh,
                        (unsigned long long)BLOCK_BYTES / 1024, strerror(error),
                        error == EFBIG ? " (raise the limit for files, ulimit -f)" : "");
    }
    status = tnd_mapped_open(file, file_bytes, TND_MAPPED_WRITE, &map);
    if (status == TUNDISH_OK && rename(fresh, path) != 0)
        status = tnd_fail_errno(errno, "cannot make %s", path);
    if (status != TUNDISH_OK) {
        tnd_mapped_close(map);
        close(file);
        unlink(fresh);
        return status;
    }
    *ret_file = file;
    *ret_map = map;
    return TUNDISH_OK;
}

static void
fill_header(struct tnd_stats_header *header, uint64_t file_bytes)
{
    header->file_bytes = file_bytes;
    /* A new number for each server: a client notices that the file at its path is another one. */
    if (getrandom(&header->generation, sizeof header->generation, 0) < 0)
        header->generation = (uint64_t)tnd_clock_wall_ns();
    header->process = getpid();
    header->started_ns = tnd_clock_ns();
    header->started_wall_ns = tnd_clock_wall_ns();
    snprintf(header->version, sizeof header->version, "%s", TUNDISH_VERSION_TEXT);
    if (gethostname(header->node, sizeof header->node) != 0)
        strcpy(header->node, "?");
    header->node[sizeof header->node - 1] = '\0';
    tnd_stats_set(&header->used_bytes, sizeof *header);
    tnd_stats_set(&header->tracks_offset, file_bytes / TND_STATS_LINE * TND_STATS_LINE);
}

/* Keep the last warnings and errors of the log, so that a page can show them. */
static void
take_note(void *user, enum tnd_log_level level, const char *event, const char *sentence)
{
    struct stats *stats = user;
    struct tnd_stats_note *note;
    uint64_t number;
    size_t used;

    if (level > TND_LOG_WARNING)
        return;
    pthread_mutex_lock(&stats->lock);
    number = stats->note_count++;
    note = &stats->header->notes[number % TND_STATS_NOTES];
    /* The sequence is odd while the text changes, and a reader then leaves the note out. */
    atomic_fetch_add(&note->sequence, 1);
    note->level = level;
    note->wall_ns = tnd_clock_wall_ns();
    used = (size_t)snprintf(note->text, sizeof note->text, "%.60s: ", event);
    tnd_printable(sentence, note->text + used,
                  sizeof note->text - used); /* cut between characters */
    atomic_fetch_add(&note->sequence, 1);
    atomic_store_explicit(&stats->header->note_count, number + 1, memory_order_release);
    tnd_stats_add(
        level == TND_LOG_ERROR ? &stats->server->log_errors : &stats->server->log_warnings, 1);
    pthread_mutex_unlock(&stats->lock);
}

/* Make sure that bytes from..to are allocated on the disk. Entries grow upwards, tracks downwards.
 * Whole blocks are allocated, so that few entries need a system call. */
static bool
has_memory(struct stats *stats, uint64_t from, uint64_t to, bool upwards)
{
    uint64_t limit = upwards ? stats->entries_end : stats->tracks_begin;

    if (upwards ? to <= limit : from >= limit)
        return true;
    from = upwards ? limit : from / BLOCK_BYTES * BLOCK_BYTES;
    to = upwards ? (to + BLOCK_BYTES - 1) / BLOCK_BYTES * BLOCK_BYTES : limit;
    if (to > stats->file_bytes)
        to = stats->file_bytes;
    if (posix_fallocate(stats->file, (off_t)from, (off_t)(to - from)) != 0)
        return false;
    if (upwards)
        stats->entries_end = to;
    else
        stats->tracks_begin = from;
    return true;
}

/* Room for an entry at the end, or NULL. The caller holds the lock, fills the entry and counts it
 * with append. */
static void *
next_entry(struct stats *stats, uint32_t type, uint64_t byte_count)
{
    uint64_t used = atomic_load(&stats->used_bytes);
    uint64_t whole = (byte_count + TND_STATS_LINE - 1) / TND_STATS_LINE * TND_STATS_LINE;
    struct tnd_stats_entry *entry;

    /* Subtract rather than add: the two ends never cross. */
    if (whole > stats->tracks_offset - used || !has_memory(stats, used, used + whole, true))
        return NULL;
    entry = (void *)((char *)stats->header + used);
    entry->entry_bytes = whole;
    entry->type = type;
    return entry;
}

/* Publish the entry that next_entry gave. */
static void
append(struct stats *stats, uint64_t byte_count)
{
    uint64_t whole = (byte_count + TND_STATS_LINE - 1) / TND_STATS_LINE * TND_STATS_LINE;

    atomic_store(&stats->used_bytes, atomic_load(&stats->used_bytes) + whole);
    /* Release: a reader reads the header first and the entries with a later read(2), so it sees the
     * entries whole that used_bytes counts. */
    atomic_store_explicit(&stats->header->used_bytes, atomic_load(&stats->used_bytes),
                          memory_order_release);
}

/* A set that no client sees, so that a full file needs no check where things are counted. The
 * number of such sets is shown and logged once. */
static void *
take_unseen(struct stats *stats, uint64_t byte_count)
{
    struct unseen *unseen;
    uint64_t whole =
        (sizeof *unseen + byte_count + TND_STATS_LINE - 1) / TND_STATS_LINE * TND_STATS_LINE;

    unseen = aligned_alloc(TND_STATS_LINE, whole);
    tnd_must_have(unseen != NULL);
    memset(unseen, 0, whole);
    unseen->next = stats->unseen;
    stats->unseen = unseen;
    return unseen->bytes;
}

/* Count a set or text that found no room. The caller holds the lock. */
static void
count_unseen(struct stats *stats)
{
    stats->unseen_count++;
    if (stats->server != NULL)
        tnd_stats_set(&stats->server->unseen_sets, stats->unseen_count);
}

/* Release the lock and warn once. Not under the lock: the log calls take_note, which takes it. */
static void
unlock_and_say(struct stats *stats)
{
    bool says = stats->unseen_count > 0 && !stats->unseen_was_said;

    stats->unseen_was_said |= says;
    pthread_mutex_unlock(&stats->lock);
    if (says)
        tnd_log(TND_LOG_WARNING, "figures",
                "%s is full at %llu MiB, or its disk is full: some metrics are missing "
                "(tundish_server_unseen_sets counts them)",
                stats->path, (unsigned long long)stats->file_bytes >> 20);
}

uint64_t
stats_offset(const struct stats *stats, const void *values)
{
    const char *base = (const char *)stats->header;
    uint64_t offset = (uint64_t)((const char *)values - base);

    return (const char *)values > base && offset < stats->file_bytes
               ? offset - offsetof(struct tnd_stats_set_entry, values)
               : 0;
}

static bool
add_kind(struct stats *stats, enum tnd_stats_kind kind)
{
    const struct tnd_stats_description *about = tnd_stats_describe(kind);
    struct tnd_stats_kind_entry *entry;
    uint64_t byte_count = sizeof *entry + about->field_count * sizeof *entry->fields;

    if (stats->kinds[kind] != 0)
        return true;
    entry = next_entry(stats, TND_STATS_ENTRY_KIND, byte_count);
    if (entry == NULL)
        return false;
    snprintf(entry->name, sizeof entry->name, "%s", about->name);
    snprintf(entry->help, sizeof entry->help, "%s", about->help);
    entry->field_count = about->field_count;
    memcpy(entry->fields, about->fields, about->field_count * sizeof *entry->fields);
    stats->kinds[kind] = (uint64_t)((char *)entry - (char *)stats->header);
    append(stats, byte_count);
    return true;
}

static void
drop(struct stats *stats, enum tnd_stats_kind kind, void *slot)
{
    struct dropped *dropped = tnd_alloc(sizeof *dropped);

    *dropped = (struct dropped){ .next = stats->dropped, .kind = kind, .slot = slot };
    stats->dropped = dropped;
}

/* Reuse a dropped set of that kind, or NULL. Tracks have the kind TND_STATS_KINDS. */
static void *
take_dropped(struct stats *stats, enum tnd_stats_kind kind)
{
    for (struct dropped **link = &stats->dropped; *link != NULL; link = &(*link)->next)
        if ((*link)->kind == kind) {
            struct dropped *found = *link;
            void *slot = found->slot;

            *link = found->next;
            free(found);
            return slot;
        }
    return NULL;
}

static struct tnd_stats_set_entry *
set_of(void *values)
{
    return (void *)((char *)values - offsetof(struct tnd_stats_set_entry, values));
}

/* A dropped set or a new one; NULL if there is no room. */
static void *
take_set(struct stats *stats, enum tnd_stats_kind kind, const char *labels)
{
    void *values = take_dropped(stats, kind);
    struct tnd_stats_set_entry *set;
    uint64_t byte_count = sizeof *set + tnd_stats_describe(kind)->value_bytes;
    bool is_new = values == NULL;

    if (is_new && !add_kind(stats, kind))
        return NULL;
    set = is_new ? next_entry(stats, TND_STATS_ENTRY_SET, byte_count) : set_of(values);
    if (set == NULL)
        return NULL;
    set->kind_offset = stats->kinds[kind];
    snprintf(set->labels, sizeof set->labels, "%s", labels);
    /* Release: the labels are written before the set is live again. */
    atomic_store_explicit(&set->live, 1, memory_order_release);
    if (is_new)
        append(stats, byte_count);
    return set->values;
}

void *
stats_add(struct stats *stats, enum tnd_stats_kind kind, const char *labels)
{
    void *values;

    pthread_mutex_lock(&stats->lock);
    values = take_set(stats, kind, labels);
    if (values == NULL) {
        values = take_unseen(stats, tnd_stats_describe(kind)->value_bytes);
        count_unseen(stats);
    }
    unlock_and_say(stats);
    return values;
}

void
stats_drop(struct stats *stats, void *values)
{
    if (values == NULL || stats_offset(stats, values) == 0)
        return;
    pthread_mutex_lock(&stats->lock);
    for (int kind = 0; kind < TND_STATS_KINDS; kind++) {
        struct tnd_stats_set_entry *set = set_of(values);

        /* The entry itself tells its kind, by the offset of the kind's description. */
        if (stats->kinds[kind] == 0 || set->kind_offset != stats->kinds[kind])
            continue;
        atomic_store_explicit(&set->live, 0, memory_order_relaxed);
        memset(values, 0, tnd_stats_describe((enum tnd_stats_kind)kind)->value_bytes);
        drop(stats, (enum tnd_stats_kind)kind, values);
    }
    pthread_mutex_unlock(&stats->lock);
}

static bool
has_text(const struct stats *stats, const char *name, const char *stream)
{
    for (uint32_t i = 0; i < stats->text_count; i++)
        if (strcmp(stats->texts[i].name, name) == 0 && strcmp(stats->texts[i].stream, stream) == 0)
            return true;
    return false;
}

static void
remember_text(struct stats *stats, const char *name, const char *stream)
{
    struct text_name *text;

    stats->texts = tnd_realloc(stats->texts, stats->text_count + 1, sizeof *stats->texts);
    text = &stats->texts[stats->text_count++];
    snprintf(text->name, sizeof text->name, "%s", name);
    snprintf(text->stream, sizeof text->stream, "%s", stream);
}

void
stats_add_text(struct stats *stats, const char *name, const char *stream, const char *text)
{
    uint64_t text_bytes = strlen(text);
    char shown[TND_STATS_VALUE_BYTES];
    struct tnd_stats_text_entry *entry;
    uint64_t byte_count = sizeof *entry + text_bytes + 1;

    tnd_printable(stream, shown, sizeof shown); /* as in labels */
    pthread_mutex_lock(&stats->lock);
    if (has_text(stats, name, shown)) {
        pthread_mutex_unlock(&stats->lock);
        return;
    }
    entry = next_entry(stats, TND_STATS_ENTRY_TEXT, byte_count);
    if (entry != NULL) {
        snprintf(entry->name, sizeof entry->name, "%s", name);
        memcpy(entry->stream, shown, sizeof shown);
        entry->text_bytes = text_bytes;
        memcpy(entry->text, text, text_bytes + 1);
        append(stats, byte_count);
        remember_text(stats, name, shown);
    } else {
        count_unseen(stats);
    }
    unlock_and_say(stats);
}

struct tnd_stats_track_entry *
stats_add_track(struct stats *stats, const char *stream, const char *thread)
{
    struct tnd_stats_track_entry *track;
    uint64_t end;

    pthread_mutex_lock(&stats->lock);
    end = stats->tracks_offset;
    track = take_dropped(stats, TND_STATS_KINDS);
    if (track != NULL) {
        tnd_printable(stream, track->stream, sizeof track->stream);
        snprintf(track->thread, sizeof track->thread, "%s", thread);
    } else if (end - atomic_load(&stats->used_bytes) < sizeof *track ||
               !has_memory(stats, end - sizeof *track, end, false)) {
        track = take_unseen(stats, sizeof *track);
        count_unseen(stats);
    } else {
        stats->tracks_offset = end -= sizeof *track;
        track = (void *)((char *)stats->header + end);
        track->entry.entry_bytes = sizeof *track;
        track->entry.type = TND_STATS_ENTRY_TRACK;
        tnd_printable(stream, track->stream, sizeof track->stream);
        snprintf(track->thread, sizeof track->thread, "%s", thread);
        atomic_store_explicit(&stats->header->tracks_offset, end, memory_order_release);
    }
    unlock_and_say(stats);
    return track;
}

void
stats_drop_track(struct stats *stats, struct tnd_stats_track_entry *track)
{
    if (track == NULL)
        return;
    pthread_mutex_lock(&stats->lock);
    drop(stats, TND_STATS_KINDS, track);
    pthread_mutex_unlock(&stats->lock);
}

/* Escape backslash and quote, as Prometheus' text format asks. A newline cannot occur: the text is
 * printable. */
static size_t
quote(const char *value, char *text, size_t room)
{
    size_t used = 0;

    for (; *value != '\0'; value++) {
        bool escaped = *value == '\\' || *value == '"';

        if (used + 1 + escaped >= room)
            return room;
        if (escaped)
            text[used++] = '\\';
        text[used++] = *value;
    }
    text[used] = '\0';
    return used;
}

/* Cut a value that is too long and append a hash of all of it, so that values with the same
 * beginning stay different labels. */
static void
quote_value(const char *value, char quoted[TND_STATS_VALUE_BYTES])
{
    enum { HASH_BYTES = 18 };
    char printable[TND_STATS_VALUE_BYTES];
    size_t room = sizeof printable;

    if (tnd_printable(value, printable, room) < room &&
        quote(printable, quoted, TND_STATS_VALUE_BYTES) < TND_STATS_VALUE_BYTES)
        return;
    do {
        /* Escapes need room too: cut until the quoted text fits. */
        room -= HASH_BYTES;
        tnd_printable(value, printable, room);
    } while (quote(printable, quoted, TND_STATS_VALUE_BYTES - HASH_BYTES) >=
             TND_STATS_VALUE_BYTES - HASH_BYTES);
    snprintf(quoted + strlen(quoted), HASH_BYTES, "~%016llx",
             (unsigned long long)tnd_hash_farm(value, strlen(value)));
}

void
stats_label(char labels[TND_STATS_LABEL_BYTES], const char *key, const char *value)
{
    char quoted[TND_STATS_VALUE_BYTES];
    size_t used = strlen(labels);
    int added;

    quote_value(value, quoted);
    added = snprintf(labels + used, TND_STATS_LABEL_BYTES - used, "%s%s=\"%s\"",
                     used > 0 ? "," : "", key, quoted);
    must(added > 0 && used + (size_t)added < TND_STATS_LABEL_BYTES);
}

void
stats_label_number(char labels[TND_STATS_LABEL_BYTES], const char *key, uint64_t value)
{
    char text[24];

    snprintf(text, sizeof text, "%llu", (unsigned long long)value);
    stats_label(labels, key, text);
}

tundish_status
stats_open(const char *socket_path, uint32_t thread_count, struct stats **ret_stats)
{
    struct stats *stats = tnd_zalloc(1, sizeof *stats);
    uint64_t file_bytes = FILE_BYTES + thread_count * THREAD_BYTES;
    uint64_t bytes = file_bytes < FILE_BYTES_MAX ? file_bytes : FILE_BYTES_MAX;
    tundish_status status;

    snprintf(stats->path, sizeof stats->path, "%.120s.stats", socket_path);
    stats_relay_remove(stats->path); /* of a server that was killed */
    status = make_file(stats->path, bytes, &stats->file, &stats->map);
    if (status != TUNDISH_OK) {
        free(stats);
        return status;
    }
    pthread_mutex_init(&stats->lock, NULL);
    stats->header = tnd_mapped_bytes(stats->map);
    stats->file_bytes = bytes;
    fill_header(stats->header, bytes);
    stats->used_bytes = sizeof *stats->header;
    stats->entries_end = BLOCK_BYTES;
    stats->tracks_begin = stats->tracks_offset = bytes / TND_STATS_LINE * TND_STATS_LINE;
    stats->server = stats_add(stats, TND_STATS_KIND_server, "");
    stats->processors = processors_open();
    memory_pressure_open(&stats->memory_pressure);
    tnd_log_set_tap(take_note, stats);
    /* Last, with release: a client refuses the file until it finds the magic number. */
    atomic_store_explicit(&stats->header->magic, TND_STATS_MAGIC, memory_order_release);
    *ret_stats = stats;
    return TUNDISH_OK;
}

struct tnd_stats_server *
stats_server(struct stats *stats)
{
    return stats->server;
}

void
stats_show_state(struct stats *stats, enum tnd_stats_state state)
{
    if (stats != NULL)
        atomic_store_explicit(&stats->header->state, state, memory_order_relaxed);
}

void
stats_close(struct stats *stats)
{
    if (stats == NULL)
        return;
    /* First: a line that is logged now must not touch the file that goes away. */
    tnd_log_set_tap(NULL, NULL);
    if (tnd_stats_get_state(stats->header) != TND_STATS_STARTING)
        stats_show_state(stats, TND_STATS_STOPPED);
    if (atomic_load_explicit(&stats->has_relayed, memory_order_relaxed))
        stats_relay_remove(stats->path);
    unlink(stats->path);
    tnd_mapped_close(stats->map);
    close(stats->file);
    processors_close(stats->processors);
    free(stats->texts);
    while (stats->unseen != NULL) {
        struct unseen *next = stats->unseen->next;

        free(stats->unseen);
        stats->unseen = next;
    }
    while (stats->dropped != NULL)
        take_dropped(stats, stats->dropped->kind);
    pthread_mutex_destroy(&stats->lock);
    free(stats);
}
