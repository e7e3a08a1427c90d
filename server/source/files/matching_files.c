/* matching_files.c - walking folders along a pattern. */
#include "source/files/matching_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "remote/seen.h"
#include "source/files/listed.h"
#include "spec/spec.h"

/* From as many paths on, bytes are counted faster than paths are compared. */
enum { WORTH_COUNTING = 1000 };

/* The walk has reached a folder: `folder` is open, and `path` is its name as far as it was
 * matched. */
struct walk {
    struct matching_files *list;
    int folder;
    const char *path; /* "" or ends with a slash */
};

static tundish_status walk_on(const struct walk *walk, const char *pattern);

static void
add_path(struct matching_files *list, char *path)
{
    list->paths = tnd_grow(list->paths, list->count, sizeof *list->paths);
    list->paths[list->count++] = path;
}

/* How many characters stand for themselves until one is special. */
static size_t
count_plain(const char *component)
{
    return strcspn(component, "*?[\\");
}

/* Many names are compared with one star, for which fnmatch takes long. */
struct component {
    const char *text;
    bool has_one_star; /* and nothing else that is special */
    size_t before, after;
};

static struct component
component_of(const char *text)
{
    struct component component = { .text = text, .before = count_plain(text) };
    const char *star = text + component.before;

    component.after = *star == '*' ? count_plain(star + 1) : 0;
    component.has_one_star = *star == '*' && star[1 + component.after] == '\0';
    return component;
}

static bool
is_match(const struct component *component, const char *name)
{
    size_t bytes = strlen(name), before = component->before, after = component->after;

    if (!component->has_one_star)
        return fnmatch(component->text, name, 0) == 0;
    return bytes >= before + after && memcmp(name, component->text, before) == 0 &&
           memcmp(name + bytes - after, component->text + before + 1, after) == 0;
}

/* `name` matches the component at hand. Continue at `rest`, after the component, and keep its
 * slashes as written. is_listed: it is an entry of the folder, and no link. */
static tundish_status
descend(const struct walk *walk, const char *name, bool is_listed, const char *rest)
{
    size_t slashes = strspn(rest, "/");
    char *path;
    int folder;
    tundish_status status;

    /* stat follows links, so a link whose target is gone does not match. */
    if (*rest == '\0') {
        struct stat about;

        if (is_listed || fstatat(walk->folder, name, &about, 0) == 0)
            add_path(walk->list, tnd_memory_joined(walk->path, "", name));
        return TUNDISH_OK;
    }
    folder = openat(walk->folder, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    /* A component that is not a folder matches nothing; it is not an error. */
    if (folder < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
        return TUNDISH_OK;
    if (folder < 0)
        return tnd_fail_errno(errno, "cannot examine the folder %s%s", walk->path, name);
    path = tnd_sprintf("%s%s%.*s", walk->path, name, (int)slashes, rest);
    status = walk_on(&(struct walk){ walk->list, folder, path }, rest + slashes);
    close(folder);
    free(path);
    return status;
}

static tundish_status
try_names(const struct walk *walk, DIR *names, const char *text, const char *rest)
{
    const struct component component = component_of(text);
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK) {
        struct dirent *entry;

        errno = 0;
        entry = readdir(names);
        if (entry == NULL && errno != 0)
            return tnd_fail_errno(errno, "cannot list the folder %s", walk->path);
        if (entry == NULL)
            break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0)
            continue;
        if (is_match(&component, entry->d_name))
            status = descend(walk, entry->d_name,
                             entry->d_type != DT_LNK && entry->d_type != DT_UNKNOWN, rest);
    }
    return status;
}

static tundish_status
walk_on(const struct walk *walk, const char *pattern)
{
    size_t length = strcspn(pattern, "/");
    char *component;
    DIR *names;
    int again;
    tundish_status status;

    if (length == 0) /* a pattern that ends with a slash means the folder */
        return *walk->path == '\0' ? TUNDISH_OK : (add_path(walk->list, tnd_strdup(walk->path)), 0);
    component = tnd_strndup(pattern, length);
    if (component[count_plain(component)] == '\0') {
        status = descend(walk, component, false, pattern + length);
        free(component);
        return status;
    }
    again = openat(walk->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    names = again < 0 ? NULL : fdopendir(again);
    if (names == NULL) {
        status = tnd_fail_errno(errno, "cannot list the folder %s", walk->path);
        if (again >= 0)
            close(again);
    } else {
        status = try_names(walk, names, component, pattern + length);
        closedir(names);
    }
    free(component);
    return status;
}

static tundish_status
find_one(const char *root, const char *pattern, struct matching_files *list)
{
    size_t slashes = strspn(pattern, "/");
    char *path = tnd_strndup(pattern, slashes);
    int folder = open(slashes > 0 ? "/" : root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    tundish_status status;

    if (folder < 0)
        status = tnd_fail_errno(errno, "cannot open the folder %s", root);
    else
        status = walk_on(&(struct walk){ list, folder, path }, pattern + slashes);
    if (folder >= 0)
        close(folder);
    free(path);
    return status;
}

static tundish_status
find_at_store(const struct path_base *base, const char *pattern, struct matching_files *list)
{
    struct remote_matches matches = { 0 };
    struct remote *remote = NULL;
    tundish_status status = remote_get(base->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_seen_list(base->seen, remote, pattern, &matches);
    for (size_t i = 0; i < matches.count; i++) {
        add_path(list, matches.list[i].name);
        matches.list[i].name = NULL;
    }
    remote_matches_close(&matches);
    return status;
}

/* The list of an only pattern is taken as it is. */
static tundish_status
find_listed(const struct path_base *base, const char *pattern, bool is_only,
            struct matching_files *list)
{
    struct matching_files more = { 0 };
    tundish_status status = listed_find(base->listed, base->root, pattern, &more);

    if (status == TUNDISH_OK && is_only) {
        *list = more;
        return TUNDISH_OK;
    }
    for (size_t i = 0; status == TUNDISH_OK && i < more.count; i++)
        add_path(list, tnd_strdup(more.paths[i]));
    matching_files_close(&more);
    return status;
}

static tundish_status
find_by(const struct path_base *base, const char *pattern, bool is_only,
        struct matching_files *list)
{
    if (spec_is_url(pattern))
        return find_at_store(base, pattern, list);
    if (base->listed != NULL)
        return find_listed(base, pattern, is_only, list);
    return find_one(base->root, pattern, list);
}

/* A path, with what tells most apart: the bytes after those that all begin with. */
struct keyed {
    uint64_t key;
    char *path;
};

static int
compare_paths(const void *a, const void *b)
{
    const struct keyed *one = a, *other = b;

    if (one->key != other->key)
        return one->key < other->key ? -1 : 1;
    return strcmp(one->path, other->path);
}

static size_t
count_shared(const struct matching_files *list)
{
    size_t shared = strlen(list->paths[0]);

    for (size_t i = 1; i < list->count; i++) {
        size_t same = 0;

        while (same < shared && list->paths[i][same] == list->paths[0][same])
            same++;
        shared = same;
    }
    return shared;
}

/* Compares as strcmp does. */
static uint64_t
key_of(const char *text)
{
    uint64_t key = 0;

    for (size_t i = 0; i < sizeof key; i++) {
        key = key << 8 | (uint8_t)*text;
        text += *text != '\0';
    }
    return key;
}

/* By their keys, a byte at a time from the last one; bytes in which all are alike are passed over.
 * Returns `all` or `room`, wherever they end. */
static struct keyed *
sort_keys(struct keyed *all, struct keyed *room, size_t count)
{
    for (unsigned shift = 0; shift < 64; shift += 8) {
        size_t places[256] = { 0 }, next = 0;
        struct keyed *sorted = room;

        for (size_t i = 0; i < count; i++)
            places[all[i].key >> shift & 255]++;
        if (places[all[0].key >> shift & 255] == count)
            continue;
        for (unsigned byte = 0; byte < 256; byte++) {
            size_t of_byte = places[byte];

            places[byte] = next;
            next += of_byte;
        }
        for (size_t i = 0; i < count; i++)
            sorted[places[all[i].key >> shift & 255]++] = all[i];
        room = all;
        all = sorted;
    }
    return all;
}

/* Those that share a key lie together, and are compared whole. */
static void
sort_alike(struct keyed *all, size_t count)
{
    for (size_t first = 0, end; first < count; first = end) {
        for (end = first + 1; end < count && all[end].key == all[first].key; end++)
            ;
        if (end - first > 1)
            qsort(all + first, end - first, sizeof *all, compare_paths);
    }
}

static void
sort_paths(struct matching_files *list)
{
    struct keyed *all = tnd_alloc(2 * list->count * sizeof *all), *sorted = all;
    size_t shared = count_shared(list);

    for (size_t i = 0; i < list->count; i++)
        all[i] = (struct keyed){ key_of(list->paths[i] + shared), list->paths[i] };
    if (list->count < WORTH_COUNTING) {
        qsort(all, list->count, sizeof *all, compare_paths);
    } else {
        sorted = sort_keys(all, all + list->count, list->count);
        sort_alike(sorted, list->count);
    }
    for (size_t i = 0; i < list->count; i++)
        list->paths[i] = sorted[i].path;
    free(all);
}

static bool
are_sorted(const struct matching_files *list)
{
    for (size_t i = 1; i < list->count; i++)
        if (strcmp(list->paths[i - 1], list->paths[i]) > 0)
            return false;
    return true;
}

tundish_status
matching_files_find(const struct path_base *base, const char *const *patterns, size_t pattern_count,
                    struct matching_files *ret_list)
{
    struct matching_files list = { 0 };
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < pattern_count && status == TUNDISH_OK; i++)
        status = find_by(base, patterns[i], pattern_count == 1, &list);
    if (status != TUNDISH_OK) {
        matching_files_close(&list);
        return status;
    }
    if (!are_sorted(&list))
        sort_paths(&list);
    *ret_list = list;
    return TUNDISH_OK;
}

void
matching_files_close(struct matching_files *list)
{
    for (size_t i = 0; list->texts == NULL && i < list->count; i++)
        free(list->paths[i]);
    free(list->texts);
    free(list->paths);
    free(list->labels);
    *list = (struct matching_files){ 0 };
}
