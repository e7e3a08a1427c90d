/* vocab.c - from a text or a list to a mapped table. The table is built unless the cache folder has
 * it. */
#include "content/vocabulary/vocab.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "content/records/missing_file.h"
#include "content/vocabulary/vocab_stat_cache.h"
#include "content/vocabulary/vocab_table.h"
#include "content/vocabulary/vocab_text.h"
#include "core/cache_folder.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/memory.h"
#include "core/status.h"
#include "remote/object.h"

/* A table's name in the cache folder, from its content. Texts and lists have different names
 * because their contents are hashed differently. */
struct table_name {
    char text[TND_CACHE_NAME_BYTES];
};

static struct table_name
name_of(const char *origin, enum vocab_keys keys, const struct vocab_content *content)
{
    struct table_name name;

    snprintf(name.text, sizeof name.text, "vocab-%s-%s-%016llx-%llx", origin,
             keys == VOCAB_INTEGERS ? "integers" : "strings", (unsigned long long)content->hash,
             (unsigned long long)content->bytes);
    return name;
}

/* Map a table that is in the cache folder. O_NOFOLLOW: a link there is not one of ours. */
static tundish_status
map_published(int folder, const struct table_name *name, enum vocab_keys keys,
              const struct vocab_content *content, struct vocab **ret_vocab)
{
    tundish_status status;
    int file = openat(folder, name->text, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

    if (file < 0)
        return tnd_fail_errno(errno, "cannot open %s in the cache folder", name->text);
    status = vocab_table_map(file, keys, content, ret_vocab);
    close(file);
    return status;
}

/* Build the table, publish it, and map the published file: all processes share the same pages. */
static tundish_status
write_and_map(struct tnd_cache_build *build, const struct vocab_terms *terms,
              const struct vocab_content *content, struct vocab **ret_vocab)
{
    enum vocab_keys keys = terms->integers != NULL ? VOCAB_INTEGERS : VOCAB_STRINGS;
    uint8_t *table;
    uint64_t table_bytes;
    int file;
    tundish_status status = vocab_build(terms, content, &table, &table_bytes);

    if (status == TUNDISH_OK) {
        status = tnd_cache_build_write(build, table, table_bytes);
        free(table);
    }
    if (status != TUNDISH_OK) {
        tnd_cache_build_cancel(build);
        return status;
    }
    status = tnd_cache_build_publish(build, &file);
    if (status != TUNDISH_OK)
        return status;
    status = vocab_table_map(file, keys, content, ret_vocab);
    close(file);
    return status;
}

/* Another process may have built the table while this one waited for the lock. A damaged table, or
 * one of another version, is built again and replaced. */
static tundish_status
build_and_map(int folder, const struct table_name *name, const struct vocab_terms *terms,
              const struct vocab_content *content, struct vocab **ret_vocab)
{
    enum vocab_keys keys = terms->integers != NULL ? VOCAB_INTEGERS : VOCAB_STRINGS;
    struct tnd_cache_build build;
    tundish_status status = tnd_cache_build_begin(folder, name->text, &build);

    if (status == TUNDISH_OK) {
        if (map_published(folder, name, keys, content, ret_vocab) == TUNDISH_OK)
            tnd_cache_build_cancel(&build);
        else
            status = write_and_map(&build, terms, content, ret_vocab);
    }
    return status == TUNDISH_OK ? status : tnd_fail_while(status, "vocabulary %s", terms->name);
}

static tundish_status
build_from_text(int folder, const struct table_name *name, struct vocab_text *text,
                enum vocab_keys keys, struct vocab **ret_vocab)
{
    tundish_status status = vocab_text_split(text, keys);

    if (status != TUNDISH_OK)
        return status;
    return build_and_map(folder, name,
                         &(struct vocab_terms){ .name = text->path,
                                                .text = text,
                                                .integers = text->integers,
                                                .count = text->count,
                                                .line_word = "line" },
                         &text->content, ret_vocab);
}

/* Read the text. Its table may exist all the same, if only the file's times changed or another path
 * has the same content. */
static tundish_status
open_by_reading(int folder, int file, const char *path, const struct stat *before,
                enum vocab_keys keys, struct vocab **ret_vocab)
{
    struct vocab_text text;
    struct table_name name;
    struct stat after;
    tundish_status status = vocab_text_read(file, path, (uint64_t)before->st_size, &text);

    if (status != TUNDISH_OK)
        return status;
    /* The text must be one version of the file. A writer in between would mix two. */
    if (fstat(file, &after) != 0 || !vocab_stat_cache_is_same(before, &after)) {
        vocab_text_close(&text);
        return tnd_fail(TUNDISH_E_DATA, "vocabulary %s changed while it was read", path);
    }
    name = name_of("text", keys, &text.content);
    status = map_published(folder, &name, keys, &text.content, ret_vocab);
    if (status != TUNDISH_OK)
        status = build_from_text(folder, &name, &text, keys, ret_vocab);
    if (status == TUNDISH_OK)
        vocab_stat_cache_put(folder, path, before, &text.content);
    vocab_text_close(&text);
    return status;
}

static tundish_status
open_file(int folder, const char *path, enum vocab_keys keys, struct vocab **ret_vocab)
{
    struct vocab_content content;
    struct table_name name;
    struct stat about;
    tundish_status status = TUNDISH_E_CORRUPT;
    /* O_NONBLOCK: a pipe of that name must not hang the server. */
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);

    if (file < 0 && (errno == ENOENT || errno == ENOTDIR))
        return tnd_fail(TUNDISH_E_PIPELINE, "vocabulary file %s does not exist%s", path,
                        missing_file_note(path));
    if (file < 0)
        return tnd_fail_errno(errno, "cannot open vocabulary %s", path);
    if (fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
        close(file);
        return tnd_fail(TUNDISH_E_PIPELINE, "vocabulary %s is not a regular file", path);
    }
    if (vocab_stat_cache_find(folder, path, &about, &content)) {
        name = name_of("text", keys, &content);
        status = map_published(folder, &name, keys, &content, ret_vocab);
    }
    if (status != TUNDISH_OK)
        status = open_by_reading(folder, file, path, &about, keys, ret_vocab);
    close(file);
    return status;
}

/* A copy of the object, which is read as a file is. */
static tundish_status
fetch(int folder, const struct spec_remote *options, const char *url, int *ret_file)
{
    struct remote *remote = NULL;
    struct remote_object *object = NULL;
    tundish_status status = remote_get(options, &remote);

    if (status == TUNDISH_OK)
        status = remote_object_open(remote, folder, url, &object);
    if (status == TUNDISH_OK)
        status = remote_object_copy(object, folder, ret_file);
    remote_object_close(object);
    return status;
}

tundish_status
vocab_open_url(const char *cache_folder, const struct spec_remote *remote, const char *url,
               enum vocab_keys keys, struct vocab **ret_vocab)
{
    struct stat about;
    int folder, file = -1;
    tundish_status status = tnd_cache_folder_open(cache_folder, &folder);

    if (status == TUNDISH_OK) {
        status = fetch(folder, remote, url, &file);
        if (status == TUNDISH_OK && fstat(file, &about) != 0)
            status = tnd_fail_errno(errno, "cannot look at the copy");
        if (status == TUNDISH_OK)
            status = open_by_reading(folder, file, url, &about, keys, ret_vocab);
        if (file >= 0)
            close(file);
        close(folder);
    }
    return status == TUNDISH_OK ? status : tnd_fail_while(status, "vocabulary %s", url);
}

tundish_status
vocab_open_file(const char *cache_folder, const char *path, enum vocab_keys keys,
                struct vocab **ret_vocab)
{
    int folder;
    tundish_status status = tnd_cache_folder_open(cache_folder, &folder);

    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "vocabulary %s", path);
    status = open_file(folder, path, keys, ret_vocab);
    close(folder);
    return status;
}

/* Hash a list with each string's size before its bytes: otherwise ["ab", "c"] and ["a", "bc"] would
 * agree. */
static struct vocab_content
content_of_list(const struct vocab_terms *terms)
{
    struct vocab_content content = { 0 };
    uint8_t *bytes, *to;

    if (terms->integers != NULL) {
        content.bytes = terms->count * sizeof *terms->integers;
        content.hash = tnd_hash_farm(terms->integers, content.bytes);
        content.crc = tnd_crc32c(0, terms->integers, content.bytes);
        return content;
    }
    for (uint64_t i = 0; i < terms->count; i++)
        content.bytes += sizeof terms->strings[i].size + terms->strings[i].size;
    bytes = to = tnd_alloc(content.bytes);
    for (uint64_t i = 0; i < terms->count; i++) {
        memcpy(to, &terms->strings[i].size, sizeof terms->strings[i].size);
        to += sizeof terms->strings[i].size;
        if (terms->strings[i].size > 0)
            memcpy(to, terms->strings[i].data, terms->strings[i].size);
        to += terms->strings[i].size;
    }
    content.hash = tnd_hash_farm(bytes, content.bytes);
    content.crc = tnd_crc32c(0, bytes, content.bytes);
    free(bytes);
    return content;
}

static tundish_status
open_list(const char *cache_folder, const struct vocab_terms *terms, enum vocab_keys keys,
          struct vocab **ret_vocab)
{
    struct vocab_content content;
    struct table_name name;
    int folder;
    tundish_status status;

    status = tnd_cache_folder_open(cache_folder, &folder);
    if (status != TUNDISH_OK)
        return tnd_fail_while(status, "%s", terms->name);
    content = content_of_list(terms);
    name = name_of("list", keys, &content);
    status = map_published(folder, &name, keys, &content, ret_vocab);
    if (status != TUNDISH_OK)
        status = build_and_map(folder, &name, terms, &content, ret_vocab);
    close(folder);
    return status;
}

tundish_status
vocab_open_terms(const char *cache_folder, const char *name, const struct byte_view *terms,
                 size_t count, struct vocab **ret_vocab)
{
    return open_list(cache_folder,
                     &(struct vocab_terms){
                         .name = name, .strings = terms, .count = count, .line_word = "item" },
                     VOCAB_STRINGS, ret_vocab);
}

tundish_status
vocab_open_integers(const char *cache_folder, const char *name, const int64_t *terms, size_t count,
                    struct vocab **ret_vocab)
{
    return open_list(cache_folder,
                     &(struct vocab_terms){
                         .name = name, .integers = terms, .count = count, .line_word = "item" },
                     VOCAB_INTEGERS, ret_vocab);
}
