/* file_split.c - see file_split.h. */
#include "source/files/file_split.h"

#include <stdlib.h>

#include "core/mersenne.h"
#include "core/status.h"

/* NumPy's random_interval: below or at `most`, drawn until it is. */
static uint32_t
draw_at_most(struct tnd_mersenne *random, uint32_t most)
{
    uint32_t mask = UINT32_MAX >> __builtin_clz(most), value;

    do
        value = tnd_mersenne_next(random) & mask;
    while (value > most);
    return value;
}

static void
swap(struct matching_files *files, size_t a, size_t b)
{
    char *path = files->paths[a];
    uint32_t label = files->labels[a];

    files->paths[a] = files->paths[b];
    files->labels[a] = files->labels[b];
    files->paths[b] = path;
    files->labels[b] = label;
}

static void
shuffle(struct matching_files *files, uint32_t seed)
{
    struct tnd_mersenne random;

    tnd_mersenne_start(&random, seed);
    for (size_t i = files->count; i-- > 1;)
        swap(files, i, draw_at_most(&random, (uint32_t)i));
}

/* Move files [begin, begin + count) to the front and forget the others. */
static void
keep(struct matching_files *files, size_t begin, size_t count)
{
    for (size_t i = 0; i < count; i++)
        swap(files, i, begin + i);
    for (size_t i = count; i < files->count; i++)
        free(files->paths[i]);
    files->count = count;
}

tundish_status
file_split_apply(const struct file_split *split, const char *directory,
                 struct matching_files *files)
{
    size_t validation = (size_t)(split->validation * (double)files->count);
    size_t training = files->count - validation;
    size_t count = split->takes_validation ? validation : training;

    if (split->validation == 0)
        return TUNDISH_OK;
    if (count == 0 || validation == 0)
        return tnd_fail(TUNDISH_E_DATA,
                        "%s has %zu files, of which validation_split: %g leaves none for %s",
                        directory, files->count, split->validation,
                        validation == 0 ? "validation" : "training");
    if (split->shuffled)
        shuffle(files, split->seed);
    keep(files, split->takes_validation ? training : 0, count);
    return TUNDISH_OK;
}
