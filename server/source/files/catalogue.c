/* catalogue.c - the names of all files in byte order, for binary search. */
#include "source/files/catalogue.h"

#include <fnmatch.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "source/files/matching_files.h"
#include "spec/spec.h"

void
catalogue_add(struct catalogue *catalogue, const char *name, uint64_t hash, uint32_t owner,
              bool is_here)
{
    uint32_t count = catalogue->count;

    catalogue->files = tnd_grow(catalogue->files, count, sizeof *catalogue->files);
    catalogue->files[catalogue->count++] = (struct catalogue_file){
        .name = tnd_strdup(name), .hash = hash, .owner = owner, .is_here = is_here
    };
}

/* Names in byte order, and among equal names the owner with the lowest number first. */
static int
compare_names(const void *a, const void *b)
{
    const struct catalogue_file *x = a, *y = b;
    int order = strcmp(x->name, y->name);

    return order != 0 ? order : x->owner < y->owner ? -1 : x->owner > y->owner;
}

/* The first of several nodes that have a file is its owner. Their files must have equal hashes: the
 * rows of an order must not depend on the node that reads them. */
tundish_status
catalogue_finish(struct catalogue *catalogue, const char **ret_name, uint32_t ret_owners[2])
{
    uint32_t kept = 0;

    if (catalogue->count > 0)
        qsort(catalogue->files, catalogue->count, sizeof *catalogue->files, compare_names);
    for (uint32_t i = 0; i < catalogue->count; i++) {
        struct catalogue_file *file = &catalogue->files[i];
        struct catalogue_file *before = kept > 0 ? &catalogue->files[kept - 1] : NULL;

        if (before == NULL || strcmp(before->name, file->name) != 0) {
            catalogue->files[kept++] = *file;
            continue;
        }
        if (before->hash != file->hash) {
            /* The names go to the caller for its message, so the rest is moved up and freed by
             * catalogue_close. */
            *ret_name = before->name;
            ret_owners[0] = before->owner;
            ret_owners[1] = file->owner;
            memmove(&catalogue->files[kept], file, (catalogue->count - i) * sizeof *file);
            catalogue->count -= i - kept;
            return tnd_fail(TUNDISH_E_ARGUMENT, "file %s differs", before->name);
        }
        before->is_here |= file->is_here;
        free(file->name);
    }
    catalogue->count = kept;
    catalogue->is_made = true;
    return TUNDISH_OK;
}

/* By turns along the sorted names: files that are read one after the other are fetched by different
 * nodes. */
void
catalogue_deal_urls(struct catalogue *catalogue, uint32_t node_count, uint32_t rank)
{
    uint32_t next = 0;

    for (uint32_t i = 0; i < catalogue->count; i++) {
        struct catalogue_file *file = &catalogue->files[i];

        if (!spec_is_url(file->name))
            continue;
        file->owner = next++ % node_count;
        file->is_here = file->owner == rank;
    }
}

static int
compare_name(const void *name, const void *file)
{
    return strcmp(name, ((const struct catalogue_file *)file)->name);
}

const struct catalogue_file *
catalogue_find(const struct catalogue *catalogue, const char *name)
{
    if (catalogue->count == 0)
        return NULL;
    return bsearch(name, catalogue->files, catalogue->count, sizeof *catalogue->files,
                   compare_name);
}

/* The names are in byte order already. One that two patterns match is in the list twice, as when a
 * folder is listed. */
void
catalogue_glob(const struct catalogue *catalogue, const char *const *patterns, size_t pattern_count,
               struct matching_files *ret_list)
{
    struct matching_files list = { 0 };

    list.paths = tnd_zalloc(catalogue->count * pattern_count + 1, sizeof *list.paths);
    for (uint32_t i = 0; i < catalogue->count; i++)
        for (size_t k = 0; k < pattern_count; k++)
            if (fnmatch(patterns[k], catalogue->files[i].name, FNM_PATHNAME) == 0)
                list.paths[list.count++] = tnd_strdup(catalogue->files[i].name);
    *ret_list = list;
}

void
catalogue_close(struct catalogue *catalogue)
{
    for (uint32_t i = 0; i < catalogue->count; i++)
        free(catalogue->files[i].name);
    free(catalogue->files);
    *catalogue = (struct catalogue){ 0 };
}
