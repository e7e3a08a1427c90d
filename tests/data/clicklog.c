/* clicklog.c - what stands in a row of a made-up click log. */
#include "clicklog.h"

#include <math.h>

#include "draw.h"

/* From the Criteo Kaggle set, C1 to C26. */
static const uint32_t criteo_cardinality[CATEGORY_COUNT] = {
    1460, 583,   10131227, 2202608, 305,  24,   12517, 633,     4,  93145, 5683,   8351593, 3194,
    27,   14992, 5461306,  10,      5652, 2173, 4,     7046547, 18, 15,    286181, 105,     142572,
};

#define CARDINALITY_MAX 1000000
#define MISSING_INTEGERS 0.05
#define MISSING_CATEGORIES 0.03
#define CATEGORY_WEIGHT 0.55
#define INTEGER_WEIGHT 0.25
#define BASE_LOG_ODDS (-1.25) /* about a quarter of the rows are clicks */

/* What a draw is for: its place in the numbering of a row's draws. */
enum purpose {
    FOR_LABEL,
    FOR_INTEGER,                                    /* three for each integer */
    FOR_CATEGORY = FOR_INTEGER + 3 * INTEGER_COUNT, /* two for each category */
    FOR_WEIGHT = FOR_CATEGORY + 2 * CATEGORY_COUNT, /* of the model, not of a row */
};

static int64_t
draw_integer(const struct clicklog *log, uint64_t index, uint32_t column)
{
    double spread = draw_normal(log->seed, index, FOR_INTEGER + 3 * column);
    double value = floor(exp(1.0 + 0.35 * column + 1.6 * spread)) - 1.0;

    return (int64_t)fmin(value, 2e9);
}

/* How much a term speaks for a click, in (-1, 1). Frequent terms speak as loudly as rare ones. */
static double
category_effect(const struct clicklog *log, uint32_t category, uint32_t rank)
{
    return 2.0 * draw_uniform(log->seed, rank, FOR_WEIGHT + 1 + category) - 1.0;
}

static double
integer_effect(const struct clicklog *log, uint32_t column, int64_t value)
{
    double weight = 2.0 * draw_uniform(log->seed, column, FOR_WEIGHT) - 1.0;
    double expected = 1.0 + 0.35 * column;

    return weight * (log1p(value > 0 ? (double)value : 0.0) - expected);
}

static double
log_odds(const struct clicklog *log, const struct clicklog_row *row)
{
    double odds = BASE_LOG_ODDS;

    for (uint32_t i = 0; i < INTEGER_COUNT; i++) {
        if (row->has_integer[i])
            odds += INTEGER_WEIGHT * integer_effect(log, i, row->integer[i]);
    }
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++) {
        if (row->rank[i] != CLICKLOG_MISSING)
            odds += CATEGORY_WEIGHT * category_effect(log, i, row->rank[i]);
    }
    return odds;
}

struct clicklog
clicklog_like_criteo(uint64_t seed, uint64_t row_count)
{
    struct clicklog log = { .seed = seed };
    uint64_t most = row_count < CARDINALITY_MAX ? row_count : CARDINALITY_MAX;

    if (most == 0)
        most = 1;
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++)
        log.cardinality[i] = criteo_cardinality[i] < most ? criteo_cardinality[i] : (uint32_t)most;
    return log;
}

struct clicklog_row
clicklog_row_at(const struct clicklog *log, uint64_t index)
{
    struct clicklog_row row = { 0 };

    for (uint32_t i = 0; i < INTEGER_COUNT; i++) {
        row.has_integer[i] =
            draw_uniform(log->seed, index, FOR_INTEGER + 3 * i + 2) >= MISSING_INTEGERS;
        row.integer[i] = draw_integer(log, index, i);
    }
    for (uint32_t i = 0; i < CATEGORY_COUNT; i++) {
        uint64_t purpose = FOR_CATEGORY + 2 * i;

        row.rank[i] = CLICKLOG_MISSING;
        if (draw_uniform(log->seed, index, purpose + 1) >= MISSING_CATEGORIES)
            row.rank[i] = draw_zipf(draw_uniform(log->seed, index, purpose), log->cardinality[i]);
    }
    row.label = draw_uniform(log->seed, index, FOR_LABEL) < 1.0 / (1.0 + exp(-log_odds(log, &row)));
    return row;
}

uint32_t
clicklog_term(uint32_t category, uint32_t rank)
{
    uint32_t x = rank * UINT32_C(2654435761) + (category + 1) * UINT32_C(0x9E3779B1);

    /* Each step is a bijection, so different ranks get different terms. */
    x = (x ^ (x >> 16)) * UINT32_C(0x85EBCA6B);
    x = (x ^ (x >> 13)) * UINT32_C(0xC2B2AE35);
    return x ^ (x >> 16);
}

void
clicklog_put_term(char text[8], uint32_t category, uint32_t rank)
{
    static const char digits[] = "0123456789abcdef";
    uint32_t term = clicklog_term(category, rank);

    for (int i = 0; i < 8; i++)
        text[i] = digits[(term >> (28 - 4 * i)) & 15];
}
