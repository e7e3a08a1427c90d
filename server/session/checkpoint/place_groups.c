/* place_groups.c - the hashes of files that a place has room for, and which file is another one.
 */
#include <stdio.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/must.h"
#include "core/status.h"
#include "session/checkpoint/place_elsewhere.h"
#include "session/checkpoint/place_files.h"

enum { NAMES_BYTES = 512 };

/* Neighbours share a group, so that a changed group names files that lie together. */
uint32_t
place_group_of(uint32_t index, uint32_t count)
{
    must_in_debug(index < count);
    if (count <= PLACE_FILE_GROUPS)
        return index;
    return (uint32_t)((uint64_t)index * PLACE_FILE_GROUPS / count);
}

static uint64_t
add_to_group(uint64_t group, uint64_t hash)
{
    return tnd_hash_farm_chain(group, &hash, sizeof hash);
}

uint64_t
place_group_hash(const uint64_t *hashes, uint32_t count)
{
    uint64_t group = 0;

    for (uint32_t i = 0; i < count; i++)
        group = add_to_group(group, hashes[i]);
    return group;
}

/* Have older places a hash of it, too? */
static bool
is_in_older(const struct place_file *file)
{
    return !file->is_list && !file->is_named;
}

void
place_groups_make(const struct place_files *files, bool are_older, struct place_groups *ret_groups)
{
    uint64_t hashes[PLACE_FILE_GROUPS] = { 0 };
    uint32_t count = 0, number = 0;

    for (uint32_t i = 0; i < files->count; i++)
        count += !are_older || is_in_older(&files->list[i]);
    for (uint32_t i = 0; i < files->count; i++) {
        uint64_t *hash;

        if (are_older && !is_in_older(&files->list[i]))
            continue;
        hash = &hashes[place_group_of(number++, count)];
        *hash = add_to_group(*hash, files->list[i].hash);
    }
    ret_groups->file_count = count;
    for (int i = 0; i < PLACE_FILE_GROUPS; i++)
        ret_groups->hashes[i] = (uint32_t)hashes[i];
}

/* A file that is listed, and read, is there twice. */
static bool
is_first(const struct place_files *files, uint32_t index)
{
    for (uint32_t i = 0; i < index; i++)
        if (strcmp(files->list[i].name, files->list[index].name) == 0)
            return false;
    return true;
}

/* "a, b, c": the files of the groups that differ. */
static void
name_changed(const struct place_files *files, const struct place_groups *groups, char *names)
{
    size_t used = 0;

    names[0] = '\0';
    for (uint32_t i = 0; i < files->count && used < NAMES_BYTES; i++) {
        uint32_t group = place_group_of(i, files->count);

        if (files->groups.hashes[group] != groups->hashes[group] && is_first(files, i))
            used += (size_t)snprintf(names + used, NAMES_BYTES - used, "%s%s", used > 0 ? ", " : "",
                                     files->list[i].name);
    }
    if (used >= NAMES_BYTES)
        memcpy(names + NAMES_BYTES - 4, "...", 4);
}

tundish_status
place_files_check(const struct place_files *files, const struct place_groups *groups)
{
    char names[NAMES_BYTES];

    if (memcmp(groups, &files->older_groups, sizeof *groups) == 0)
        return TUNDISH_OK;
    if (groups->file_count != files->count)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place was saved with %u files, and there are %u now: the rows would "
                        "differ. Restore the files, or start without the place",
                        groups->file_count, files->count);
    if (memcmp(groups->hashes, files->groups.hashes, sizeof groups->hashes) == 0 ||
        place_elsewhere_is_same(files, groups))
        return TUNDISH_OK;
    name_changed(files, groups, names);
    return tnd_fail(TUNDISH_E_PLACE,
                    "%s changed since the place was saved%s: the rows would differ. Restore it, or "
                    "start without the place",
                    names, files->count > PLACE_FILE_GROUPS ? " (and perhaps others)" : "");
}
