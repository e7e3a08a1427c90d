/* vocab_fixture.h - a cache folder and texts for the tests of vocabulary tables. */
#ifndef VOCAB_FIXTURE_H
#define VOCAB_FIXTURE_H

#include <dirent.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "../remove_tree.h"
#include "content/vocabulary/vocab.h"
#include "core/bytes.h"
#include "core/clock.h"
#include "core/status.h"

static char top[] = "/tmp/tundish-test-XXXXXX";
static char cache[64];

static int
make_top(void **state)
{
    (void)state;
    if (mkdtemp(top) == NULL)
        return 1;
    snprintf(cache, sizeof cache, "%s/cache", top);
    return 0;
}

static int
remove_top(void **state)
{
    (void)state;
    return remove_tree(top);
}

/* Every test begins with an empty cache. */
static int
empty_cache(void **state)
{
    (void)state;
    if (access(cache, F_OK) == 0)
        remove_tree(cache);
    return 0;
}

struct path {
    char text[128];
};

static inline struct path
write_text(const char *name, const void *bytes, size_t count)
{
    struct path path;
    FILE *file;

    snprintf(path.text, sizeof path.text, "%s/%s", top, name);
    file = fopen(path.text, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, count, file), count);
    assert_int_equal(fclose(file), 0);
    return path;
}

/* The only table in the cache. */
static inline struct path
only_table(void)
{
    struct path path = { "" };
    DIR *folder = opendir(cache);
    struct dirent *entry;

    assert_non_null(folder);
    while ((entry = readdir(folder)) != NULL)
        if (strncmp(entry->d_name, "vocab-text", 10) == 0 ||
            strncmp(entry->d_name, "vocab-list", 10) == 0) {
            assert_string_equal(path.text, "");
            assert_true(snprintf(path.text, sizeof path.text, "%s/%.60s", cache, entry->d_name) >
                        0);
        }
    closedir(folder);
    assert_string_not_equal(path.text, "");
    return path;
}

static inline struct vocab *
open_text(const char *name, const char *text)
{
    struct path path = write_text(name, text, strlen(text));
    struct vocab *vocab;

    if (vocab_open_file(cache, path.text, VOCAB_STRINGS, &vocab) != TUNDISH_OK)
        fail_msg("%s", tnd_error_text());
    return vocab;
}

static inline int64_t
line_of(const struct vocab *vocab, const char *term)
{
    struct byte_view view = bytes_of_text(term);
    int64_t line;

    vocab_lookup(vocab, &view, 1, &line);
    return line;
}

#endif
