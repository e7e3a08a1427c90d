/* analyzer_extremes.c - the least and the greatest value: tft's min-max scalings. NaN is passed
 * over, but a key that has one has nothing else, as in tf.Transform. Where there is no value, the
 * least is infinite and the greatest is minus that. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "analyze/places.h"
#include "core/memory.h"

struct extremes {
    struct analyzer_config config;
    struct places places;
    bool is_integer;
    tundish_dtype dtype;
    double *least, *most;
    int64_t *least_integers, *most_integers;
    int64_t capacity;
};

static tundish_status
extremes_open(void *state, const struct analyzer_config *config)
{
    struct extremes *extremes = state;

    extremes->config = *config;
    extremes->is_integer = tnd_dtype_is_integer(config->column->dtype);
    extremes->dtype = extremes->is_integer                       ? TUNDISH_INT64
                      : config->column->dtype == TUNDISH_FLOAT64 ? TUNDISH_FLOAT64
                                                                 : TUNDISH_FLOAT32;
    if (config->column->dtype == TUNDISH_STRING)
        return content_complain(config->content, "%s: '%s' is string, and numbers are needed",
                                config->content->stage->info->name, config->column->name);
    return places_open(&extremes->places, config);
}

static void
reserve(struct extremes *extremes)
{
    int64_t count = places_count(&extremes->places);
    size_t capacity = (size_t)(count + count / 2 + 1);

    if (count <= extremes->capacity && extremes->least != NULL)
        return;
    extremes->least = tnd_realloc(extremes->least, capacity, sizeof(double));
    extremes->most = tnd_realloc(extremes->most, capacity, sizeof(double));
    extremes->least_integers = tnd_realloc(extremes->least_integers, capacity, sizeof(int64_t));
    extremes->most_integers = tnd_realloc(extremes->most_integers, capacity, sizeof(int64_t));
    for (size_t i = (size_t)extremes->capacity; i < capacity; i++) {
        extremes->least[i] = HUGE_VAL;
        extremes->most[i] = -HUGE_VAL;
        extremes->least_integers[i] = INT64_MAX;
        extremes->most_integers[i] = INT64_MIN;
    }
    extremes->capacity = (int64_t)capacity;
}

static tundish_status
extremes_feed(void *state, const struct samples *samples)
{
    struct extremes *extremes = state;
    const int64_t *places;
    tundish_status status = places_find(&extremes->places, samples, &places);

    if (status != TUNDISH_OK)
        return status;
    reserve(extremes);
    for (int64_t i = 0; i < samples->column->value_count; i++) {
        int64_t p = places != NULL ? places[i] : 0;

        if (extremes->is_integer) {
            int64_t x = samples->integers[i];

            if (x < extremes->least_integers[p])
                extremes->least_integers[p] = x;
            if (x > extremes->most_integers[p])
                extremes->most_integers[p] = x;
        } else {
            double x = samples->numbers[i];
            bool spoils = extremes->places.keys != NULL && isnan(x);

            if (x < extremes->least[p] || spoils)
                extremes->least[p] = x;
            if (x > extremes->most[p] || spoils)
                extremes->most[p] = x;
        }
    }
    return TUNDISH_OK;
}

static tundish_status
extremes_finish(void *state)
{
    struct extremes *extremes = state;
    tundish_status status;

    reserve(extremes);
    status = places_write(&extremes->places, &extremes->config, ".min", extremes->dtype, 0,
                          extremes->least, extremes->is_integer ? extremes->least_integers : NULL);
    if (status == TUNDISH_OK)
        status =
            places_write(&extremes->places, &extremes->config, ".max", extremes->dtype, 0,
                         extremes->most, extremes->is_integer ? extremes->most_integers : NULL);
    return status;
}

static void
extremes_close(void *state)
{
    struct extremes *extremes = state;

    places_close(&extremes->places);
    free(extremes->least);
    free(extremes->most);
    free(extremes->least_integers);
    free(extremes->most_integers);
}

static const char *const stages[] = { "scale_by_min_max", "scale_by_min_max_per_key",
                                      "scale_to_0_1", "scale_to_0_1_per_key", NULL };

const struct analyzer_ops analyzer_extremes = {
    .stages = stages,
    .state_bytes = sizeof(struct extremes),
    .open = extremes_open,
    .feed = extremes_feed,
    .finish = extremes_finish,
    .close = extremes_close,
};
