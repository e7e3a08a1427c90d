/* scribbler.c - a trainer that spoils all that it shares with the server: what a bug in a training
 * program can do at worst.
 *
 *     scribbler SEED ROUNDS
 *
 * Takes a batch as any trainer does, then writes garbage over all of its returns page, from what it
 * looks like after it was mapped by the SDK, and goes on reading through it; ROUNDS times. At the
 * end it fills the counters that it was sent and makes writes to them block. Prints "first" after
 * the first batch, "scribbled" at the end, and then sleeps until it is killed.
 */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tundish/tundish.h>

struct page {
    uint8_t *bytes;
    size_t byte_count;
};

/* The only shared mapping of a memfd that may be written to. */
static struct page
find_page(void)
{
    FILE *maps = fopen("/proc/self/maps", "r");
    char line[512], rights[8];
    uintptr_t begin, end;
    struct page page = { NULL, 0 };

    while (maps != NULL && fgets(line, sizeof line, maps) != NULL)
        if (sscanf(line, "%lx-%lx %7s", &begin, &end, rights) == 3 && strcmp(rights, "rw-s") == 0 &&
            strstr(line, "/memfd:tundish") != NULL)
            page = (struct page){ (uint8_t *)begin, end - begin };
    if (maps != NULL)
        fclose(maps);
    return page;
}

/* What the server writes to next would block, unless it takes care. */
static void
fill_counter(int descriptor)
{
    const uint64_t most = UINT64_MAX - 1;
    uint64_t count;

    if (read(descriptor, &count, sizeof count) < 0 && errno != EAGAIN)
        return;
    if (write(descriptor, &most, sizeof most) == (ssize_t)sizeof most)
        fcntl(descriptor, F_SETFL, 0);
}

static void
fill_counters(void)
{
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;
    char kind[64];

    while (folder != NULL && (entry = readdir(folder)) != NULL) {
        ssize_t bytes = readlinkat(dirfd(folder), entry->d_name, kind, sizeof kind - 1);

        if (bytes <= 0)
            continue;
        kind[bytes] = '\0';
        if (strncmp(kind, "anon_inode:", 11) == 0)
            fill_counter(atoi(entry->d_name));
    }
    if (folder != NULL)
        closedir(folder);
}

static uint64_t
draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Words that mean something are worse than noise: small numbers, the largest, and near misses. */
static void
scribble(const struct page *page, uint64_t *state)
{
    uint64_t *words = (uint64_t *)(void *)page->bytes;

    for (size_t i = 0; i < page->byte_count / sizeof *words; i++) {
        uint64_t word = draw(state);

        switch (word % 4) {
        case 0:
            words[i] = word >> 8;
            break;
        case 1:
            words[i] = word >> 8 & 63;
            break;
        case 2:
            words[i] = UINT64_MAX - (word >> 8 & 7);
            break;
        default:
            words[i] += (word >> 8 & 7) - 3;
            break;
        }
    }
}

/* The first batch, of the next epoch if this one is over. */
static tundish_status
first_batch(tundish_reader *reader, const tundish_batch **ret_batch)
{
    tundish_status status;

    do
        status = tundish_next(reader, TUNDISH_FOREVER, ret_batch);
    while (status == TUNDISH_END);
    return status;
}

int
main(int argc, char **argv)
{
    uint64_t state = argc > 1 ? strtoull(argv[1], NULL, 10) * 2654435761u + 1 : 1;
    unsigned long rounds = argc > 2 ? strtoul(argv[2], NULL, 10) : 1;
    tundish_options options = TUNDISH_OPTIONS_INIT;
    const tundish_batch *batch;
    tundish_reader *reader;
    struct page page;

    if (tundish_open(&options, &reader) != TUNDISH_OK ||
        first_batch(reader, &batch) != TUNDISH_OK) {
        fprintf(stderr, "scribbler: %s\n", tundish_last_error());
        return 1;
    }
    tundish_release(reader, batch);
    page = find_page();
    if (page.bytes == NULL) {
        fprintf(stderr, "scribbler: there is no page to write to\n");
        return 1;
    }
    puts("first");
    fflush(stdout);
    for (unsigned long i = 0; i < rounds; i++) {
        scribble(&page, &state);
        if (tundish_next(reader, 0, &batch) == TUNDISH_OK)
            tundish_release(reader, batch);
    }
    fill_counters();
    puts("scribbled");
    fflush(stdout);
    for (;;)
        pause();
}
