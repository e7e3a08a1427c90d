/* idf_weights.c - weights by index. Special terms get the mean of the other weights, and padding
 * gets zeros, as in Keras. */
#include "learn/analyzers/idf_weights.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"
#include "learn/results/artifact.h"

void
idf_weights_add(struct idf_weights *weights, int64_t documents)
{
    if (weights->count == weights->capacity) {
        weights->capacity = 2 * weights->capacity + 64;
        weights->list =
            tnd_realloc(weights->list, (size_t)weights->capacity, sizeof *weights->list);
    }
    /* Rounded to float32, as Keras stores them before it takes their mean. */
    weights->list[weights->count++] =
        (double)(float)log(1.0 + (double)weights->documents / (double)(1 + documents));
}

tundish_status
idf_weights_write(const struct idf_weights *weights, struct artifact_folder *folder,
                  const char *name)
{
    int64_t given = weights->count + weights->first_term;
    int64_t count = given > weights->depth ? given : weights->depth;
    double *all = tnd_zalloc((size_t)count + 1, sizeof *all);
    struct artifact_table table = {
        .dtype = TUNDISH_FLOAT32, .rank = 1, .shape = &count, .numbers = all
    };
    double mean = 0;
    tundish_status status;

    for (int64_t i = 0; i < weights->count; i++) {
        mean += weights->list[i] / (double)weights->count;
        all[weights->first_term + i] = weights->list[i];
    }
    for (int64_t i = 0; i < weights->first_term; i++)
        all[i] = mean;
    status = artifact_write_table(folder, name, ".idf_weights", &table);
    free(all);
    return status;
}

void
idf_weights_close(struct idf_weights *weights)
{
    free(weights->list);
}
