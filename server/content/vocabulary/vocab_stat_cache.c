/* vocab_stat_cache.c - notes of a text's content hash, one small file for each text, so that an
 * unchanged text need not be read again. */
#include "content/vocabulary/vocab_stat_cache.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/clock.h"
#include "core/crc32c.h"
#include "core/hash_farm.h"
#include "core/magic.h"
#include "core/read_write.h"

/* A file that changed so recently could change again within the resolution of its times, so it gets
 * no note yet. */
#define YOUNG_NS INT64_C(2000000000)

struct note {
    uint64_t magic;
    uint64_t path_hash, path_bytes;
    uint64_t device, inode, size;
    int64_t modified_ns, changed_ns;
    struct vocab_content content;
    uint32_t crc; /* of the members above */
    uint32_t reserved;
};

static int64_t
time_ns(struct timespec time)
{
    return (int64_t)time.tv_sec * 1000000000 + time.tv_nsec;
}

bool
vocab_stat_cache_is_same(const struct stat *a, const struct stat *b)
{
    return a->st_dev == b->st_dev && a->st_ino == b->st_ino && a->st_size == b->st_size &&
           time_ns(a->st_mtim) == time_ns(b->st_mtim) && time_ns(a->st_ctim) == time_ns(b->st_ctim);
}

/* Compose the note of a file as it is now. The note's name depends on the path alone, so a newer
 * note replaces the older one. */
static bool
compose(const char *path, const struct stat *about, const struct vocab_content *content,
        struct note *ret_note, char name[TND_CACHE_NAME_BYTES])
{
    char *whole_path = realpath(path, NULL);

    if (whole_path == NULL)
        return false;
    *ret_note = (struct note){
        .magic = TND_NOTE_MAGIC,
        .path_hash = tnd_hash_farm(whole_path, strlen(whole_path)),
        .path_bytes = strlen(whole_path),
        .device = about->st_dev,
        .inode = about->st_ino,
        .size = (uint64_t)about->st_size,
        .modified_ns = time_ns(about->st_mtim),
        .changed_ns = time_ns(about->st_ctim),
        .content = *content,
    };
    ret_note->crc = tnd_crc32c(0, ret_note, offsetof(struct note, crc));
    snprintf(name, TND_CACHE_NAME_BYTES, "vocab-note-%016llx",
             (unsigned long long)ret_note->path_hash);
    free(whole_path);
    return true;
}

bool
vocab_stat_cache_find(int folder, const char *path, const struct stat *about,
                      struct vocab_content *ret_content)
{
    const struct vocab_content unknown = { 0 };
    struct note expected, found;
    char name[TND_CACHE_NAME_BYTES];
    size_t bytes = 0;
    int file;

    if (!compose(path, about, &unknown, &expected, name))
        return false;
    file = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (file < 0)
        return false;
    (void)tnd_read(file, &found, sizeof found, &bytes);
    close(file);
    if (bytes != sizeof found ||
        /* Everything before the content describes the file. The checksum covers the rest. */
        memcmp(&found, &expected, offsetof(struct note, content)) != 0 ||
        found.crc != tnd_crc32c(0, &found, offsetof(struct note, crc)))
        return false;
    *ret_content = found.content;
    return true;
}

void
vocab_stat_cache_put(int folder, const char *path, const struct stat *about,
                     const struct vocab_content *content)
{
    const int64_t now_ns = tnd_clock_wall_ns();
    struct tnd_cache_build build;
    struct note note;
    char name[TND_CACHE_NAME_BYTES];

    if (now_ns - time_ns(about->st_mtim) < YOUNG_NS || now_ns - time_ns(about->st_ctim) < YOUNG_NS)
        return;
    if (!compose(path, about, content, &note, name) ||
        tnd_cache_build_begin(folder, name, &build) != TUNDISH_OK)
        return;
    if (tnd_cache_build_write(&build, &note, sizeof note) == TUNDISH_OK)
        (void)tnd_cache_build_publish(&build, NULL);
    else
        tnd_cache_build_cancel(&build);
}
