/* catalogue_share.c - each node sends its list of files to all nodes. */
#include "session/nodes/catalogue_share.h"

#include <stdlib.h>
#include <string.h>

#include "core/log.h"
#include "core/memory.h"
#include "session/checkpoint/place_files.h"

/* An entry as posted: hash, length of the name with its NUL, name. */
enum { HEAD_BYTES = 12 };

struct text {
    uint8_t *bytes;
    size_t byte_count;
};

static void
write_file(struct text *text, const struct place_file *file)
{
    uint32_t name_bytes = (uint32_t)strlen(file->name) + 1;
    uint8_t *to;

    text->bytes = tnd_realloc(text->bytes, text->byte_count + HEAD_BYTES + name_bytes, 1);
    to = text->bytes + text->byte_count;
    memcpy(to, &file->raw_hash, 8);
    memcpy(to + 8, &name_bytes, 4);
    memcpy(to + HEAD_BYTES, file->name, name_bytes);
    text->byte_count += HEAD_BYTES + name_bytes;
}

static tundish_status
write_own(const struct plan *plan, struct text *text)
{
    struct place_files files;
    tundish_status status = place_files_open(plan, &files);

    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < files.count; i++)
        if (files.list[i].is_data && files.list[i].is_here)
            write_file(text, &files.list[i]);
    place_files_close(&files);
    return TUNDISH_OK;
}

/* All nodes list the same URLs, so none is sent. If a store lists others meanwhile, the files of
 * the streams differ, and the nodes find that out when they compare them. */
static tundish_status
add_urls(const struct plan *plan, struct catalogue *catalogue)
{
    struct place_files files;
    tundish_status status = place_files_open(plan, &files);

    if (status != TUNDISH_OK)
        return status;
    for (uint32_t i = 0; i < files.count; i++)
        if (files.list[i].is_data && spec_is_url(files.list[i].name))
            catalogue_add(catalogue, files.list[i].name, files.list[i].raw_hash, 0, true);
    place_files_close(&files);
    return TUNDISH_OK;
}

static tundish_status
read_files(struct link *link, uint32_t rank, struct byte_view from, struct catalogue *catalogue)
{
    while (from.size > 0) {
        uint32_t name_bytes = from.size >= HEAD_BYTES ? load_u32(from.data + 8) : 0;

        if (name_bytes == 0 || name_bytes > from.size - HEAD_BYTES ||
            from.data[HEAD_BYTES + name_bytes - 1] != '\0')
            return tnd_fail(TUNDISH_E_CORRUPT, "rank %u: malformed list of files", rank);
        catalogue_add(catalogue, (const char *)from.data + HEAD_BYTES, load_u64(from.data), rank,
                      rank == link_rank(link));
        from.data += HEAD_BYTES + name_bytes;
        from.size -= HEAD_BYTES + name_bytes;
    }
    return TUNDISH_OK;
}

static tundish_status
refuse_file(struct link *link, const char *name, const uint32_t owners[2])
{
    char first[160], other[160];

    link_name(link, owners[0], first, sizeof first);
    link_name(link, owners[1], other, sizeof other);
    return tnd_fail(TUNDISH_E_ARGUMENT,
                    "file %s differs on %s and %s: with files: local each node has its own files, "
                    "but two files cannot have the same name",
                    name, first, other);
}

static tundish_status
take_lists(struct link *link, struct byte_view rest, struct catalogue *catalogue)
{
    struct byte_view files;
    uint32_t rank;
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && link_next_of_each(&rest, &rank, &files))
        status = read_files(link, rank, files, catalogue);
    return status;
}

/* Give the list of this node's own files, and take those of all nodes. */
static tundish_status
exchange_lists(struct link *link, const struct text *own, int64_t timeout_ns,
               const _Atomic int *stop, struct catalogue *catalogue)
{
    struct link_key key = { .topic = LINK_FILES };
    struct link_tally tally = { .merge = LINK_EACH,
                                .bytes = own->bytes,
                                .byte_count = own->byte_count };
    struct link_total total = { 0 };
    tundish_status status = link_tally_all(link, &key, &tally, timeout_ns, stop, &total);

    if (status == TUNDISH_OK)
        status = take_lists(link, (struct byte_view){ total.bytes, total.byte_count }, catalogue);
    free(total.bytes);
    link_forget(link, &key);
    return status;
}

static tundish_status
finish(struct link *link, struct catalogue *catalogue)
{
    const char *name = NULL;
    uint32_t owners[2];
    tundish_status status = catalogue_finish(catalogue, &name, owners);

    if (status != TUNDISH_OK)
        return refuse_file(link, name, owners);
    catalogue_deal_urls(catalogue, link_size(link), link_rank(link));
    return TUNDISH_OK;
}

static void
log_files(const struct catalogue *catalogue)
{
    uint32_t here = 0;

    for (uint32_t i = 0; i < catalogue->count; i++)
        here += catalogue->files[i].is_here;
    tnd_log(TND_LOG_NOTICE, "files", "%u files on all nodes, %u of them here", catalogue->count,
            here);
}

tundish_status
catalogue_share(struct link *link, struct plan *const *plans, uint32_t count, int64_t timeout_ns,
                const _Atomic int *stop, struct catalogue *catalogue)
{
    struct text own = { 0 };
    bool is_local = false, has_urls = false;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < count && status == TUNDISH_OK; i++)
        if (plans[i] != NULL && plans[i]->stream->distribute.files_local) {
            status = write_own(plans[i], &own);
            is_local = true;
        } else if (plans[i] != NULL && plan_fetches_once(plans[i])) {
            status = add_urls(plans[i], catalogue);
            has_urls = true;
        }
    if (status == TUNDISH_OK && is_local)
        status = exchange_lists(link, &own, timeout_ns, stop, catalogue);
    free(own.bytes);
    if (status != TUNDISH_OK || (!is_local && !has_urls))
        return status;
    status = finish(link, catalogue);
    if (status == TUNDISH_OK)
        log_files(catalogue);
    return status;
}
