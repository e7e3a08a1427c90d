/* source_range.c - numbers from start to stop, as tf.data.Dataset.range gives them.
 *
 * Words of an element: the number, zero.
 */
#include <string.h>
#ifdef __x86_64__
#include <immintrin.h>
#endif

#include "core/cpu.h"
#include "core/half.h"
#include "core/must.h"
#include "order/cardinality.h"
#include "source/source.h"
#include "source/variable.h"

struct range_bound {
    const struct spec_value *value; /* NULL: the default */
    int64_t otherwise;
};

struct range {
    struct range_bound start, stop, step;
    tundish_dtype dtype;
};

/* Arithmetic is modulo 2^64. None of the `count` numbers lies beyond the stop, so none wraps. */
struct range_state {
    uint64_t first, step, count, taken;
};

/* `stop` may be a list, in the order of Python's arguments: [start,] stop[, step]. */
static tundish_status
read_bounds(const struct stage_config *config, struct range *range)
{
    const struct spec_value *stop = spec_get(config->stage, "stop");
    const struct spec_value *start = spec_get(config->stage, "start");
    const struct spec_value *step = spec_get(config->stage, "step");

    range->start = (struct range_bound){ start, 0 };
    range->stop = (struct range_bound){ stop, 0 };
    range->step = (struct range_bound){ step, 1 };
    if (stop == NULL)
        return stage_complain(config, "range needs a stop: a number, or [start, stop, step]");
    if (stop->kind != SPEC_LIST)
        return TUNDISH_OK;
    if (stop->count < 1 || stop->count > 3)
        return spec_complain(config->errors, stop->line, stop->column,
                             "range takes [stop], [start, stop] or [start, stop, step], not %u "
                             "numbers",
                             stop->count);
    if (spec_given(config->stage, "start") || spec_given(config->stage, "step"))
        return spec_complain(config->errors, stop->line, stop->column,
                             "range takes a list of its bounds, or start, stop and step by name, "
                             "not both");
    range->stop.value = &stop->items[stop->count > 1];
    if (stop->count > 1)
        range->start.value = &stop->items[0];
    if (stop->count > 2)
        range->step.value = &stop->items[2];
    return TUNDISH_OK;
}

static tundish_status
check_bound(const struct stage_config *config, const char *name, const struct spec_value *value)
{
    if (value == NULL || value->kind == SPEC_INTEGER)
        return TUNDISH_OK;
    if (value->kind == SPEC_VARIABLE)
        return variable_check_integer(config, value);
    return spec_complain(config->errors, value->line, value->column,
                         "the %s of range must be an integer of 64 bits", name);
}

static bool
is_literal(const struct range_bound *bound)
{
    return bound->value == NULL || bound->value->kind == SPEC_INTEGER;
}

static int64_t
literal(const struct range_bound *bound)
{
    return bound->value == NULL ? bound->otherwise : bound->value->integer;
}

static uint64_t
count_numbers(int64_t start, int64_t stop, int64_t step)
{
    bool rising = step > 0;
    /* Unsigned: the distance of two int64 may exceed INT64_MAX, and INT64_MIN has no negative. */
    uint64_t distance =
        rising ? (uint64_t)stop - (uint64_t)start : (uint64_t)start - (uint64_t)stop;
    uint64_t stride = rising ? (uint64_t)step : 0 - (uint64_t)step;

    if (rising ? stop <= start : stop >= start)
        return 0;
    return distance / stride + (distance % stride != 0);
}

/* State the column's range, by which later stages may narrow it. Only for int64: narrower types
 * wrap, and floats round. */
static void
state_range(const struct range *range, struct column_spec *column)
{
    int64_t start = literal(&range->start);
    int64_t step = literal(&range->step);
    uint64_t count;

    if (!is_literal(&range->start) || !is_literal(&range->stop) || !is_literal(&range->step) ||
        step == 0 || range->dtype != TUNDISH_INT64)
        return;
    count = count_numbers(start, literal(&range->stop), step);
    if (count == 0)
        return;
    int64_t last = (int64_t)((uint64_t)start + (count - 1) * (uint64_t)step);

    column->has_range = true;
    column->minimum = step > 0 ? start : last;
    column->maximum = step > 0 ? last : start;
}

static tundish_status
range_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct range *range = state;
    tundish_status status = read_bounds(config, range);

    if (status == TUNDISH_OK)
        status = check_bound(config, "start", range->start.value);
    if (status == TUNDISH_OK)
        status = check_bound(config, "stop", range->stop.value);
    if (status == TUNDISH_OK)
        status = check_bound(config, "step", range->step.value);
    if (status != TUNDISH_OK)
        return status;
    range->dtype = spec_dtype(config->stage, "output_type");
    if (!tnd_dtype_is_integer(range->dtype) && !tnd_dtype_is_float(range->dtype))
        return stage_complain(config, "output_type of range must be numeric, not %s",
                              tnd_dtype_name(range->dtype));
    if (is_literal(&range->step) && literal(&range->step) == 0)
        return spec_complain(config->errors, range->step.value->line, range->step.value->column,
                             "the step of range must not be 0");
    state_range(range, schema_add(ret_schema, source_column_name(config), range->dtype));
    return TUNDISH_OK;
}

static tundish_status
resolve_bound(const struct order_iterator *iterator, const struct range_bound *bound,
              int64_t *ret_value)
{
    if (is_literal(bound)) {
        *ret_value = literal(bound);
        return TUNDISH_OK;
    }
    return order_value_int(iterator->instance, bound->value, ret_value);
}

static tundish_status
range_iterate(struct order_iterator *iterator)
{
    const struct range *range = iterator->node->state;
    struct range_state *state = (struct range_state *)iterator->state;
    int64_t start = 0;
    int64_t stop = 0;
    int64_t step = 0;
    tundish_status status = resolve_bound(iterator, &range->start, &start);

    if (status == TUNDISH_OK)
        status = resolve_bound(iterator, &range->stop, &stop);
    if (status == TUNDISH_OK)
        status = resolve_bound(iterator, &range->step, &step);
    if (status != TUNDISH_OK)
        return status;
    /* A step that comes from an outer column is known only now. */
    if (step == 0)
        return order_fail(iterator, TUNDISH_E_DATA, "the step of range must not be 0");
    state->first = (uint64_t)start;
    state->step = (uint64_t)step;
    state->count = count_numbers(start, stop, step);
    return TUNDISH_OK;
}

/* Two words side by side, which most processors load and store as one. */
typedef uint64_t word_pair __attribute__((vector_size(16), aligned(8), may_alias));

static enum order_result
range_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct range_state *state = (struct range_state *)iterator->state;
    uint64_t left = state->count - state->taken;
    size_t count = left < max ? (size_t)left : max;
    word_pair *references = (word_pair *)words;
    word_pair step = { state->step, 0 };
    word_pair reference = { state->first + state->taken * state->step, 0 };
    size_t i = 0;

    for (; i + 4 <= count; i += 4, reference += step) {
        references[i] = reference;
        references[i + 1] = reference += step;
        references[i + 2] = reference += step;
        references[i + 3] = reference += step;
    }
    for (; i < count; i++, reference += step)
        references[i] = reference;
    state->taken += count;
    *ret_count = count;
    return count > 0 ? ORDER_OK : ORDER_END;
}

static tundish_status
range_count(struct order_iterator *iterator, uint64_t *ret_count)
{
    const struct range_state *state = (const struct range_state *)iterator->state;

    *ret_count = state->count;
    return TUNDISH_OK;
}

static tundish_status
range_at(struct order_iterator *iterator, const uint64_t *indices, size_t index_count,
         uint64_t *words)
{
    const struct range_state *state = (const struct range_state *)iterator->state;

    for (size_t i = 0; i < index_count; i++) {
        words[SOURCE_WIDTH * i] = state->first + indices[i] * state->step;
        words[SOURCE_WIDTH * i + 1] = 0;
    }
    return TUNDISH_OK;
}

static enum order_result
range_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct range_state *state = (struct range_state *)iterator->state;
    uint64_t left = state->count - state->taken;

    *ret_passed = count < left ? count : left;
    state->taken += *ret_passed;
    return *ret_passed == count ? ORDER_OK : ORDER_END;
}

static void
range_iterate_close(struct order_iterator *iterator)
{
    (void)iterator;
}

/* One case for each dtype; EXPRESSION converts `number`. Narrow integers keep the low bits, as the
 * static_cast of RangeDatasetOp does. */
#define FILL(dtype, type, expression)                                                              \
    case dtype:                                                                                    \
        for (size_t i = 0; i < count; i++) {                                                       \
            int64_t number = (int64_t)words[i * stride];                                           \
                                                                                                   \
            ((type *)values)[i] = expression;                                                      \
        }                                                                                          \
        break

#ifdef __x86_64__
/* As copy_words, of references that lie one after the other. */
__attribute__((target("avx512f"))) static size_t
copy_pairs(const uint64_t *words, size_t count, uint64_t *values)
{
    const __m512i firsts = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    size_t i = 0;

    for (; i + 8 <= count; i += 8, words += 8 * SOURCE_WIDTH)
        _mm512_storeu_si512(values + i, _mm512_permutex2var_epi64(_mm512_loadu_si512(words), firsts,
                                                                  _mm512_loadu_si512(words + 8)));
    return i;
}
#endif

/* Numbers of 64 bits are the words themselves. Several at a time: there is nothing else to do for a
 * batch of them. */
static void
copy_words(const uint64_t *words, size_t stride, size_t count, uint64_t *values)
{
    size_t i = 0;

#ifdef __x86_64__
    if (stride == SOURCE_WIDTH && tnd_cpu_has(TND_CPU_AVX512)) {
        i = copy_pairs(words, count, values);
        words += i * stride;
    }
#endif
    for (; i + 4 <= count; i += 4, words += 4 * stride) {
        values[i] = words[0];
        values[i + 1] = words[stride];
        values[i + 2] = words[2 * stride];
        values[i + 3] = words[3 * stride];
    }
    for (; i < count; i++, words += stride)
        values[i] = words[0];
}

static void
fill_range(const struct source_read *read, tundish_dtype dtype, void *values)
{
    const uint64_t *words = read->words;
    const size_t stride = read->stride, count = (size_t)read->count;

    switch (dtype) {
        FILL(TUNDISH_INT8, int8_t, (int8_t)number);
        FILL(TUNDISH_UINT8, uint8_t, (uint8_t)number);
        FILL(TUNDISH_INT16, int16_t, (int16_t)number);
        FILL(TUNDISH_UINT16, uint16_t, (uint16_t)number);
        FILL(TUNDISH_INT32, int32_t, (int32_t)number);
        FILL(TUNDISH_UINT32, uint32_t, (uint32_t)number);
        FILL(TUNDISH_FLOAT16, uint16_t, tnd_half_from_float((float)number));
        FILL(TUNDISH_BFLOAT16, uint16_t, tnd_bfloat_from_float((float)number));
        FILL(TUNDISH_FLOAT32, float, (float)number);
        FILL(TUNDISH_FLOAT64, double, (double)number);
    case TUNDISH_INT64:
    case TUNDISH_UINT64:
        copy_words(words, stride, count, values);
        break;
    case TUNDISH_BOOL:
    case TUNDISH_STRING:
    default:
        must(false); /* open refuses these */
    }
}

static tundish_status
range_read(const void *state, const struct source_read *read)
{
    const struct range *range = state;
    size_t bytes = (size_t)read->count * tnd_dtype_bytes(range->dtype);
    void *values = frame_values(read->output, 0, bytes);

    fill_range(read, range->dtype, values);
    column_set_scalars(&read->output->columns[0], read->count, values);
    return TUNDISH_OK;
}

static void
range_close(void *state)
{
    (void)state;
}

static void
range_tell(const void *state, struct source_files *files, const uint64_t *words,
           struct whereabouts *ret_where)
{
    (void)state;
    (void)files;
    ret_where->number_name = "value";
    ret_where->number = (int64_t)words[0];
}

const struct source_ops source_range = {
    .name = "range",
    .order = { .name = "range",
               .cardinality = order_count_source,
               .state_bytes = sizeof(struct range_state),
               .open = range_iterate,
               .next = range_next,
               .close = range_iterate_close,
               .count = range_count,
               .at = range_at,
               .pass_over = range_pass_over },
    .tell = range_tell,
    .words_are_values = true,
    .words = WORDS_ARE_THE_SAME,
    .state_bytes = sizeof(struct range),
    .open = range_open,
    .read = range_read,
    .reads_files = false,
    .close = range_close,
};
