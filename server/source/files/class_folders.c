/* class_folders.c - walks the class folders and sorts the files it finds. */
#include "source/files/class_folders.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/memory.h"
#include "remote/list.h"
#include "source/files/catalogue.h"

/* A link to a parent folder never ends. Linux itself gives up after 40 links. */
enum { DEPTH_MAX = 40 };

struct names {
    char **list;
    size_t count;
};

/* A file: the folder it is in, which several share, and its name. */
struct entry {
    const char *folder;
    char *name;
};

struct walk {
    const struct class_folders *wanted;
    struct names folders; /* owns what entries point to */
    struct entry *entries;
    size_t entry_count;
};

/* The room is doubled whenever the count is a power of two, so it need not be stored. */
static void
add_name(struct names *names, char *name)
{
    names->list = tnd_grow(names->list, names->count, sizeof(char *));
    names->list[names->count++] = name;
}

static void
names_close(struct names *names)
{
    for (size_t i = 0; i < names->count; i++)
        free(names->list[i]);
    free(names->list);
}

static int
compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* By folder, then by name, as os.walk with sorted folders gives them. */
static int
compare_entries(const void *a, const void *b)
{
    const struct entry *x = a;
    const struct entry *y = b;
    int folders = strcmp(x->folder, y->folder);

    return folders != 0 ? folders : strcmp(x->name, y->name);
}

/* Many file systems tell the type with the name, which saves a system call for each file. A link
 * counts as its target. */
static bool
is_folder(int folder, const struct dirent *entry)
{
    struct stat about;

    if (entry->d_type != DT_UNKNOWN && entry->d_type != DT_LNK)
        return entry->d_type == DT_DIR;
    return fstatat(folder, entry->d_name, &about, 0) == 0 && S_ISDIR(about.st_mode);
}

/* Extensions are compared without case: Keras converts names to lower case. */
static bool
has_extension(const struct class_folders *wanted, const char *name)
{
    size_t bytes = strlen(name);

    for (size_t i = 0; i < wanted->extension_count; i++) {
        size_t end = strlen(wanted->extensions[i]);

        if (end <= bytes && strcasecmp(name + bytes - end, wanted->extensions[i]) == 0)
            return true;
    }
    return false;
}

/* Open a folder for listing; the path is for messages. */
static tundish_status
open_folder(int at, const char *name, const char *path, DIR **ret_folder)
{
    int descriptor = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

    *ret_folder = descriptor < 0 ? NULL : fdopendir(descriptor);
    if (*ret_folder != NULL)
        return TUNDISH_OK;
    if (descriptor >= 0)
        close(descriptor);
    return tnd_fail(TUNDISH_E_DATA, "cannot list the folder %s: %s", path, strerror(errno));
}

/* The next entry that is not . or .. ; NULL at the end and after an error. */
static struct dirent *
next_entry(DIR *folder, const char *path, tundish_status *ret_status)
{
    for (;;) {
        struct dirent *entry;

        /* readdir reports an error only by errno. */
        errno = 0;
        entry = readdir(folder);
        if (entry == NULL) {
            *ret_status =
                errno == 0 ? TUNDISH_OK : tnd_fail_errno(errno, "cannot list the folder %s", path);
            return NULL;
        }
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            return entry;
    }
}

static void
add_entry(struct walk *walk, const char *folder, const char *name)
{
    walk->entries = tnd_grow(walk->entries, walk->entry_count, sizeof *walk->entries);
    walk->entries[walk->entry_count++] = (struct entry){ folder, tnd_strdup(name) };
}

/* Add all files of a folder and of its folders. `path` becomes the walk's. Folders are opened
 * relative to their parent, so that a path of any length works. */
static tundish_status
walk_folder(struct walk *walk, int at, const char *name, char *path, int depth)
{
    DIR *folder = NULL;
    struct dirent *entry;
    tundish_status status;

    add_name(&walk->folders, path);
    if (depth > DEPTH_MAX)
        return tnd_fail(TUNDISH_E_DATA,
                        "%s: folders more than %d deep; does a link lead back to a parent folder?",
                        path, DEPTH_MAX);
    status = open_folder(at, name, path, &folder);
    while (status == TUNDISH_OK && (entry = next_entry(folder, path, &status)) != NULL) {
        if (is_folder(dirfd(folder), entry))
            status = walk_folder(walk, dirfd(folder), entry->d_name,
                                 tnd_sprintf("%s/%s", path, entry->d_name), depth + 1);
        else if (has_extension(walk->wanted, entry->d_name))
            add_entry(walk, path, entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
    return status;
}

/* Find the folders that may be classes: Keras leaves out those whose names begin with a dot. */
static tundish_status
find_classes(const struct class_folders *wanted, DIR *folder, struct names *ret_names)
{
    struct dirent *entry;
    tundish_status status = TUNDISH_OK;

    while ((entry = next_entry(folder, wanted->directory, &status)) != NULL)
        if (entry->d_name[0] != '.' && is_folder(dirfd(folder), entry))
            add_name(ret_names, tnd_strdup(entry->d_name));
    if (ret_names->count > 0)
        qsort(ret_names->list, ret_names->count, sizeof(char *), compare_names);
    return status;
}

static tundish_status
check_class(const struct class_folders *wanted, const struct names *found, const char *name)
{
    char there[256] = "";
    size_t used = 0;

    for (size_t i = 0; i < found->count; i++)
        if (strcmp(found->list[i], name) == 0)
            return TUNDISH_OK;
    for (size_t i = 0; i < found->count && used < sizeof there; i++)
        used += (size_t)snprintf(there + used, sizeof there - used, "%s%s", i > 0 ? ", " : "",
                                 found->list[i]);
    return tnd_fail(TUNDISH_E_DATA, "class_names: '%s' is not a folder in %s; there %s%s", name,
                    wanted->directory, found->count > 0 ? "are " : "is none", there);
}

/* Sort the files of one class, and move them to the list. */
static void
take_class(struct walk *walk, uint32_t label, struct matching_files *list)
{
    size_t count = list->count + walk->entry_count;

    if (walk->entry_count > 0) {
        qsort(walk->entries, walk->entry_count, sizeof *walk->entries, compare_entries);
        list->paths = tnd_realloc(list->paths, count, sizeof *list->paths);
        list->labels = tnd_realloc(list->labels, count, sizeof *list->labels);
    }
    for (size_t i = 0; i < walk->entry_count; i++, list->count++) {
        list->paths[list->count] =
            tnd_memory_joined(walk->entries[i].folder, "/", walk->entries[i].name);
        list->labels[list->count] = label;
    }
}

static void
walk_close(struct walk *walk)
{
    for (size_t i = 0; i < walk->entry_count; i++)
        free(walk->entries[i].name);
    free(walk->entries);
    names_close(&walk->folders);
}

/* As os.path.join, which adds no second slash. The root itself keeps its slash. */
static char *
class_path(const struct class_folders *wanted, const char *name)
{
    size_t bytes = strlen(wanted->directory);

    while (bytes > 1 && wanted->directory[bytes - 1] == '/')
        bytes--;
    return tnd_sprintf("%.*s%s%s", (int)bytes, wanted->directory,
                       wanted->directory[bytes - 1] == '/' ? "" : "/", name);
}

/* Add the files of the class folder `name`. */
static tundish_status
find_class(const struct class_folders *wanted, DIR *folder, const char *name, uint32_t label,
           struct matching_files *list)
{
    struct walk walk = { .wanted = wanted };
    tundish_status status = walk_folder(&walk, dirfd(folder), name, class_path(wanted, name), 0);

    if (status == TUNDISH_OK)
        take_class(&walk, label, list);
    walk_close(&walk);
    return status;
}

static tundish_status
find_files(const struct class_folders *wanted, DIR *folder, const struct names *found,
           struct matching_files *list)
{
    bool given = wanted->class_count > 0;
    size_t count = given ? wanted->class_count : found->count;
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < count && status == TUNDISH_OK; i++) {
        const char *name = given ? wanted->class_names[i] : found->list[i];

        if (given)
            status = check_class(wanted, found, name);
        if (status == TUNDISH_OK)
            status = find_class(wanted, folder, name, (uint32_t)i, list);
    }
    return status;
}

static tundish_status
found_nothing(const struct class_folders *wanted, size_t class_count)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "%s: no file in its %zu class folders has one of the extensions "
                    "(extensions: [%s%s])",
                    wanted->directory, class_count,
                    wanted->extension_count > 0 ? wanted->extensions[0] : "",
                    wanted->extension_count > 1 ? ", ..." : "");
}

/* The directory, and the names of its classes. */
struct root {
    char *path;
    DIR *folder;
    struct names classes;
};

/* On any status the caller closes it. */
static tundish_status
open_root(const struct class_folders *wanted, const char *in, bool may_lack, struct root *ret_root)
{
    struct root root = { .path = wanted->directory[0] == '/'
                                     ? tnd_strdup(wanted->directory)
                                     : tnd_sprintf("%s/%s", in, wanted->directory) };
    tundish_status status = TUNDISH_OK;

    if (!may_lack || access(root.path, F_OK) == 0)
        status = open_folder(AT_FDCWD, root.path, wanted->directory, &root.folder);
    if (status == TUNDISH_OK && root.folder != NULL)
        status = find_classes(wanted, root.folder, &root.classes);
    *ret_root = root;
    return status;
}

static void
close_root(struct root *root)
{
    if (root->folder != NULL)
        closedir(root->folder);
    names_close(&root->classes);
    free(root->path);
}

static void
give(tundish_status status, struct matching_files *list, struct matching_files *ret_found)
{
    if (status == TUNDISH_OK)
        *ret_found = *list;
    else
        matching_files_close(list);
}

tundish_status
class_folders_find(const struct class_folders *wanted, const char *root,
                   struct matching_files *ret_found)
{
    struct matching_files list = { 0 };
    struct root at;
    tundish_status status = open_root(wanted, root, false, &at);

    if (status == TUNDISH_OK)
        status = find_files(wanted, at.folder, &at.classes, &list);
    if (status == TUNDISH_OK && list.count == 0)
        status = found_nothing(wanted, at.classes.count);
    give(status, &list, ret_found);
    close_root(&at);
    return status;
}

static void
add_class_folder(const struct class_folders *wanted, const char *name, struct matching_files *list)
{
    char *path = class_path(wanted, name);

    list->paths = tnd_realloc(list->paths, list->count + 1, sizeof *list->paths);
    list->paths[list->count++] = tnd_sprintf("%s/", path);
    free(path);
}

/* A class that only other nodes have is not an error. The labels are not used. */
static tundish_status
find_own(const struct class_folders *wanted, const char *root, struct matching_files *ret_found)
{
    struct matching_files list = { 0 };
    struct root at;
    tundish_status status = open_root(wanted, root, true, &at);

    for (size_t i = 0; i < at.classes.count && status == TUNDISH_OK; i++)
        status = find_class(wanted, at.folder, at.classes.list[i], 0, &list);
    for (size_t i = 0; i < at.classes.count && status == TUNDISH_OK; i++)
        add_class_folder(wanted, at.classes.list[i], &list);
    give(status, &list, ret_found);
    close_root(&at);
    return status;
}

/* The classes in the keys, which are sorted, so that those of a class lie together. */
static void
classes_of_keys(const struct names *keys, size_t folder_bytes, struct names *ret_names)
{
    for (size_t i = 0; i < keys->count; i++) {
        const char *name = keys->list[i] + folder_bytes, *slash = strchr(name, '/');
        size_t bytes = slash != NULL ? (size_t)(slash - name) : 0;
        const char *last = ret_names->count > 0 ? ret_names->list[ret_names->count - 1] : "";

        if (bytes == 0 || name[0] == '.' ||
            (strncmp(last, name, bytes) == 0 && last[bytes] == '\0'))
            continue;
        add_name(ret_names, tnd_sprintf("%.*s", (int)bytes, name));
    }
    if (ret_names->count > 0)
        qsort(ret_names->list, ret_names->count, sizeof(char *), compare_names);
}

static void
walk_keys(struct walk *walk, const struct names *keys, const char *prefix)
{
    size_t prefix_bytes = strlen(prefix);

    for (size_t i = 0; i < keys->count; i++) {
        const char *name = keys->list[i], *slash = strrchr(name, '/');
        char *folder;

        if (strncmp(name, prefix, prefix_bytes) != 0 || slash[1] == '\0' ||
            !has_extension(walk->wanted, slash + 1))
            continue;
        folder = tnd_sprintf("%.*s", (int)(slash - name), name);
        add_name(&walk->folders, folder);
        add_entry(walk, folder, slash + 1);
    }
}

static tundish_status
list_classes(const struct class_folders *wanted, const struct names *keys, const char *folder,
             struct matching_files *list)
{
    bool given = wanted->class_count > 0;
    struct names found = { 0 };
    size_t count;
    tundish_status status = TUNDISH_OK;

    classes_of_keys(keys, strlen(folder), &found);
    count = given ? wanted->class_count : found.count;
    for (size_t i = 0; i < count && status == TUNDISH_OK; i++) {
        const char *name = given ? wanted->class_names[i] : found.list[i];
        char *prefix = tnd_sprintf("%s%s/", folder, name);
        struct walk walk = { .wanted = wanted };

        if (given)
            status = check_class(wanted, &found, name);
        if (status == TUNDISH_OK) {
            walk_keys(&walk, keys, prefix);
            take_class(&walk, (uint32_t)i, list);
        }
        walk_close(&walk);
        free(prefix);
    }
    if (status == TUNDISH_OK && list->count == 0)
        status = found_nothing(wanted, found.count);
    names_close(&found);
    return status;
}

/* The directory with one slash at its end: keys below begin so. */
static char *
key_folder(const struct class_folders *wanted)
{
    size_t bytes = strlen(wanted->directory);

    while (bytes > 0 && wanted->directory[bytes - 1] == '/')
        bytes--;
    return tnd_sprintf("%.*s/", (int)bytes, wanted->directory);
}

tundish_status
class_folders_list(const struct class_folders *wanted, const struct path_base *base,
                   struct matching_files *ret_found)
{
    struct remote_matches matches = { 0 };
    struct names keys = { 0 };
    struct matching_files list = { 0 };
    struct remote *remote = NULL;
    char *folder = key_folder(wanted);
    tundish_status status = remote_get(base->remote, &remote);

    if (status == TUNDISH_OK)
        status = remote_list_below(remote, folder, &matches);
    for (size_t i = 0; i < matches.count; i++)
        add_name(&keys, matches.list[i].name);
    if (status == TUNDISH_OK)
        status = list_classes(wanted, &keys, folder, &list);
    if (status == TUNDISH_OK)
        *ret_found = list;
    else
        matching_files_close(&list);
    free(keys.list); /* the names are the matches' */
    remote_matches_close(&matches);
    free(folder);
    return status;
}

/* The names of the catalogue below the folder; the list is the caller's, they are the catalogue's.
 */
static struct names
names_below(const struct catalogue *catalogue, const char *folder)
{
    struct names names = { 0 };
    size_t bytes = strlen(folder);

    for (uint32_t i = 0; i < catalogue->count; i++)
        if (strncmp(catalogue->files[i].name, folder, bytes) == 0)
            add_name(&names, catalogue->files[i].name);
    return names;
}

tundish_status
class_folders_unite(const struct class_folders *wanted, const struct path_base *base,
                    struct matching_files *ret_found)
{
    char *folder = key_folder(wanted);
    struct names keys = names_below(base->catalogue, folder);
    struct matching_files list = { 0 };
    tundish_status status = list_classes(wanted, &keys, folder, &list);

    if (status == TUNDISH_OK)
        *ret_found = list;
    else
        matching_files_close(&list);
    free(keys.list);
    free(folder);
    return status;
}

tundish_status
class_folders_own(const struct class_folders *wanted, const struct path_base *base,
                  struct matching_files *ret_found)
{
    struct matching_files list = { 0 };
    struct names keys;
    char *folder;

    if (base->catalogue == NULL)
        return find_own(wanted, base->root, ret_found);
    folder = key_folder(wanted);
    keys = names_below(base->catalogue, folder);
    list.paths = tnd_zalloc(keys.count + 1, sizeof *list.paths);
    for (; list.count < keys.count; list.count++)
        list.paths[list.count] = tnd_strdup(keys.list[list.count]);
    *ret_found = list;
    free(keys.list);
    free(folder);
    return TUNDISH_OK;
}
