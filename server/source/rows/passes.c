/* passes.c - see passes.h. */
#include "source/rows/passes.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"

/* The state of the node's dataset object between passes: the spool, and where the last pass lies in
 * it. */
struct passes {
    struct spool spool;
    uint64_t pass_begin, pass_end;
    bool in_pass; /* one iterator writes a pass; others at the same time must not change it */
};

static void
passes_close(void *kept)
{
    free(kept); /* its spool is the session's */
}

/* The spool lives as long as the dataset object: every pass needs the rows of the pass before it.
 */
static tundish_status
find_kept(struct order_iterator *iterator, const char *name, struct passes **ret_kept)
{
    struct order_kept *kept = &iterator->instance->kept[iterator->node->number];
    tundish_status status = TUNDISH_OK;

    if (kept->state == NULL) {
        struct passes made = { .in_pass = false };

        status = spool_open(iterator->instance->services->files, name, -1, &made.spool);
        if (status != TUNDISH_OK)
            return status;
        *kept = (struct order_kept){ .state = tnd_alloc(sizeof made), .close = passes_close };
        memcpy(kept->state, &made, sizeof made);
    }
    *ret_kept = kept->state;
    return status;
}

tundish_status
pass_begin(struct order_iterator *iterator, const char *name, struct pass *ret_pass)
{
    struct pass pass = { 0 };
    tundish_status status = find_kept(iterator, name, &pass.kept);

    if (status != TUNDISH_OK)
        return status;
    /* Two iterators may overlap, in interleave. */
    pass.owns = !pass.kept->in_pass;
    pass.is_repeating = pass.owns && pass.kept->pass_end > pass.kept->pass_begin;
    pass.kept->in_pass = true;
    *ret_pass = pass;
    return TUNDISH_OK;
}

void
pass_begin_at(struct pass *pass, uint64_t first)
{
    pass->first = pass->rows = first;
    pass->is_repeating &= first == 0;
}

bool
passes_need_cache(const void *state, bool has_urls)
{
    (void)state, (void)has_urls;
    return true;
}

void
pass_end(struct pass *pass)
{
    if (pass->owns)
        pass->kept->in_pass = false;
}

/* Are these the next bytes of the last pass? The bytes themselves are compared: with hashes a
 * collision would deliver a wrong row. */
static bool
repeats_last_pass(const struct pass *pass, const uint8_t *bytes, size_t count)
{
    const struct passes *kept = pass->kept;
    uint64_t from = kept->pass_begin + pass->repeated;
    uint8_t there[4096];

    if (!pass->is_repeating || kept->pass_end - from < count)
        return false;
    while (count > 0) {
        size_t part = count < sizeof there ? count : sizeof there;

        if (file_read(kept->spool.file, there, part, from) != TUNDISH_OK ||
            memcmp(there, bytes, part) != 0)
            return false;
        bytes += part;
        from += part;
        count -= part;
    }
    return true;
}

static enum order_result
fail_to_keep(struct order_iterator *iterator, const struct pass *pass, const char *name)
{
    char *reason = tnd_strdup(tnd_error_text());

    order_fail(iterator, TUNDISH_E_SYSTEM,
               "no room in the cache folder for row %" PRIu64 " of %s, after %" PRIu64
               " bytes: %s (set TUNDISH_CACHE to another folder; with a cache stage after it the "
               "%s runs only once)",
               pass->rows, name, pass->kept->spool.bytes, reason,
               iterator->node->stage->info->name);
    free(reason);
    return ORDER_FAILED;
}

/* Find `count` bytes of whole rows in the last pass, or append them to the spool; `ret_offset` is
 * where they lie. */
static tundish_status
keep_bytes(struct pass *pass, const uint8_t *bytes, size_t count, uint64_t *ret_offset)
{
    struct passes *kept = pass->kept;
    tundish_status status;

    if (repeats_last_pass(pass, bytes, count)) {
        *ret_offset = kept->pass_begin + pass->repeated;
        pass->repeated += count;
        return TUNDISH_OK;
    }
    /* The next pass is compared with the rows since this one became different; those before it stay
     * valid. */
    if (pass->is_repeating || pass->rows == pass->first) {
        pass->is_repeating = false;
        if (pass->owns)
            kept->pass_begin = kept->spool.bytes;
    }
    *ret_offset = kept->spool.bytes;
    status = spool_append(&kept->spool, bytes, count);
    if (status == TUNDISH_OK && pass->owns)
        kept->pass_end = kept->spool.bytes;
    return status;
}

enum order_result
pass_keep(struct order_iterator *iterator, struct pass *pass, const char *name,
          const uint8_t *bytes, const uint64_t *ends, size_t count, uint64_t *words)
{
    uint64_t offset = 0, begin = 0;

    if (keep_bytes(pass, bytes, (size_t)ends[count - 1], &offset) != TUNDISH_OK)
        return fail_to_keep(iterator, pass, name);
    for (size_t i = 0; i < count; i++) {
        uint64_t *row = &words[PASS_WIDTH * i], row_bytes = ends[i] - begin;

        row[0] = offset + begin;
        row[1] = reference_high(pass->kept->spool.file) | row_bytes;
        /* Offsets alone would not tell nodes apart whose sources gave different rows; the digest
         * takes this hash. */
        row[2] = tnd_hash_farm((const char *)bytes + begin, row_bytes);
        begin = ends[i];
    }
    pass->rows += count;
    return ORDER_OK;
}
