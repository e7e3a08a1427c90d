/* health.c - what a look at the values of a column counts. */
#include "session/health.h"

#include <string.h>

#include "core/must.h"
#include "session/session_private.h"

static const int64_t EVERY_NS = 100000000;

/* The bits of a number: without its sign, and those of infinity. Larger ones are NaN. */
static const struct form {
    uint64_t magnitude, infinity; /* infinity 0: the dtype has none */
} forms[] = {
    [TUNDISH_FLOAT16] = { 0x7fff, 0x7c00 },
    [TUNDISH_BFLOAT16] = { 0x7fff, 0x7f80 },
    [TUNDISH_FLOAT32] = { 0x7fffffff, 0x7f800000 },
    [TUNDISH_FLOAT64] = { INT64_MAX, UINT64_C(0x7ff0000000000000) },
    [TUNDISH_STRING] = { 0 },
};

/* Look at every `step`-th value from `begin` on: at most HEALTH_VALUES of them, and later looks see
 * the others. */
struct stride {
    int64_t begin, step;
};

static struct stride
stride_of(int64_t count, uint64_t look)
{
    int64_t step = (count + HEALTH_VALUES - 1) / HEALTH_VALUES;

    must_in_debug(count >= 0);
    return (struct stride){ .begin = step > 0 ? (int64_t)(look % (uint64_t)step) : 0,
                            .step = step > 0 ? step : 1 };
}

static void
count_length(uint64_t length, struct tnd_stats_column *values)
{
    bool is_first = tnd_stats_get(&values->rows) == 0;

    tnd_stats_add(&values->rows, 1);
    tnd_stats_add(&values->lengths, length);
    if (is_first || length < tnd_stats_get(&values->shortest))
        tnd_stats_set(&values->shortest, length);
    if (is_first || length > tnd_stats_get(&values->longest))
        tnd_stats_set(&values->longest, length);
}

static void
count_texts(const struct output_column *column, uint64_t look, struct tnd_stats_column *values)
{
    const struct byte_view *texts = column->values;
    struct stride stride = stride_of(column->value_count, look);

    for (int64_t i = stride.begin; i < column->value_count; i += stride.step) {
        tnd_stats_add(&values->values, 1);
        tnd_stats_add(&values->zeros, texts[i].size == 0);
        if (column->splits_count == 0)
            count_length(texts[i].size, values);
    }
}

static void
count_numbers(const struct output_column *column, uint64_t look, struct tnd_stats_column *values)
{
    const uint8_t *bytes = column->values;
    size_t width = tnd_dtype_bytes(column->spec->dtype);
    struct form form = forms[column->spec->dtype];
    struct stride stride = stride_of(column->value_count, look);
    uint64_t seen = 0, zeros = 0, infinite = 0, nan = 0;

    for (int64_t i = stride.begin; i < column->value_count; i += stride.step) {
        uint64_t bits = 0;

        memcpy(&bits, bytes + (size_t)i * width, width);
        if (form.infinity > 0)
            bits &= form.magnitude;
        seen++;
        zeros += bits == 0;
        infinite += form.infinity > 0 && bits == form.infinity;
        nan += form.infinity > 0 && bits > form.infinity;
    }
    tnd_stats_add(&values->values, seen);
    tnd_stats_add(&values->zeros, zeros);
    tnd_stats_add(&values->infinite, infinite);
    tnd_stats_add(&values->nan, nan);
}

static void
count_rows(const struct output_column *column, uint64_t look, struct tnd_stats_column *values)
{
    const int64_t *splits = column->splits[0];
    int64_t rows = column->splits_lengths[0] - 1;
    struct stride stride = stride_of(rows, look);

    for (int64_t i = stride.begin; i < rows; i += stride.step)
        count_length((uint64_t)(splits[i + 1] - splits[i]), values);
}

void
health_count(const struct output_column *column, uint64_t look, struct tnd_stats_column *values)
{
    if (column->splits_count > 0)
        count_rows(column, look, values);
    if (column->spec->dtype == TUNDISH_STRING)
        count_texts(column, look, values);
    else
        count_numbers(column, look, values);
}

void
health_look(struct health *health, const struct output_column *columns, int64_t now_ns)
{
    for (uint32_t i = 0; i < health->count; i++)
        health_count(&columns[i], health->looks, health->columns[i]);
    health->looks++;
    atomic_store_explicit(&health->next_ns, now_ns + EVERY_NS, memory_order_release);
}

void
health_open(struct health *health, const struct session *session)
{
    const struct schema *schema = &session->plan->element_spec;

    health->count = schema->count < HEALTH_COLUMNS ? schema->count : HEALTH_COLUMNS;
    for (uint32_t i = 0; i < health->count; i++) {
        char labels[TND_STATS_LABEL_BYTES];

        session_stats_label(labels, session);
        stats_label(labels, "column", schema->columns[i].name);
        health->columns[i] = stats_add(session->counters.stats, TND_STATS_KIND_column, labels);
    }
}

void
health_close(struct health *health, struct stats *stats)
{
    for (uint32_t i = 0; i < health->count; i++)
        stats_drop(stats, health->columns[i]);
    health->count = 0;
}
