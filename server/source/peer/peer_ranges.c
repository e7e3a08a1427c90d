/* peer_ranges.c - ranges of files that other nodes have, in pieces that are asked for as rows are.
 */
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/peer/peer_private.h"

enum { PIECE_BYTES = 1 << 20 };

static struct peer_row
piece_at(const struct source_file *file, size_t bytes, uint64_t offset, size_t at)
{
    size_t count = bytes - at < PIECE_BYTES ? bytes - at : PIECE_BYTES;

    return (struct peer_row){ file, offset + at, (uint32_t)count };
}

struct peer_rows *
peer_ask_range(struct source_file *file, size_t bytes, uint64_t offset)
{
    size_t count = (bytes + PIECE_BYTES - 1) / PIECE_BYTES;
    struct peer_row *pieces = tnd_alloc((count + 1) * sizeof *pieces);
    struct peer_rows *rows;

    for (size_t i = 0; i < count; i++)
        pieces[i] = piece_at(file, bytes, offset, i * PIECE_BYTES);
    rows = peer_ask(file->peers, pieces, count);
    free(pieces);
    return rows;
}

tundish_status
peer_take_range(struct peer_rows *rows, const struct source_file *file, void *to, size_t bytes,
                uint64_t offset)
{
    tundish_status status = peer_rows_wait(rows);

    for (size_t at = 0; at < bytes && status == TUNDISH_OK; at += PIECE_BYTES) {
        const struct peer_row piece = piece_at(file, bytes, offset, at);

        memcpy((uint8_t *)to + at, peer_rows_find(rows, &piece), piece.bytes);
    }
    return status;
}

tundish_status
peer_read_range(struct source_file *file, void *to, size_t bytes, uint64_t offset)
{
    struct peer_rows *rows = peer_ask_range(file, bytes, offset);
    tundish_status status = peer_take_range(rows, file, to, bytes, offset);

    peer_rows_close(rows);
    return status;
}

tundish_status
peer_identify(struct source_file *file)
{
    struct peer_buffer text = { 0 };
    struct peer_request *request;
    struct byte_view answer;
    uint64_t size = 0;
    tundish_status status;

    peer_buffer_add_file(&text, file, 0);
    request = peer_request_send(file->peers, file->owner, PEER_ASK_SIZE, peer_buffer_view(&text));
    free(text.bytes);
    status = peer_request_wait(request);
    answer = (struct byte_view){ request->raw, request->raw_bytes };
    if (status == TUNDISH_OK && (!peer_take(&answer, &size, sizeof size) || size > INT64_MAX))
        status = tnd_fail(TUNDISH_E_CORRUPT, "%s: malformed answer about its size", file->name);
    peer_request_close(request);
    if (status != TUNDISH_OK)
        return status;
    pthread_mutex_lock(&file->services->lock);
    file->identity.size = size;
    pthread_mutex_unlock(&file->services->lock);
    return TUNDISH_OK;
}
