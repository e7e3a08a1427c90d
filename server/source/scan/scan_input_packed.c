/* scan_input_packed.c - a packed file, unpacked during the scan into a file without a name. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "content/records/unpacker.h"
#include "source/scan/scan_work.h"

#include "core/read_write.h"

/* Make a file without a name for the unpacked bytes. GZIP cannot be read from the middle, and its
 * rows are read in any order. */
static tundish_status
open_unpacked(struct source_file *file)
{
    int folder = -1;
    int descriptor;
    tundish_status status = services_cache_folder(file->services, &folder);

    if (status != TUNDISH_OK)
        return status;
    descriptor = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (descriptor < 0)
        return tnd_fail_errno(errno, "cannot make a file in the cache folder to unpack it into");
    /* Pairs with the load in visit_begin. */
    atomic_store_explicit(&file->unpacked, descriptor + 1, memory_order_release);
    return TUNDISH_OK;
}

static tundish_status
open_packed(struct source_file *file, struct scan_work *work, struct record_list **ret_list)
{
    (void)ret_list;
    work->unpacker = unpacker_open(work->descriptor, file->packing);
    return open_unpacked(file);
}

static tundish_status
write_unpacked(struct source_file *file, const struct scan_work *work, size_t bytes)
{
    int descriptor = atomic_load_explicit(&file->unpacked, memory_order_relaxed) - 1;
    int error = tnd_write_at(descriptor, work->buffer, bytes, work->position);

    return error == 0 ? TUNDISH_OK
                      : tnd_fail_errno(error, "no room in the cache folder to unpack it "
                                              "(TUNDISH_CACHE names another)");
}

/* The bytes before the damage are good, so the error is kept until they have been scanned.
 * TensorFlow too yields the records before it. */
static tundish_status
read_packed(struct source_file *file, struct scan_work *work, size_t *ret_bytes)
{
    tundish_status status = unpacker_next(work->unpacker, work->buffer, SCAN_READ_BYTES, ret_bytes);

    if (status != TUNDISH_OK) {
        work->damage = status;
        snprintf(work->damage_text, sizeof work->damage_text, "%s", tnd_error_text());
    } else if (*ret_bytes < SCAN_READ_BYTES) {
        work->is_over = true;
    }
    return write_unpacked(file, work, *ret_bytes);
}

const struct scan_input_ops scan_input_packed = {
    .open = open_packed,
    .read = read_packed,
};
