/* session_state.c - one small file a stream, replaced as a whole. */
#include "session/checkpoint/session_state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/memory.h"
#include "core/must.h"
#include "core/own_file.h"
#include "core/read_write.h"
#include "session/nodes/session_seeds.h"
#include "session/session_private.h"
#include "shm/place.h"

static const int64_t CLAIM_PATIENCE_NS = 5000000000;
enum { CLAIM_LOOK_NS = 10000000 };

/* The name of one of a stream's files. As in a URL, encode '/', which could lead out of the folder,
 * and '%', which marks the encoding. */
static char *
file_name(const char *stream, const char *suffix)
{
    char *encoded = tnd_alloc(3 * strlen(stream) + 1), *next = encoded, *name;

    for (; *stream != '\0'; stream++)
        if (*stream == '/' || *stream == '%')
            next += sprintf(next, "%%%02X", (unsigned)*stream);
        else
            *next++ = *stream;
    *next = '\0';
    name = tnd_sprintf("%s.%s", encoded, suffix);
    free(encoded);
    return name;
}

static char *
path_of(const struct session *session, const char *suffix)
{
    char *name = file_name(session->plan->stream->name, suffix);
    char *path = tnd_sprintf("%s/%s", session->options.state, name);

    free(name);
    return path;
}

/* A server that was killed holds its claim until the kernel has freed its memory. */
static tundish_status
claim(int directory, const char *folder)
{
    int64_t deadline_ns = tnd_clock_deadline_ns(CLAIM_PATIENCE_NS);

    while (flock(directory, LOCK_EX | LOCK_NB) != 0) {
        /* Some file systems have no locks. */
        if (errno != EWOULDBLOCK && errno != EINTR)
            return TUNDISH_OK;
        if (tnd_clock_left_ns(deadline_ns) == 0)
            return tnd_fail(TUNDISH_E_SYSTEM,
                            "another server keeps its places in %s (--state): stop it, or choose "
                            "another folder",
                            folder);
        nanosleep(&(struct timespec){ .tv_nsec = CLAIM_LOOK_NS }, NULL);
    }
    return TUNDISH_OK;
}

tundish_status
session_state_check(const char *folder)
{
    struct stat stat_of;

    if (stat(folder, &stat_of) != 0 || access(folder, R_OK | W_OK | X_OK) != 0)
        return tnd_fail_errno(errno, "cannot save places in the folder %s (--state)", folder);
    if (!S_ISDIR(stat_of.st_mode))
        return tnd_fail(TUNDISH_E_ARGUMENT, "%s (--state) is not a folder", folder);
    return TUNDISH_OK;
}

/* Is there a name in the folder that matches? */
static bool
holds(const char *folder, const char *pattern)
{
    DIR *directory = opendir(folder);
    struct dirent *entry = NULL;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (fnmatch(pattern, entry->d_name, 0) == 0)
            break;
    if (directory != NULL)
        closedir(directory);
    return entry != NULL;
}

/* A place decides which rows are left out: nobody else may choose it. */
static tundish_status
refuse_planted(const char *path, const struct stat *about)
{
    return tnd_fail(TUNDISH_E_SYSTEM,
                    "%s belongs to user %u, in a folder that every user may write to: remove it, "
                    "and give --state a folder of your own",
                    path, (unsigned)about->st_uid);
}

tundish_status
session_state_folder(const char *folder, uint32_t node, uint32_t node_count, char **ret_folder)
{
    bool is_one = node_count == 1;
    struct stat about = { 0 };
    char *own;

    if (holds(folder, is_one ? "node-*" : "*.place"))
        return tnd_fail(TUNDISH_E_PLACE,
                        "the places in %s (--state) are of a job of %s, and this one has %" PRIu32
                        ": go on with as many nodes as then, or choose another folder and let "
                        "trainers open at places that they saved",
                        folder, is_one ? "several nodes" : "one node", node_count);
    own = is_one ? tnd_strdup(folder) : tnd_sprintf("%s/node-%" PRIu32, folder, node);
    if (!is_one && mkdir(own, 0700) != 0 && errno != EEXIST) {
        tundish_status status = tnd_fail_errno(errno, "cannot make the folder %s", own);

        free(own);
        return status;
    }
    if (!is_one && (lstat(own, &about) != 0 || tnd_own_file_is_planted(own, &about))) {
        tundish_status status = refuse_planted(own, &about);

        free(own);
        return status;
    }
    *ret_folder = own;
    return TUNDISH_OK;
}

tundish_status
session_state_claim(const char *folder, int *ret_claim)
{
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tundish_status status;

    if (directory < 0)
        return tnd_fail_errno(errno, "cannot open %s", folder);
    status = claim(directory, folder);
    if (status == TUNDISH_OK)
        *ret_claim = directory;
    else
        close(directory);
    return status;
}

/* The bytes of a file, to be freed; NULL and OK: there is none. */
static tundish_status
read_whole(const char *path, uint8_t **ret_bytes, size_t *ret_count)
{
    /* O_NONBLOCK: a pipe of that name must not hang the server. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;
    struct stat about = { 0 };
    uint8_t *bytes;

    *ret_bytes = NULL;
    if (file < 0)
        return errno == ENOENT ? TUNDISH_OK : tnd_fail_errno(errno, "cannot open %s", path);
    if (fstat(file, &about) != 0 || tnd_own_file_is_planted(path, &about)) {
        close(file);
        return refuse_planted(path, &about);
    }
    bytes = tnd_alloc(TND_PLACE_BYTES_MAX);
    error = tnd_read(file, bytes, TND_PLACE_BYTES_MAX, ret_count);
    close(file);
    if (error != 0) {
        free(bytes);
        return tnd_fail_errno(error, "cannot read %s", path);
    }
    *ret_bytes = bytes;
    return TUNDISH_OK;
}

static tundish_status
check_node_count(const struct session *session, const struct place *place)
{
    uint32_t now = session->plan->options.worker_count;

    if (place->split.workers == 0 || place->split.workers == now)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_PLACE,
                    "it was kept in a job of %" PRIu32 " nodes, and this one has %" PRIu32
                    ": go on with as many, or choose another folder (--state) and let trainers "
                    "open at places that they saved",
                    place->split.workers, now);
}

tundish_status
session_state_start(struct session *session, const uint8_t *bytes, size_t count)
{
    struct tnd_place standing;
    struct place place;
    tundish_status status = tnd_place_read(bytes, count, &standing);

    if (status == TUNDISH_OK)
        status = place_read(standing.header, standing.header_bytes, &place);
    if (status == TUNDISH_OK)
        status = check_node_count(session, &place);
    if (status == TUNDISH_OK)
        status = place_check(&place, session->plan, &session->place_files);
    if (status == TUNDISH_OK) {
        session_note_code(session, &place);
        struct feed_start start = {
            .epoch = standing.epoch,
            .step = standing.step,
            .place_epoch = standing.header_epoch,
            .bit_count = standing.bit_count,
            .bits = standing.bits,
        };

        start_barrier_close(session);
        status = start_barrier_lower(session, NULL, &place, &start);
        session->control.restored = session->control.barrier.is_restored = status == TUNDISH_OK;
    }
    return status;
}

/* 0: it is not known. */
static uint64_t
read_generation(const struct session *session)
{
    char *path = path_of(session, "server");
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    uint64_t generation = 0;
    size_t got = 0;

    if (file >= 0) {
        (void)tnd_read(file, &generation, sizeof generation, &got);
        close(file);
    }
    free(path);
    return got == sizeof generation ? generation : 0;
}

static bool
is_of_a_stream(const struct spec_file *file, const char *name)
{
    bool is = false;

    for (uint32_t i = 0; i < file->stream_count && !is; i++) {
        char *own = file_name(file->streams[i].name, "place");

        is = strcmp(own, name) == 0;
        free(own);
    }
    return is;
}

/* The stream has no place. Is there one of a stream that is gone, as after a renaming? */
static void
tell_stray_place(const struct session *session)
{
    const struct spec_file *file = session->options.file;
    const char *stream = session->plan->stream->name;
    DIR *directory = opendir(session->options.state);
    struct dirent *entry = NULL;

    while (directory != NULL && (entry = readdir(directory)) != NULL)
        if (fnmatch("*.place", entry->d_name, 0) == 0 && !is_of_a_stream(file, entry->d_name))
            break;
    if (entry != NULL) {
        char *own = file_name(stream, "place");

        tnd_log(TND_LOG_WARNING, "state",
                "stream %s begins at its start: %s has no place for it, and %s there is of no "
                "stream of %s. Was the stream renamed? Then stop this server and rename it to %s",
                stream, session->options.state, entry->d_name, file->path, own);
        free(own);
    }
    if (directory != NULL)
        closedir(directory);
}

tundish_status
session_state_restore(struct session *session)
{
    uint8_t *bytes = NULL;
    size_t count = 0;
    tundish_status status;
    char *path;

    if (session->options.state == NULL)
        return TUNDISH_OK;
    session->control.last_generation = read_generation(session);
    path = path_of(session, "place");
    status = read_whole(path, &bytes, &count);

    if (status == TUNDISH_OK && bytes != NULL) {
        status = session_state_start(session, bytes, count);
        if (status != TUNDISH_OK)
            status = tnd_fail_while(
                status, "continue at %s (remove this file to start at the beginning)", path);
    }
    if (status == TUNDISH_OK && bytes == NULL)
        tell_stray_place(session);
    if (status == TUNDISH_OK)
        status = session_seeds_agree(session, bytes != NULL);
    free(bytes);
    free(path);
    return status;
}

/* Over the older one, which is as long, and not synced: a power failure leaves no survivors. */
static void
note_server(struct session *session)
{
    uint64_t generation = session->options.server_generation;
    char *path;
    int file, error;

    must_hold(&session->kept.lock);
    if (!session->kept.lets_in || session->kept.is_noted)
        return;
    path = path_of(session, "server");
    file = open(path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    error = file < 0 ? errno : tnd_write(file, &generation, sizeof generation);
    session->kept.is_noted = error == 0;
    if (error != 0 && !session->kept.noting_failed) {
        (void)tnd_fail_errno(error, "cannot write %s", path);
        tnd_log(TND_LOG_ERROR, "state", "%s", tnd_error_text());
    }
    session->kept.noting_failed |= error != 0;
    if (file >= 0)
        close(file);
    free(path);
}

void
session_state_note_server(struct session *session)
{
    if (session->options.state == NULL)
        return;
    tnd_lock_take(&session->kept.lock);
    session->kept.lets_in = true;
    note_server(session);
    tnd_lock_release(&session->kept.lock);
}

static tundish_status
write_whole(const char *path, const uint8_t *bytes, size_t count)
{
    /* A new file: one that lies there could be another user's. */
    int file = unlink(path) == 0 || errno == ENOENT
                   ? open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600)
                   : -1;
    int error = file < 0 ? errno : tnd_write(file, bytes, count);

    if (error == 0 && fsync(file) != 0)
        error = errno;
    if (file >= 0)
        close(file);
    return error == 0 ? TUNDISH_OK : tnd_fail_errno(error, "cannot write %s", path);
}

static tundish_status
replace_file(const struct session *session, const uint8_t *bytes, size_t count)
{
    char *path = path_of(session, "place");
    char *fresh = tnd_sprintf("%s.new", path);
    /* The rename is durable only after the folder is synced, too. */
    int directory = open(session->options.state, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tundish_status status = directory >= 0
                                ? write_whole(fresh, bytes, count)
                                : tnd_fail_errno(errno, "cannot open %s", session->options.state);

    must_hold(&session->kept.lock);
    if (status == TUNDISH_OK && (rename(fresh, path) != 0 || fsync(directory) != 0))
        status = tnd_fail_errno(errno, "cannot replace %s", path);
    if (directory >= 0)
        close(directory);
    free(fresh);
    free(path);
    return status;
}

/* Find the header of a place in the epoch. After the last epoch use the last one's. */
static bool
find_header(struct session *session, struct tnd_place *place, uint8_t **ret_header)
{
    place->header_epoch = place->epoch;
    if (feed_place_of(session->feed, place->epoch, ret_header, &place->header_bytes))
        return true;
    place->header_epoch--;
    return place->epoch > 0 && place->step == 0 &&
           feed_place_of(session->feed, place->header_epoch, ret_header, &place->header_bytes);
}

static uint8_t *
bytes_of(const struct tnd_place *place)
{
    uint8_t *bytes = tnd_alloc(tnd_place_bytes(place));

    tnd_place_write(place, bytes);
    return bytes;
}

uint8_t *
session_state_place(struct session *session, size_t *ret_count)
{
    struct lane_queue_state bits = { 0 };
    struct tnd_place place = { 0 };
    uint8_t *header = NULL, *bytes;

    if (!feed_standing(session->feed, &place.epoch, &place.step, &bits) ||
        !find_header(session, &place, &header))
        return NULL;
    place.header = header;
    place.bits = bits.bits;
    place.bit_count = bits.bit_count;
    *ret_count = tnd_place_bytes(&place);
    bytes = bytes_of(&place);
    free(header);
    return bytes;
}

char *
session_state_token(struct session *session)
{
    size_t count;
    uint8_t *bytes = session_state_place(session, &count);
    char *token;

    if (bytes == NULL)
        return NULL;
    token = tnd_alloc(tnd_place_token_bytes(count));
    tnd_place_token_write(bytes, count, token);
    free(bytes);
    return token;
}

/* Takes ownership of the bytes, which may be NULL. */
static bool
keep_state(struct session *session, uint8_t *bytes, size_t count)
{
    must_hold(&session->kept.lock);
    must_in_debug(bytes == NULL || (count > 0 && count <= TND_PLACE_BYTES_MAX));
    if (bytes == NULL ||
        (count == session->kept.place_bytes && memcmp(bytes, session->kept.place, count) == 0)) {
        free(bytes);
        return false;
    }
    if (replace_file(session, bytes, count) != TUNDISH_OK) {
        /* Forget it, so that the next look writes it again, also if no step follows. */
        free(bytes);
        if (!session->kept.failed)
            tnd_log(TND_LOG_ERROR, "state", "places are not saved: %s", tnd_error_text());
        session->kept.failed = true;
        return false;
    }
    if (session->kept.failed)
        tnd_log(TND_LOG_NOTICE, "state", "places are saved again");
    session->kept.failed = false;
    free(session->kept.place);
    session->kept.place = bytes;
    session->kept.place_bytes = count;
    return true;
}

/* One lock covers both the look and the write, so that an older place never overwrites a newer
 * one. */
bool
session_state_keep(struct session *session)
{
    size_t count = 0;
    uint8_t *bytes;
    bool is_written;

    if (session->options.state == NULL)
        return false;
    tnd_lock_take(&session->kept.lock);
    note_server(session);
    bytes = session_state_place(session, &count);
    is_written = keep_state(session, bytes, count);
    tnd_lock_release(&session->kept.lock);
    return is_written;
}

bool
session_state_changes(struct session *session)
{
    return session->options.state != NULL && feed_is_owed(session->feed);
}

void
session_state_begin(struct session *session, uint64_t epoch, uint64_t step)
{
    struct tnd_place place = {
        .epoch = epoch,
        .step = step,
        .header_epoch = epoch,
        .bit_count = session->dealing.start.visited_count,
        .bits = session->dealing.start.visited,
    };
    uint8_t *header = NULL;

    if (session->options.state == NULL ||
        !feed_place_of(session->feed, epoch, &header, &place.header_bytes))
        return;
    place.header = header;
    tnd_lock_take(&session->kept.lock);
    keep_state(session, bytes_of(&place), tnd_place_bytes(&place));
    tnd_lock_release(&session->kept.lock);
    free(header);
}
