/* stats.c - the frame of the metrics file, for both sides, and how to read it safely. */
#include "shm/stats.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/must.h"
#include "core/read_write.h"
#include "core/status.h"
#include "shm/channel.h"
#include "shm/layout.h"
#include "shm/trust.h"

_Static_assert(ATOMIC_LLONG_LOCK_FREE == 2, "shared atomics must not need a lock");
_Static_assert((int)TND_STATS_BUCKETS == (int)TND_WAIT_BUCKETS, "trainers count as servers do");
_Static_assert(sizeof(struct tnd_stats_note) == 512, "notes are whole lines");
_Static_assert(offsetof(struct tnd_stats_set_entry, values) == 640, "values start a line");
_Static_assert(sizeof(struct tnd_stats_header) % TND_STATS_LINE == 0, "entries start a line");

#define STATS_KIND(kind, help) static const struct tnd_stats_field fields_of_##kind[] = {
#define STATS_FIELD(kind, field, type, unit, help)                                                 \
    { #field, help, TND_STATS_##type, TND_STATS_##unit, offsetof(struct tnd_stats_##kind, field) },
#define STATS_KIND_END(kind)                                                                       \
    }                                                                                              \
    ;
#include "shm/stats.def"

static const struct tnd_stats_description descriptions[] = {
#define STATS_KIND(kind, help)                                                                     \
    { #kind, help, fields_of_##kind, sizeof fields_of_##kind / sizeof *fields_of_##kind,           \
      sizeof(struct tnd_stats_##kind) },
#define STATS_FIELD(kind, field, type, unit, help)
#define STATS_KIND_END(kind)
#include "shm/stats.def"
};

const struct tnd_stats_description *
tnd_stats_describe(enum tnd_stats_kind kind)
{
    must_in_debug(kind < sizeof descriptions / sizeof *descriptions);
    return &descriptions[kind];
}

uint64_t
tnd_stats_bucket_ns(unsigned bucket)
{
    return bucket + 1 < TND_STATS_BUCKETS ? UINT64_C(1024) << bucket : UINT64_MAX;
}

static bool
ends_with_nul(const char *text, size_t bytes)
{
    return memchr(text, '\0', bytes) != NULL;
}

static bool
track_is_whole(const struct tnd_stats_track_entry *track)
{
    return ends_with_nul(track->stream, sizeof track->stream) &&
           ends_with_nul(track->thread, sizeof track->thread);
}

/* A larger file is not a server's: it is refused before memory is allocated for a copy. */
static const uint64_t FILE_BYTES_MAX = TND_STATS_FILE_BYTES_MAX;

/* Another node's metrics come once a second: after several missing ones that node counts as dead.
 */
static const uint64_t RELAY_SILENCE_NS = UINT64_C(6000000000);

tundish_status
tnd_stats_open_server(const char *socket_path, struct tnd_stats_file *ret_file)
{
    char path[160];
    tundish_status status = tnd_channel_check_folder(socket_path);

    if (status != TUNDISH_OK)
        return status;
    snprintf(path, sizeof path, "%.120s.stats", socket_path);
    return tnd_stats_open_file(path, ret_file);
}

tundish_status
tnd_stats_open_file(const char *path, struct tnd_stats_file *ret_file)
{
    struct stat about;
    /* NOFOLLOW and NONBLOCK: another user may have put a link or a pipe at a path in /tmp. */
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);

    if (descriptor < 0 && errno == ENOENT)
        return tnd_fail(TUNDISH_E_SERVER_GONE, "%s does not exist", path);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot open %s", path);
    if (fstat(descriptor, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(descriptor);
        return tnd_fail(TUNDISH_E_SYSTEM, "%s is not a file", path);
    }
    if (!tnd_trust_user(about.st_uid)) {
        close(descriptor);
        return tnd_fail(TUNDISH_E_SYSTEM,
                        "%s belongs to user %u, neither to this user nor to root: set "
                        "TUNDISH_SERVER_UID=%u to trust that user",
                        path, (unsigned)about.st_uid, (unsigned)about.st_uid);
    }
    *ret_file = (struct tnd_stats_file){ .descriptor = descriptor,
                                         .device = (uint64_t)about.st_dev,
                                         .inode = (uint64_t)about.st_ino };
    return TUNDISH_OK;
}

void
tnd_stats_close(struct tnd_stats_file *file)
{
    if (file->descriptor >= 0)
        close(file->descriptor);
    free(file->header);
    *file = (struct tnd_stats_file)TND_STATS_FILE_NONE;
}

static tundish_status
fail_at_start(void)
{
    return tnd_fail(TUNDISH_E_LAYOUT, "the server is starting: it has no metrics yet");
}

/* Read all of it, or fail with E_LAYOUT: a server that starts has not written all of its file yet.
 */
static tundish_status
read_at(int descriptor, void *bytes, uint64_t byte_count, uint64_t offset)
{
    size_t got = 0;

    if (tnd_read_at(descriptor, bytes, byte_count, offset, &got) != 0 || got < byte_count)
        return tnd_fail(TUNDISH_E_LAYOUT, "the metrics file is too short");
    return TUNDISH_OK;
}

/* Make room for that many bytes and keep the ones copied so far. */
static tundish_status
grow(struct tnd_stats_file *file, uint64_t byte_count)
{
    uint64_t capacity = (byte_count + TND_STATS_LINE - 1) / TND_STATS_LINE * TND_STATS_LINE;
    void *bytes;

    must_in_debug(byte_count <= FILE_BYTES_MAX && (file->header != NULL) == (file->capacity > 0));
    if (capacity <= file->capacity)
        return TUNDISH_OK;
    bytes = aligned_alloc(TND_STATS_LINE, capacity);
    if (bytes == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a copy of the metrics");
    if (file->header != NULL)
        memcpy(bytes, file->header, file->capacity);
    free(file->header);
    file->header = bytes;
    file->capacity = capacity;
    return TUNDISH_OK;
}

static tundish_status
check_header(const struct tnd_stats_header *header)
{
    uint64_t used = atomic_load_explicit(&header->used_bytes, memory_order_relaxed);

    uint64_t magic = atomic_load_explicit(&header->magic, memory_order_relaxed);

    /* The server stores it last. */
    if (magic == 0)
        return fail_at_start();
    if (magic != TND_STATS_MAGIC)
        return tnd_fail(TUNDISH_E_LAYOUT, "the metrics have another version");
    /* Quotes and newlines in the names would forge lines of /metrics. */
    if (used < sizeof *header || used > FILE_BYTES_MAX || used > header->file_bytes ||
        !ends_with_nul(header->version, sizeof header->version) ||
        !ends_with_nul(header->node, sizeof header->node) ||
        strpbrk(header->node, "\"\\\n") != NULL || strpbrk(header->version, "\"\\\n") != NULL)
        return tnd_fail(TUNDISH_E_LAYOUT, "the metrics file is damaged");
    return TUNDISH_OK;
}

/* The lock belongs to the open file, not to the process: any process that opens the file again
 * meets it. */
const struct flock tnd_stats_lock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };

static bool
is_locked(int descriptor)
{
    struct flock lock = tnd_stats_lock;

    return fcntl(descriptor, F_OFD_GETLK, &lock) == 0 && lock.l_type != F_UNLCK;
}

tundish_status
tnd_stats_read(struct tnd_stats_file *file)
{
    tundish_status status = grow(file, sizeof *file->header);

    must_in_debug(file->descriptor >= 0);
    file->byte_count = 0;
    /* Before the header: a server that stops says so there first. */
    file->is_locked = is_locked(file->descriptor);
    /* The header first: it says how much is used. Entries are appended before `used_bytes` grows,
     * so all up to there are complete. */
    if (status == TUNDISH_OK)
        status = read_at(file->descriptor, file->header, sizeof *file->header, 0) == TUNDISH_OK
                     ? TUNDISH_OK
                     : fail_at_start();
    if (status == TUNDISH_OK)
        status = check_header(file->header);
    if (status == TUNDISH_OK) {
        uint64_t used = atomic_load_explicit(&file->header->used_bytes, memory_order_relaxed);

        status = grow(file, used);
        if (status == TUNDISH_OK)
            status = read_at(file->descriptor, (char *)file->header + sizeof *file->header,
                             used - sizeof *file->header, sizeof *file->header);
        file->byte_count = status == TUNDISH_OK ? used : 0;
    }
    return status;
}

tundish_status
tnd_stats_read_tracks(const struct tnd_stats_file *file, struct tnd_stats_track_entry **ret_tracks,
                      uint32_t *ret_count)
{
    uint64_t offset = tnd_stats_get(&file->header->tracks_offset);
    uint64_t end = file->header->file_bytes / TND_STATS_LINE * TND_STATS_LINE;
    struct tnd_stats_track_entry *tracks;
    tundish_status status;

    must_in_debug(file->descriptor >= 0 && file->byte_count > 0);
    if (offset < sizeof *file->header || offset > end || end > FILE_BYTES_MAX ||
        (end - offset) % sizeof *tracks != 0)
        return tnd_fail(TUNDISH_E_LAYOUT, "the metrics file is damaged");
    tracks = aligned_alloc(TND_STATS_LINE, end - offset + sizeof *tracks);
    if (tracks == NULL)
        return tnd_fail(TUNDISH_E_MEMORY, "no memory for a copy of the tracks");
    status = read_at(file->descriptor, tracks, end - offset, offset);
    for (uint64_t i = 0; status == TUNDISH_OK && i < (end - offset) / sizeof *tracks; i++)
        if (!track_is_whole(&tracks[i]))
            status = tnd_fail(TUNDISH_E_LAYOUT, "the metrics file is damaged");
    if (status != TUNDISH_OK) {
        free(tracks);
        return status;
    }
    *ret_tracks = tracks;
    *ret_count = (uint32_t)((end - offset) / sizeof *tracks);
    return TUNDISH_OK;
}

static uint64_t
relay_silence_ns(const struct tnd_stats_header *header)
{
    int64_t every_ns = header->relay_every_ns;

    if (every_ns <= 0 || every_ns > INT64_MAX / 3 || 3 * (uint64_t)every_ns < RELAY_SILENCE_NS)
        return RELAY_SILENCE_NS;
    return 3 * (uint64_t)every_ns;
}

bool
tnd_stats_is_alive(const struct tnd_stats_file *file)
{
    int64_t relayed_ns = atomic_load_explicit(&file->header->relayed_ns, memory_order_relaxed);

    /* A relayed file tells of a server of another machine, which has no lock here. */
    if (tnd_stats_get_state(file->header) == TND_STATS_STOPPED)
        return false;
    if (relayed_ns != 0)
        return (uint64_t)tnd_clock_ns() - (uint64_t)relayed_ns < relay_silence_ns(file->header);
    return file->is_locked;
}

/* The smallest size of an entry of a type. */
static uint64_t
least_bytes(uint32_t type)
{
    switch (type) {
    case TND_STATS_ENTRY_KIND:
        return sizeof(struct tnd_stats_kind_entry);
    case TND_STATS_ENTRY_SET:
        return sizeof(struct tnd_stats_set_entry);
    case TND_STATS_ENTRY_TEXT:
        return sizeof(struct tnd_stats_text_entry);
    default:
        return sizeof(struct tnd_stats_entry);
    }
}

static bool
kind_is_whole(const struct tnd_stats_kind_entry *kind)
{
    uint64_t room = kind->entry.entry_bytes - sizeof *kind;

    if (!ends_with_nul(kind->name, sizeof kind->name) ||
        !ends_with_nul(kind->help, sizeof kind->help) ||
        kind->field_count > room / sizeof *kind->fields)
        return false;
    for (uint32_t i = 0; i < kind->field_count; i++)
        if (!ends_with_nul(kind->fields[i].name, sizeof kind->fields[i].name) ||
            !ends_with_nul(kind->fields[i].help, sizeof kind->fields[i].help) ||
            kind->fields[i].offset % 8 != 0)
            return false;
    return true;
}

static bool
text_is_whole(const struct tnd_stats_text_entry *text)
{
    uint64_t room = text->entry.entry_bytes - sizeof *text;

    return ends_with_nul(text->name, sizeof text->name) &&
           ends_with_nul(text->stream, sizeof text->stream) && text->text_bytes < room &&
           text->text[text->text_bytes] == '\0';
}

static bool
is_whole(const struct tnd_stats_entry *entry)
{
    switch (entry->type) {
    case TND_STATS_ENTRY_KIND:
        return kind_is_whole((const void *)entry);
    case TND_STATS_ENTRY_TEXT:
        return text_is_whole((const void *)entry);
    default:
        return true; /* sets: tnd_stats_kind_of */
    }
}

/* The entry at an offset, or NULL if none can begin there. Offsets come from the file, so they are
 * checked in full. */
static const struct tnd_stats_entry *
entry_at(const struct tnd_stats_file *file, uint64_t offset)
{
    uint64_t used = file->byte_count;
    const struct tnd_stats_entry *entry;

    must_in_debug(used <= file->capacity);
    if (offset < sizeof *file->header || offset % TND_STATS_LINE != 0 || offset >= used ||
        used - offset < sizeof *entry)
        return NULL;
    entry = (const void *)((const char *)file->header + offset);
    if (entry->entry_bytes > used - offset || entry->entry_bytes < least_bytes(entry->type) ||
        entry->entry_bytes % TND_STATS_LINE != 0)
        return NULL;
    return is_whole(entry) ? entry : NULL;
}

const struct tnd_stats_entry *
tnd_stats_next(const struct tnd_stats_file *file, const struct tnd_stats_entry *previous)
{
    uint64_t offset = sizeof *file->header;

    must_in_debug(previous == NULL ||
                  ((const char *)previous > (const char *)file->header &&
                   (const char *)previous < (const char *)file->header + file->byte_count));
    if (previous != NULL)
        offset =
            (uint64_t)((const char *)previous - (const char *)file->header) + previous->entry_bytes;
    return entry_at(file, offset);
}

static uint64_t
field_bytes(const struct tnd_stats_field *field)
{
    return field->type == TND_STATS_HISTOGRAM ? sizeof(struct tnd_stats_histogram)
                                              : sizeof(uint64_t);
}

/* Are they key="value",... without control characters? They go into pages of metrics as they are,
 * where a newline would forge a figure. */
static bool
labels_are_whole(const struct tnd_stats_set_entry *set)
{
    const char *at = set->labels;

    if (!ends_with_nul(set->labels, sizeof set->labels))
        return false;
    while (*at != '\0') {
        size_t key = strspn(at, "abcdefghijklmnopqrstuvwxyz_");

        if (key == 0 || at[key] != '=' || at[key + 1] != '"')
            return false;
        for (at += key + 2; *at != '"'; at++) {
            at += *at == '\\' && at[1] != '\0';
            if ((unsigned char)*at < ' ')
                return false;
        }
        at++;
        if (*at == ',' && at[1] != '\0')
            at++;
        else if (*at != '\0')
            return false;
    }
    return true;
}

const struct tnd_stats_kind_entry *
tnd_stats_kind_of(const struct tnd_stats_file *file, const struct tnd_stats_entry *entry)
{
    const struct tnd_stats_set_entry *set = (const void *)entry;
    const struct tnd_stats_kind_entry *kind;
    uint64_t room;

    if (entry->type != TND_STATS_ENTRY_SET || !labels_are_whole(set))
        return NULL;
    kind = (const void *)entry_at(file, set->kind_offset);
    if (kind == NULL || kind->entry.type != TND_STATS_ENTRY_KIND)
        return NULL;
    /* Every offset of every field, since readers then index without looking. */
    room = entry->entry_bytes - sizeof *set;
    for (uint32_t i = 0; i < kind->field_count; i++)
        if (kind->fields[i].offset > room ||
            room - kind->fields[i].offset < field_bytes(&kind->fields[i]))
            return NULL;
    return kind;
}
