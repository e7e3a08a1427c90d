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
    tundish_dtype dtype;
    int64_t size, result_count; /* length of a vector; number of components wanted */
    double count;
    double *sums, *products; /* products of each pair: the upper half */
};

static tundish_status
covariance_open(void *state, const struct analyzer_config *config)
{
    struct covariance *covariance = state;
    const struct spec_stage *stage = config->content->stage;
    const struct column_spec *column = config->column;

    covariance->config = *config;
    covariance->dtype = spec_dtype(stage, "dtype");
    if (column->dtype == TUNDISH_STRING || column->kind != TUNDISH_DENSE ||
        column->rank != (int)config->content->depth + 1 || column->shape[column->rank - 1] < 1)
        return stage_complain(config->content,
                              "%s: the rows of '%s' must be vectors of a known length",
                              stage->info->name, column->name);
    covariance->size = column->shape[column->rank - 1];
    /* The matrix alone takes 128 MiB at this length. */
    if (covariance->size > 4096)
        return stage_complain(config->content, "%s: vectors of more than 4096 numbers",
                              stage->info->name);
    covariance->sums = tnd_zalloc((size_t)covariance->size, sizeof *covariance->sums);
    covariance->products =
        tnd_zalloc((size_t)(covariance->size * covariance->size), sizeof *covariance->products);
    return TUNDISH_OK;
}

static tundish_status
components_open(void *state, const struct analyzer_config *config)
{
    struct covariance *covariance = state;
    tundish_status status = covariance_open(state, config);

    if (status != TUNDISH_OK)
        return status;
    covariance->result_count = spec_int(config->content->stage, "output_dim");
    if (covariance->result_count > covariance->size)
        return stage_complain(
            config->content, "pca: output_dim is %lld, but the vectors of '%s' have length %lld",
            (long long)covariance->result_count, config->column->name, (long long)covariance->size);
    return TUNDISH_OK;
}

/* Sums and products in float64. tf.Transform adds up in the dtype of the stage, with less
 * precision. */
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

/* Turn the sums into the covariance matrix, in place. It is of the population, as in tf.Transform:
 * divided by the count. */
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
covariance_finish(void *state)
{
    struct covariance *covariance = state;
    int64_t shape[2] = { covariance->size, covariance->size };
    const struct artifact_table table = {
        .dtype = covariance->dtype, .rank = 2, .shape = shape, .numbers = covariance->products
    };

    settle(covariance);
    return artifact_write_table(covariance->config.folder, covariance->config.name, ".covariance",
                                &table);
}

/* The principal components, as columns. The sign of an eigenvector is arbitrary, so the largest
 * entry of each is made positive. */
static void
choose_components(const struct covariance *covariance, double *chosen)
{
    int64_t size = covariance->size, wanted = covariance->result_count;
    double *vectors = tnd_zalloc((size_t)(size * size), sizeof *vectors);

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
    free(vectors);
}

static tundish_status
components_finish(void *state)
{
    struct covariance *covariance = state;
    int64_t shape[2] = { covariance->size, covariance->result_count };
    double *chosen = tnd_zalloc((size_t)(shape[0] * shape[1]) + 1, sizeof *chosen);
    const struct artifact_table table = {
        .dtype = covariance->dtype, .rank = 2, .shape = shape, .numbers = chosen
    };
    tundish_status status;

    settle(covariance);
    choose_components(covariance, chosen);
    status =
        artifact_write_table(covariance->config.folder, covariance->config.name, ".pca", &table);
    free(chosen);
    return status;
}

static void
covariance_close(void *state)
{
    struct covariance *covariance = state;

    free(covariance->sums);
    free(covariance->products);
}

const struct analyzer_ops analyzer_covariance = {
    .state_bytes = sizeof(struct covariance),
    .open = covariance_open,
    .feed = covariance_feed,
    .finish = covariance_finish,
    .close = covariance_close,
};

const struct analyzer_ops analyzer_components = {
    .state_bytes = sizeof(struct covariance),
    .open = components_open,
    .feed = covariance_feed,
    .finish = components_finish,
    .close = covariance_close,
};
