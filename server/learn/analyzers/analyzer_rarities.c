/* analyzer_rarities.c - tft.tfidf: in how many rows each id is, and what weight that gives it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/analyzers/analyzer.h"
#include "learn/results/artifact.h"

struct rarities {
    struct analyzer_config config;
    int64_t vocab_size;
    bool smooth;
    int64_t rows;
    int64_t *rows_of;  /* by id */
    int64_t *last_row; /* by id: the last row that had it, from 1 */
};

static tundish_status
rarities_open(void *state, const struct analyzer_config *config)
{
    struct rarities *rarities = state;

    rarities->config = *config;
    rarities->vocab_size = spec_int(config->content->stage, "vocab_size");
    rarities->smooth = spec_bool(config->content->stage, "smooth");
    if (!tnd_dtype_is_integer(config->column->dtype) || config->column->rank < 1)
        return stage_complain(config->content, "tfidf: the rows of '%s' must be lists of integers",
                              config->column->name);
    if (rarities->vocab_size > INT64_C(1) << 30)
        return stage_complain(config->content, "tfidf: vocab_size is above 2^30");
    rarities->rows_of = tnd_zalloc((size_t)rarities->vocab_size, sizeof *rarities->rows_of);
    rarities->last_row = tnd_zalloc((size_t)rarities->vocab_size, sizeof *rarities->last_row);
    return TUNDISH_OK;
}

static tundish_status
rarities_feed(void *state, const struct samples *samples)
{
    struct rarities *rarities = state;
    const struct column *column = samples->column;
    uint32_t last = column->level_count - 1;
    int64_t lists = column_list_count(column, last);

    /* A row is a list of the innermost level. */
    for (int64_t row = 0; row < lists; row++) {
        int64_t end = level_begin(&column->levels[last], row + 1);

        rarities->rows++;
        for (int64_t i = level_begin(&column->levels[last], row); i < end; i++) {
            /* Ids outside of the vocabulary wrap around, as floormod does in Python. */
            int64_t id = samples->integers[i] % rarities->vocab_size;

            id = id < 0 ? id + rarities->vocab_size : id;
            /* An id counts once for a row, however often the row has it. */
            rarities->rows_of[id] += rarities->last_row[id] != rarities->rows;
            rarities->last_row[id] = rarities->rows;
        }
    }
    return TUNDISH_OK;
}

static tundish_status
rarities_finish(void *state)
{
    struct rarities *rarities = state;
    double *weights = tnd_zalloc((size_t)rarities->vocab_size, sizeof *weights);
    struct artifact_table table = {
        .dtype = TUNDISH_FLOAT32, .rank = 1, .shape = &rarities->vocab_size, .numbers = weights
    };
    double rows = (double)rarities->rows;
    tundish_status status;

    for (int64_t id = 0; id < rarities->vocab_size; id++) {
        double with = (double)rarities->rows_of[id];

        /* Without smoothing an id that never occurs has an infinite weight, as in tf.Transform. */
        weights[id] = rarities->smooth ? log((rows + 1) / (with + 1)) + 1 : log(rows / with) + 1;
    }
    status = artifact_write_table(rarities->config.folder, rarities->config.name, ".idf_weights",
                                  &table);
    free(weights);
    return status;
}

static void
rarities_close(void *state)
{
    struct rarities *rarities = state;

    free(rarities->rows_of);
    free(rarities->last_row);
}

const struct analyzer_ops analyzer_rarities = {
    .state_bytes = sizeof(struct rarities),
    .open = rarities_open,
    .feed = rarities_feed,
    .finish = rarities_finish,
    .close = rarities_close,
};
