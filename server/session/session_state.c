/* session_state.c - one small file a stream, replaced as a whole. */
#include "session/session_state.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "session/session_private.h"
#include "shm/place.h"

/* --- restoring ----------------------------------------------------------------------------------
 */

/* The bytes of a file, to be freed; NULL and OK: there is none. */
static tundish_status
read_whole(const char *path, uint8_t **ret_bytes, size_t *ret_count)
{
    FILE *file = fopen(path, "re");
    uint8_t *bytes;
    size_t count;

    *ret_bytes = NULL;
    if (file == NULL)
        return errno == ENOENT ? TUNDISH_OK : tnd_fail_errno(errno, "open %s", path);
    bytes = tnd_alloc(TND_PLACE_BYTES_MAX);
    count = fread(bytes, 1, TND_PLACE_BYTES_MAX, file);
    fclose(file);
    *ret_bytes = bytes;
    *ret_count = count;
    return TUNDISH_OK;
}

static tundish_status
start_at(struct session *session, const uint8_t *bytes, size_t count)
{
    struct tnd_place standing;
    struct place place;
    tundish_status status = tnd_place_read(bytes, count, &standing);

    if (status == TUNDISH_OK)
        status = place_read(standing.header, standing.header_bytes, &place);
    if (status == TUNDISH_OK)
        status = place_check(&place, session->plan, &session->place_files);
    if (status == TUNDISH_OK) {
        struct feed_start start = {
            .epoch = standing.epoch,
            .step = standing.step,
            .place_epoch = standing.header_epoch,
            .bit_count = standing.bit_count,
            .bits = standing.bits,
        };

        session_gate_close(session);
        status = session_gate_lower(session, &place, &start);
        session->restored = status == TUNDISH_OK;
    }
    return status;
}

tundish_status
session_state_restore(struct session *session, const char *folder)
{
    char *path = tnd_sprintf("%s/%s.place", folder, session->plan->stream->name);
    uint8_t *bytes = NULL;
    size_t count = 0;
    tundish_status status = read_whole(path, &bytes, &count);

    if (status == TUNDISH_OK && bytes != NULL) {
        status = start_at(session, bytes, count);
        if (status != TUNDISH_OK)
            status = tnd_fail_while(status, "go on at %s (remove it to begin anew)", path);
    }
    free(bytes);
    free(path);
    return status;
}

/* --- keeping ------------------------------------------------------------------------------------
 */

static tundish_status
write_whole(const char *path, const uint8_t *bytes, size_t count)
{
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool good = file >= 0 && write(file, bytes, count) == (ssize_t)count && fsync(file) == 0;
    int error = errno;

    if (file >= 0)
        close(file);
    return good ? TUNDISH_OK : tnd_fail_errno(error, "write %s", path);
}

static tundish_status
replace(const char *folder, const char *name, const uint8_t *bytes, size_t count)
{
    char *path = tnd_sprintf("%s/%s.place", folder, name);
    char *fresh = tnd_sprintf("%s.new", path);
    int directory = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tundish_status status = directory >= 0 ? write_whole(fresh, bytes, count)
                                           : tnd_fail_errno(errno, "open %s", folder);

    if (status == TUNDISH_OK && (rename(fresh, path) != 0 || fsync(directory) != 0))
        status = tnd_fail_errno(errno, "replace %s", path);
    if (directory >= 0)
        close(directory);
    free(fresh);
    free(path);
    return status;
}

/* What a place in the epoch carries. Behind the last epoch that is the last one's. */
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

/* Where the stream stands, as the bytes of a place; NULL: nothing was published yet. */
static uint8_t *
standing_place(struct session *session, size_t *ret_count)
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
    bytes = tnd_alloc(*ret_count);
    tnd_place_write(&place, bytes);
    free(header);
    return bytes;
}

char *
session_state_token(struct session *session)
{
    size_t count;
    uint8_t *bytes = standing_place(session, &count);
    char *token;

    if (bytes == NULL)
        return NULL;
    token = tnd_alloc(tnd_place_token_bytes(count));
    tnd_place_token_write(bytes, count, token);
    free(bytes);
    return token;
}

tundish_status
session_state_keep(struct session *session, const char *folder)
{
    size_t count;
    uint8_t *bytes = standing_place(session, &count);
    tundish_status status = TUNDISH_OK;

    if (bytes == NULL)
        return TUNDISH_OK;
    if (count != session->kept_bytes || memcmp(bytes, session->kept, count) != 0) {
        status = replace(folder, session->plan->stream->name, bytes, count);
        free(session->kept);
        session->kept = bytes;
        session->kept_bytes = count;
        bytes = NULL;
    }
    free(bytes);
    return status;
}
