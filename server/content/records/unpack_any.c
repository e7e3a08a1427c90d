/* unpack_any.c - libarchive as a stream of bytes. Only filters that run in this process are
 * enabled: for others libarchive would start programs. Archives within the stream are left to the
 * scanner. */
#include "content/records/unpack_any.h"

#include <archive.h>
#include <archive_entry.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/memory.h"

enum { BLOCK_BYTES = 256 << 10 };

struct unpack_any {
    struct archive *archive;
    int descriptor;
    int opened; /* ARCHIVE_OK; ARCHIVE_EOF: an empty file; else it could not be read */
};

struct unpack_any *
unpack_any_open(int descriptor)
{
    struct unpack_any *unpack = tnd_zalloc(1, sizeof *unpack);
    struct archive *archive = unpack->archive = archive_read_new();
    struct archive_entry *entry;

    unpack->descriptor = descriptor;
    unpack->opened = ARCHIVE_FATAL;
    if (archive == NULL)
        return unpack;
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    archive_read_support_filter_lz4(archive);
    archive_read_support_format_raw(archive);
    archive_read_support_format_empty(archive);
    unpack->opened = archive_read_open_fd(archive, descriptor, BLOCK_BYTES);
    if (unpack->opened == ARCHIVE_OK)
        unpack->opened = archive_read_next_header(archive, &entry);
    return unpack;
}

void
unpack_any_close(struct unpack_any *unpack)
{
    if (unpack == NULL)
        return;
    archive_read_free(unpack->archive);
    free(unpack);
}

static tundish_status
damaged(const struct unpack_any *unpack)
{
    const char *reason =
        unpack->archive == NULL ? "no memory" : archive_error_string(unpack->archive);
    long long at = unpack->archive == NULL ? -1 : archive_filter_bytes(unpack->archive, -1);

    /* libarchive forgets how far it got when it gives up. It has read a little more. */
    if (at < 0)
        at = lseek(unpack->descriptor, 0, SEEK_CUR);
    return tnd_fail(TUNDISH_E_DATA,
                    "its compressed data is damaged or truncated near byte %lld (%s)",
                    at < 0 ? 0 : at, reason == NULL ? "no reason given" : reason);
}

tundish_status
unpack_any_next(struct unpack_any *unpack, uint8_t *to, size_t bytes, size_t *ret_bytes)
{
    *ret_bytes = 0;
    if (unpack->opened == ARCHIVE_EOF)
        return TUNDISH_OK;
    if (unpack->opened != ARCHIVE_OK)
        return damaged(unpack);
    while (*ret_bytes < bytes) {
        la_ssize_t got = archive_read_data(unpack->archive, to + *ret_bytes, bytes - *ret_bytes);

        if (got == ARCHIVE_RETRY)
            continue;
        if (got < 0)
            return damaged(unpack);
        if (got == 0)
            break;
        *ret_bytes += (size_t)got;
    }
    return TUNDISH_OK;
}
