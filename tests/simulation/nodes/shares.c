/* shares.c - the files of the nodes as bits. */
#include "shares.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "fibers.h"
#include "plan/plan_node.h"
#include "session/checkpoint/place_files.h"
#include "session/nodes/catalogue_share.h"
#include "session/nodes/index_share.h"
#include "source/files/files.h"
#include "source/source.h"

enum { NAME_BYTES = 48, INDEX_BYTES = 100 };
static const int64_t PATIENCE = 600000000000;

struct shares {
    uint32_t nodes, files;
    uint8_t *is_kept; /* by node and file: its index is */
    uint32_t *made;   /* by file: how often it was gone through */
};

static struct shares *present; /* for the functions that stand for others */

/* These stand for what reads files. */
tundish_status __wrap_place_files_open(const struct plan *plan, struct place_files *ret_files);
tundish_status __real_source_files_open(const struct source_files_options *options,
                                        struct source_files **ret_files);
void __real_source_files_close(struct source_files *files);
tundish_status __wrap_source_files_open(const struct source_files_options *options,
                                        struct source_files **ret_files);
void __wrap_source_files_close(struct source_files *files);
bool __wrap_source_index_is_wanted(struct source_files *files, const char *path, const char *kind);
tundish_status __wrap_source_index_build(struct source_files *files, const char *path,
                                         const char *kind,
                                         void (*progress)(void *context, uint64_t bytes_done),
                                         void *context, struct source_index *ret_index);
tundish_status __wrap_source_index_export(struct source_files *files, const char *path,
                                          const char *kind, uint8_t **ret_bytes,
                                          size_t *ret_byte_count);
tundish_status __wrap_source_index_import(struct source_files *files, const char *path,
                                          const char *kind, const uint8_t *bytes,
                                          size_t byte_count);

static void
write_name(uint32_t file, char name[NAME_BYTES])
{
    snprintf(name, NAME_BYTES, "data/part-%05u.tfrecord", file);
}

static uint32_t
number_in(const char *path)
{
    return (uint32_t)strtoul(path + strlen("data/part-"), NULL, 10);
}

/* One node has it, or, of some files, two. */
static bool
has_file(uint32_t node, uint32_t file)
{
    return file % present->nodes == node || (file % 5 == 0 && (file + 1) % present->nodes == node);
}

static uint8_t *
kept_index(const char *path)
{
    return &present->is_kept[(size_t)fibers_charged() * present->files + number_in(path)];
}

static void
write_index(const char *path, uint8_t bytes[INDEX_BYTES])
{
    uint64_t hash = tnd_hash_farm(path, strlen(path));

    for (size_t i = 0; i < INDEX_BYTES; i++)
        bytes[i] = (uint8_t)(hash >> i % 8 * 8);
}

tundish_status
__wrap_place_files_open(const struct plan *plan, struct place_files *ret_files)
{
    bool are_local = plan->stream->distribute.files_local;

    *ret_files = (struct place_files){ .list = calloc(present->files, sizeof(struct place_file)) };
    for (uint32_t i = 0; i < present->files; i++) {
        char name[NAME_BYTES];

        if (are_local && !has_file(fibers_charged(), i))
            continue;
        write_name(i, name);
        ret_files->list[ret_files->count++] = (struct place_file){
            .name = strdup(name), .raw_hash = i, .is_data = true, .is_here = true
        };
    }
    return TUNDISH_OK;
}

tundish_status
__wrap_source_files_open(const struct source_files_options *options,
                         struct source_files **ret_files)
{
    if (options->reader_count > 0 || options->peers != NULL) /* those of rows.c */
        return __real_source_files_open(options, ret_files);
    *ret_files = NULL;
    return TUNDISH_OK;
}

void
__wrap_source_files_close(struct source_files *files)
{
    if (files != NULL)
        __real_source_files_close(files);
}

bool
__wrap_source_index_is_wanted(struct source_files *files, const char *path, const char *kind)
{
    (void)files;
    (void)kind;
    return *kept_index(path) == 0;
}

/* Going through a file takes its time. */
tundish_status
__wrap_source_index_build(struct source_files *files, const char *path, const char *kind,
                          void (*progress)(void *context, uint64_t bytes_done), void *context,
                          struct source_index *ret_index)
{
    (void)files;
    (void)kind;
    (void)progress;
    (void)context;
    fibers_sleep((int64_t)fibers_draw(50000000));
    present->made[number_in(path)]++;
    *kept_index(path) = 1;
    *ret_index = (struct source_index){ .is_kept = true };
    return TUNDISH_OK;
}

tundish_status
__wrap_source_index_export(struct source_files *files, const char *path, const char *kind,
                           uint8_t **ret_bytes, size_t *ret_byte_count)
{
    (void)files;
    (void)kind;
    if (*kept_index(path) == 0)
        return TUNDISH_E_TIMEOUT;
    *ret_bytes = malloc(INDEX_BYTES);
    *ret_byte_count = INDEX_BYTES;
    write_index(path, *ret_bytes);
    return TUNDISH_OK;
}

tundish_status
__wrap_source_index_import(struct source_files *files, const char *path, const char *kind,
                           const uint8_t *bytes, size_t byte_count)
{
    uint8_t expected[INDEX_BYTES];

    (void)files;
    (void)kind;
    write_index(path, expected);
    *kept_index(path) = byte_count == INDEX_BYTES && memcmp(bytes, expected, INDEX_BYTES) == 0;
    return TUNDISH_OK;
}

struct shares *
shares_open(uint32_t nodes, uint32_t files)
{
    struct shares *shares = calloc(1, sizeof *shares);

    *shares = (struct shares){ .nodes = nodes, .files = files };
    shares->is_kept = calloc((size_t)nodes * files + 1, 1);
    shares->made = calloc(files + 1, sizeof *shares->made);
    /* Some were made before. */
    for (size_t i = 0; i < (size_t)nodes * files; i++)
        shares->is_kept[i] = i % 7 == 0;
    present = shares;
    return shares;
}

void
shares_close(struct shares *shares)
{
    free(shares->is_kept);
    free(shares->made);
    free(shares);
}

/* Is it that of all nodes? */
static bool
is_whole(const struct catalogue *catalogue, uint32_t rank)
{
    if (catalogue->count != present->files)
        return false;
    for (uint32_t i = 0; i < catalogue->count; i++) {
        const struct catalogue_file *file = &catalogue->files[i];

        if (number_in(file->name) != i || file->hash != i || !has_file(file->owner, i) ||
            file->is_here != has_file(rank, i))
            return false;
    }
    return true;
}

static tundish_status
share_files(struct link *link, struct plan *plan, const _Atomic int *stop)
{
    struct catalogue catalogue = { 0 };
    struct plan *plans[] = { plan };
    tundish_status status = catalogue_share(link, plans, 1, PATIENCE, stop, &catalogue);

    if (status == TUNDISH_OK && !is_whole(&catalogue, link_rank(link)))
        status = tnd_fail(TUNDISH_E_DATA, "the catalogue is not that of all nodes");
    catalogue_close(&catalogue);
    return status;
}

tundish_status
shares_run(struct shares *shares, struct link *link, const _Atomic int *stop)
{
    struct source_ops source = { .name = "tfrecord", .reads_files = true, .shares_index = true };
    struct plan_node node = { .source = &source };
    struct plan_node *nodes[] = { &node };
    struct plan_graph graph = { .node_count = 1, .nodes = nodes };
    struct spec_file file = { 0 };
    struct spec_stream stream = { .distribute.files_local = true };
    struct plan plan = { .file = &file, .stream = &stream, .graph = &graph, .policy = SHARD_DATA };
    tundish_status status = shares->nodes > 1 ? share_files(link, &plan, stop) : TUNDISH_OK;

    stream.distribute.files_local = false;
    return status == TUNDISH_OK ? index_share(link, &plan, 0, PATIENCE, stop) : status;
}

void
shares_judge(const struct shares *shares, char *ret_text, size_t text_bytes)
{
    if (shares->nodes == 1 || ret_text[0] != '\0')
        return;
    for (uint32_t i = 0; i < shares->files; i++)
        if (shares->made[i] > 1)
            snprintf(ret_text, text_bytes, "file %u was gone through %u times", i, shares->made[i]);
    for (size_t i = 0; i < (size_t)shares->nodes * shares->files; i++)
        if (!shares->is_kept[i])
            snprintf(ret_text, text_bytes, "node %zu has no index of file %zu", i / shares->files,
                     i % shares->files);
}
