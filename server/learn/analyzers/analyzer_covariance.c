/* analyzer_covariance.c - tft.covariance, and tft.pca from it. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "learn/analyzers/analyzer.h"
#include "learn/analyzers/eigen.h"
#include "learn/results/artifact.h"

struct covariance {
    struct analyzer_config config;
    bool is_pca;
    tundish_dtype dtype;
    int64_t size, result_count; /* of a vector; components wanted */
    double count;
    double *sums, *products; /* products: of each two, the upper half */
};

static tundish_status
covariance_open(void *state, const struct analyzer_config *config)
{
    struct covariance *covariance = state;
    const struct spec_stage *stage = config->content->stage;
    const struct column_spec *column = config->column;

    covariance->config = *config;
    covariance->is_pca = strcmp(stage->info->name, "pca") == 0;
    covariance->dtype = spec_dtype(stage, "dtype");
    if (column->dtype == TUNDISH_STRING || column->kind != TUNDISH_DENSE ||
        column->rank != (int)config->content->depth + 1 || column->shape[column->rank - 1] < 1)
        return stage_complain(config->content,
                              "%s: the rows of '%s' must be vectors of a known number of numbers",
                              stage->info->name, column->name);
    covariance->size = column->shape[column->rank - 1];
    covariance->result_count = covariance->is_pca ? spec_int(stage, "output_dim") : 0;
    if (covariance->size > 4096)
        return stage_complain(config->content, "%s: vectors of more than 4096 numbers",
                              stage->info->name);
    if (covariance->result_count > covariance->size)
        return stage_complain(
            config->content, "pca: output_dim is %lld, but the vectors of '%s' have %lld numbers",
            (long long)covariance->result_count, column->name, (long long)covariance->size);
    covariance->sums = tnd_zalloc((size_t)covariance->size, sizeof *covariance->sums);
    covariance->products =
        tnd_zalloc((size_t)(covariance->size * covariance->size), sizeof *covariance->products);
    return TUNDISH_OK;
}

static tundish_status
covariance_feed(void *state, const struct samples *samples)
{
    struct covariance *covariance = state;
    int64_t size = covariance->size, rows = samples->column->value_count / size;

    for (int64_t row = 0; row < rows; row++) {
        const double *x = samples->numbers + row * size;

        for (int64_t i = 0; i < size; i++) {
            covariance->sums[i] += x[i];
            for (int64_t k = i; k < size; k++)
                covariance->products[i * size + k] += x[i] * x[k];
        }
    }
    covariance->count += (double)rows;
    return TUNDISH_OK;
}

/* Sums to the covariance matrix, in place. */
static void
settle(struct covariance *covariance)
{
    int64_t size = covariance->size;
    double count = covariance->count > 0 ? covariance->count : 1;

    for (int64_t i = 0; i < size; i++)
        for (int64_t k = i; k < size; k++) {
            double value = covariance->products[i * size + k] / count -
                           covariance->sums[i] / count * (covariance->sums[k] / count);

            covariance->products[i * size + k] = covariance->products[k * size + i] = value;
        }
}

static tundish_status
write_components(struct covariance *covariance, struct artifact_table *table)
{
    int64_t size = covariance->size, wanted = covariance->result_count;
    int64_t shape[2] = { size, wanted };
    double *vectors = tnd_zalloc((size_t)(size * size), sizeof *vectors);
    double *chosen = tnd_zalloc((size_t)(size * wanted) + 1, sizeof *chosen);
    tundish_status status;

    eigen_vectors(covariance->products, size, vectors);
    for (int64_t c = 0; c < wanted; c++) {
        const double *vector = &vectors[c * size];
        int64_t largest = 0;

        for (int64_t i = 1; i < size; i++)
            if (fabs(vector[i]) > fabs(vector[largest]))
                largest = i;
        for (int64_t i = 0; i < size; i++)
            chosen[i * wanted + c] = vector[largest] < 0 ? -vector[i] : vector[i];
    }
    table->shape = shape;
    table->numbers = chosen;
    status =
        artifact_write_table(covariance->config.folder, covariance->config.name, ".pca", table);
    free(vectors);
    free(chosen);
    return status;
}

static tundish_status
covariance_finish(void *state)
{
    struct covariance *covariance = state;
    int64_t shape[2] = { covariance->size, covariance->size };
    struct artifact_table table = {
        .dtype = covariance->dtype, .rank = 2, .shape = shape, .numbers = covariance->products
    };

    settle(covariance);
    if (covariance->is_pca)
        return write_components(covariance, &table);
    return artifact_write_table(covariance->config.folder, covariance->config.name, ".covariance",
                                &table);
}

static void
covariance_close(void *state)
{
    struct covariance *covariance = state;

    free(covariance->sums);
    free(covariance->products);
}

static const char *const stages[] = { "covariance", "pca", NULL };

const struct analyzer_ops analyzer_covariance = {
    .stages = stages,
    .state_bytes = sizeof(struct covariance),
    .open = covariance_open,
    .feed = covariance_feed,
    .finish = covariance_finish,
    .close = covariance_close,
};
