/* encoding.c - one-hot, multi-hot, count and tf-idf vectors. Each vector of the result is filled by
 * itself; the input's rank decides which indices belong to it. */
#include "content/terms/encoding.h"

#include <string.h>

#include "column/convert.h"
#include "column/dims.h"

bool
encoding_mode_of(const char *name, enum encoding_mode *ret_mode)
{
    static const struct {
        const char *name;
        enum encoding_mode mode;
    } modes[] = {
        { .name = "int", .mode = ENCODE_INT },
        { .name = "one_hot", .mode = ENCODE_ONE_HOT },
        { .name = "binary", .mode = ENCODE_MULTI_HOT },
        { .name = "multi_hot", .mode = ENCODE_MULTI_HOT },
        { .name = "count", .mode = ENCODE_COUNT },
        { .name = "tf_idf", .mode = ENCODE_TF_IDF },
        { .name = "tf-idf", .mode = ENCODE_TF_IDF },
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0) {
            *ret_mode = modes[i].mode;
            return true;
        }
    return false;
}

/* Keras' one_hot squeezes a last dimension that is known to be 1, including one of ragged lists. */
static bool
drops_last(const struct column_spec *spec)
{
    bool can = spec->kind == TUNDISH_DENSE || (spec->kind == TUNDISH_RAGGED && spec->rank == 2);

    return can && spec->rank > 1 && spec->shape[spec->rank - 1] == 1;
}

/* The shape after one_hot: the input's with `depth` appended. A scalar becomes a vector of one
 * first. */
static void
one_hot_shape(struct column_spec *column, int64_t depth)
{
    if (column->rank == 0)
        column->shape[column->rank++] = 1;
    else if (drops_last(column)) {
        column->rank--;
        column->kind = TUNDISH_DENSE;
        column->ragged_rank = 0;
    }
    column->shape[column->rank++] = depth;
}

/* The shape after counting: dimension 1, or the only one, is replaced by `depth` at the end. */
static void
counted_shape(struct column_spec *column, int64_t depth)
{
    int gone = column->rank > 1 ? 1 : 0;

    for (int k = gone; k + 1 < column->rank; k++)
        column->shape[k] = column->shape[k + 1];
    if (column->rank > 0)
        column->rank--;
    column->shape[column->rank++] = depth;
}

/* Refuse what Keras cannot do inside tf.data, where it does not know the shape. */
static tundish_status
check_sparse(const struct encoding *encoding, const struct stage_config *config,
             const struct column_spec *column)
{
    const char *layer = config->stage->info->name;
    bool by_shape = encoding->mode == ENCODE_ONE_HOT || column->rank > 2;

    if (encoding->mode == ENCODE_TF_IDF && column->rank == 2)
        return stage_complain(config,
                              "%s: sparse tf_idf takes single rows, and '%s' has two dimensions: "
                              "put this stage before batch",
                              layer, column->name);
    for (int k = 0; by_shape && k < column->rank; k++)
        if (column->shape[k] < 0)
            return stage_complain(config,
                                  "%s: a sparse encoding of '%s' needs a known shape: put this "
                                  "stage before batch, or batch with drop_remainder",
                                  layer, column->name);
    return TUNDISH_OK;
}

tundish_status
encoding_open(const struct encoding *encoding, const struct stage_config *config,
              struct column_spec *column, bool *ret_batch_wide)
{
    const char *layer = config->stage->info->name;
    bool one_hot = encoding->mode == ENCODE_ONE_HOT;

    if (column->rank == RANK_UNKNOWN || (one_hot && column->rank >= RANK_MAX))
        return stage_complain(config, "%s: the shape of '%s' must be known for %s", layer,
                              column->name, one_hot ? "one_hot" : "this output_mode");
    if (column->kind != TUNDISH_DENSE && (one_hot || column->rank > 2)) {
        if (column->kind == TUNDISH_SPARSE || column->rank > 2)
            return stage_complain(config, "%s: '%s' is %s, which %s cannot encode", layer,
                                  column->name,
                                  column->kind == TUNDISH_SPARSE ? "sparse" : "ragged",
                                  one_hot ? "one_hot" : "this output_mode");
    }
    if (encoding->sparse) {
        tundish_status status = check_sparse(encoding, config, column);

        if (status != TUNDISH_OK)
            return status;
    }
    /* Up to rank 1 the counted dimension is the batch itself. */
    if (!one_hot && column->rank <= 1 && config->depth > 0)
        *ret_batch_wide = true;
    if (one_hot)
        one_hot_shape(column, encoding->depth);
    else {
        counted_shape(column, encoding->depth);
        column->kind = TUNDISH_DENSE;
        column->ragged_rank = 0;
        if (encoding->sparse && column->rank == 2)
            column->shape[0] = -1; /* TensorFlow loses it */
    }
    if (encoding->sparse) {
        column->kind = TUNDISH_SPARSE;
        column->ragged_rank = 0;
    }
    column->dtype = encoding->dtype;
    column->has_range = false;
    return TUNDISH_OK;
}

struct work {
    const struct encoding *encoding;
    const int64_t *indices;
    const float *weights;
    struct frame *output;
    int64_t element;
    bool from_sparse;
    bool refuses_negative;
};

static void
add_float(const struct work *work, float *vector, int64_t at, int64_t index)
{
    switch (work->encoding->mode) {
    case ENCODE_COUNT:
        vector[index] += work->weights != NULL ? work->weights[at] : 1.0F;
        break;
    case ENCODE_TF_IDF:
        vector[index] += 1.0F;
        break;
    default:
        vector[index] = 1.0F;
    }
}

static void
add_integer(const struct work *work, int64_t *vector, int64_t index)
{
    vector[index] = work->encoding->mode == ENCODE_COUNT ? vector[index] + 1 : 1;
}

/* int64 is counted in int64. Every other dtype is counted in float32 and converted, which is exact
 * up to 2^24. */
static bool
is_float_work(const struct encoding *encoding)
{
    return encoding->dtype != TUNDISH_INT64;
}

static size_t
cell_bytes(const struct encoding *encoding)
{
    return is_float_work(encoding) ? sizeof(float) : sizeof(int64_t);
}

/* Fill one zeroed vector from indices begin, begin + stride ... An index from `depth` on is
 * ignored, as by tf.one_hot and tf.math.bincount. */
static void
fill_vector(const struct work *work, void *vector, int64_t begin, int64_t count, int64_t stride)
{
    const struct encoding *encoding = work->encoding;

    for (int64_t i = 0; i < count; i++) {
        int64_t at = begin + i * stride, index = work->indices[at];

        if (index < 0 && work->refuses_negative)
            frame_reject(work->output, work->element,
                         "an index to encode must be non-negative, not %lld", (long long)index);
        if (index < 0 || index >= encoding->depth)
            continue;
        if (is_float_work(encoding))
            add_float(work, vector, at, index);
        else
            add_integer(work, vector, index);
    }
    /* Weights apply to the counts of the whole vector, so multiply once at the end. */
    if (encoding->mode == ENCODE_TF_IDF)
        for (int64_t i = 0; i < encoding->depth; i++)
            ((float *)vector)[i] *= encoding->depth_weights[i];
}

/* All vectors of the column, and how they are arranged. */
struct vectors {
    struct column outer; /* the result's levels without the last */
    int64_t count;
};

/* one_hot: every index becomes a vector. */
static void
one_hot_vectors(const struct column_spec *spec, const struct column *indices,
                struct vectors *vectors)
{
    vectors->outer = *indices;
    vectors->count = indices->value_count;
    if (spec->rank == 0) {
        vectors->outer.level_count = 1;
        vectors->outer.levels[0] = (struct level){ .uniform = 1 };
    } else if (drops_last(spec))
        vectors->outer.level_count--;
}

static void
encode_each_index(struct work *work, const struct column *indices, uint8_t *values)
{
    size_t bytes = (size_t)work->encoding->depth * cell_bytes(work->encoding);

    /* tf.one_hot leaves the vector of a negative index at zero. */
    work->refuses_negative = false;
    for (int64_t i = 0; i < indices->value_count; i++)
        fill_vector(work, values + (size_t)i * bytes, i, 1, 1);
}

/* Up to rank 2: a vector for each element, or for each list of level 0. TensorFlow's bincount
 * refuses negative values, except for sparse matrices. */
static void
encode_lists(struct work *work, const struct column *indices, uint8_t *values)
{
    size_t bytes = (size_t)work->encoding->depth * cell_bytes(work->encoding);

    work->refuses_negative = !work->from_sparse || indices->level_count < 2;
    for (int64_t i = 0; i < indices->count; i++) {
        bool whole = indices->level_count < 2;
        int64_t first = whole ? i : level_begin(&indices->levels[0], i);
        int64_t last = whole ? i + 1 : level_begin(&indices->levels[0], i + 1);

        work->element = i;
        for (int64_t list = first; list < last; list++, values += bytes) {
            int64_t begin, end;

            if (whole)
                column_value_range(indices, i, i + 1, &begin, &end);
            else {
                begin = level_begin(&indices->levels[1], list);
                end = level_begin(&indices->levels[1], list + 1);
            }
            fill_vector(work, values, begin, end - begin, 1);
        }
    }
}

/* From rank 3 on Keras sums one-hot vectors over dimension 1. */
static void
encode_dimension_1(struct work *work, const struct column *indices, uint8_t *values)
{
    size_t bytes = (size_t)work->encoding->depth * cell_bytes(work->encoding);
    uint32_t rank = indices->level_count;

    work->refuses_negative = false;
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t dims[RANK_MAX], begin, end, inner;

        column_dims(indices, i, dims);
        column_value_range(indices, i, i + 1, &begin, &end);
        inner = dims_product(dims + 2, rank - 2);
        work->element = i;
        for (int64_t outer = 0; outer < dims[0]; outer++)
            for (int64_t j = 0; j < inner; j++, values += bytes)
                fill_vector(work, values, begin + outer * dims[1] * inner + j, dims[1], inner);
    }
}

/* The levels that remain after dimension 1, or the only one, was counted over. */
static void
counted_vectors(const struct column *indices, struct scratch *scratch, struct vectors *vectors)
{
    uint32_t rank = indices->level_count;
    int64_t *kept;

    if (rank < 3) {
        vectors->outer = (struct column){ .count = indices->count };
        vectors->count = indices->count;
        if (rank == 2) {
            vectors->outer.level_count = 1;
            vectors->outer.levels[0] = indices->levels[0];
            vectors->count = level_begin(&indices->levels[0], indices->count);
        }
        return;
    }
    kept = scratch_array(scratch, (size_t)indices->count * rank, sizeof *kept);
    for (int64_t i = 0; i < indices->count; i++) {
        int64_t dims[RANK_MAX];

        column_dims(indices, i, dims);
        kept[i * (rank - 1)] = dims[0];
        memcpy(&kept[i * (rank - 1) + 1], &dims[2], (rank - 2) * sizeof *kept);
    }
    column_set_dims_each(&vectors->outer, indices->count, rank - 1, kept, scratch);
    vectors->count = vectors->outer.value_count;
}

static bool
is_set(const struct encoding *encoding, const uint8_t *cells, int64_t at)
{
    if (is_float_work(encoding))
        return ((const float *)(const void *)cells)[at] != 0;
    return ((const int64_t *)(const void *)cells)[at] != 0;
}

/* Split a vector's number within its element into coordinates of dims[0..rank). */
static void
coordinates(int64_t vector, const int64_t *dims, uint32_t rank, int64_t *ret)
{
    for (uint32_t k = rank; k-- > 0;) {
        ret[k] = vector % dims[k];
        vector /= dims[k];
    }
}

static int64_t
count_set(const struct encoding *encoding, const uint8_t *cells, int64_t count)
{
    int64_t set = 0;

    for (int64_t i = 0; i < count; i++)
        set += is_set(encoding, cells, i);
    return set;
}

/* A sparse column under construction: vectors in order, each with its cells. */
struct sparse_cells {
    struct column *column;
    uint32_t rank;
    int64_t at, vector;
    int64_t *splits, *indices;
};

/* Reserve `total` cells, and write the dense shapes of the elements. */
static struct sparse_cells
begin_sparse(const struct encoding *encoding, const struct vectors *vectors, int64_t total,
             struct scratch *scratch, struct column *column)
{
    uint32_t outer_rank = vectors->outer.level_count, rank = outer_rank + 1;
    struct sparse_cells cells = {
        .column = column,
        .rank = rank,
        .splits = scratch_array(scratch, (size_t)vectors->count + 1, sizeof(int64_t)),
        .indices = scratch_array(scratch, (size_t)total * rank, sizeof(int64_t)),
    };
    int64_t *shape = scratch_array(scratch, (size_t)vectors->outer.count * rank, sizeof *shape);

    cells.splits[0] = 0;
    *column = vectors->outer;
    for (int64_t i = 0; i < vectors->outer.count; i++) {
        column_dims(&vectors->outer, i, &shape[i * rank]);
        shape[i * rank + outer_rank] = encoding->depth;
    }
    column->levels[outer_rank] = (struct level){ .uniform = -1, .splits = cells.splits };
    column->level_count = rank;
    column->value_count = total;
    column->indices = cells.indices;
    column->dense_shape = shape;
    return cells;
}

/* Append the cell at `index` of vector `j` of an element. */
static void
add_cell(struct sparse_cells *cells, int64_t element, int64_t j, int64_t index)
{
    int64_t *to = &cells->indices[cells->at++ * cells->rank];

    coordinates(j, &cells->column->dense_shape[element * cells->rank], cells->rank - 1, to);
    to[cells->rank - 1] = index;
}

static void
end_vector(struct sparse_cells *cells)
{
    cells->splits[++cells->vector] = cells->at;
}

/* Make a sparse column of the cells that are not 0. The dense cells are scratch: depth bounds them,
 * and counting needs random access. */
static void
make_sparse(const struct encoding *encoding, const struct vectors *vectors, const uint8_t *dense,
            struct scratch *scratch, struct column *column, uint8_t **ret_values)
{
    int64_t depth = encoding->depth;
    int64_t total = count_set(encoding, dense, vectors->count * depth);
    size_t bytes = cell_bytes(encoding);
    uint8_t *values = scratch_array(scratch, (size_t)total, bytes);
    struct sparse_cells cells = begin_sparse(encoding, vectors, total, scratch, column);

    for (int64_t i = 0; i < vectors->outer.count; i++) {
        int64_t begin, end;

        column_value_range(&vectors->outer, i, i + 1, &begin, &end);
        for (int64_t j = 0; j < end - begin; j++) {
            for (int64_t k = 0; k < depth; k++) {
                int64_t from = cells.vector * depth + k;

                if (!is_set(encoding, dense, from))
                    continue;
                memcpy(values + (size_t)cells.at * bytes, dense + (size_t)from * bytes, bytes);
                add_cell(&cells, i, j, k);
            }
            end_vector(&cells);
        }
    }
    *ret_values = values;
}

/* Keras stores a cell for every index, even a useless one: an index that is too large keeps its
 * coordinate, and a negative one becomes a 0 at coordinate 0. */
static void
make_sparse_one_hot(const struct encoding *encoding, const struct vectors *vectors,
                    const int64_t *indices, struct scratch *scratch, struct column *column,
                    uint8_t **ret_values)
{
    size_t bytes = cell_bytes(encoding);
    uint8_t *values = scratch_array(scratch, (size_t)vectors->count, bytes);
    struct sparse_cells cells = begin_sparse(encoding, vectors, vectors->count, scratch, column);

    for (int64_t i = 0; i < vectors->outer.count; i++) {
        int64_t begin, end;

        column_value_range(&vectors->outer, i, i + 1, &begin, &end);
        for (int64_t j = 0; j < end - begin; j++) {
            int64_t at = cells.at, index = indices[at];

            if (is_float_work(encoding))
                ((float *)(void *)values)[at] = index >= 0 ? 1.0F : 0.0F;
            else
                ((int64_t *)(void *)values)[at] = index >= 0;
            add_cell(&cells, i, j, index > 0 ? index : 0);
            end_vector(&cells);
        }
    }
    *ret_values = values;
}

/* The cells in the result's dtype, converted if they were counted in another one. */
static const void *
in_dtype(const struct encoding *encoding, struct frame *output, const uint8_t *cells, int64_t count)
{
    void *values;

    if (encoding->dtype == TUNDISH_FLOAT32 || encoding->dtype == TUNDISH_INT64)
        return cells;
    values = scratch_array(output->scratch, (size_t)count, tnd_dtype_bytes(encoding->dtype));
    convert_values(encoding->dtype, values, TUNDISH_FLOAT32, cells, (size_t)count);
    return values;
}

void
encoding_apply(const struct encoding *encoding, const struct column_spec *input_spec,
               const struct column *indices, const float *weights, struct frame *output,
               uint32_t index)
{
    struct work work = {
        .encoding = encoding,
        .indices = indices->values,
        .weights = weights,
        .output = output,
        .from_sparse = input_spec->kind == TUNDISH_SPARSE,
    };
    struct column *column = &output->columns[index];
    struct vectors vectors = { .count = 0 };
    size_t bytes;
    uint8_t *cells;

    if (encoding->mode == ENCODE_ONE_HOT)
        one_hot_vectors(input_spec, indices, &vectors);
    else
        counted_vectors(indices, output->scratch, &vectors);
    vectors.outer.value_count = vectors.count;
    if (encoding->sparse && encoding->mode == ENCODE_ONE_HOT) {
        make_sparse_one_hot(encoding, &vectors, work.indices, output->scratch, column, &cells);
        column->values = in_dtype(encoding, output, cells, column->value_count);
        return;
    }
    bytes = (size_t)vectors.count * (size_t)encoding->depth * cell_bytes(encoding);
    cells = encoding->sparse ? scratch_alloc(output->scratch, bytes)
                             : frame_values(output, index, bytes);
    memset(cells, 0, bytes);
    if (encoding->mode == ENCODE_ONE_HOT)
        encode_each_index(&work, indices, cells);
    else if (indices->level_count < 3)
        encode_lists(&work, indices, cells);
    else
        encode_dimension_1(&work, indices, cells);
    if (encoding->sparse)
        make_sparse(encoding, &vectors, cells, output->scratch, column, &cells);
    else {
        *column = vectors.outer;
        column->indices = column->dense_shape = NULL;
        column->levels[column->level_count++] = (struct level){ .uniform = encoding->depth };
        column->value_count = vectors.count * encoding->depth;
    }
    column->values = in_dtype(encoding, output, cells, column->value_count);
}

tundish_status
encoding_read(struct encoding *encoding, const struct stage_config *config, bool is_lenient)
{
    const struct spec_value *dtype = spec_get(config->stage, "dtype");
    bool is_int;

    encoding_mode_of(spec_text(config->stage, "output_mode"), &encoding->mode);
    is_int = encoding->mode == ENCODE_INT;
    encoding->sparse = spec_bool(config->stage, "sparse");
    encoding->dtype = is_int ? TUNDISH_INT64 : TUNDISH_FLOAT32;
    if (is_int && is_lenient)
        encoding->sparse = false;
    if (encoding->sparse && is_int)
        return stage_complain(config, "sparse is not for output_mode int");
    if (dtype == NULL || dtype->kind == SPEC_NULL)
        return TUNDISH_OK;
    encoding->dtype = spec_dtype(config->stage, "dtype");
    if (encoding->dtype == TUNDISH_STRING)
        return spec_complain(config->errors, dtype->line, dtype->column,
                             "the dtype must be numeric, not string");
    if (is_int && !is_lenient && encoding->dtype != TUNDISH_INT64 &&
        encoding->dtype != TUNDISH_INT32)
        return spec_complain(config->errors, dtype->line, dtype->column,
                             "with output_mode int the dtype must be int32 or int64, not %s",
                             tnd_dtype_name(encoding->dtype));
    return TUNDISH_OK;
}

static void
store_converted(tundish_dtype dtype, const struct column *bins, struct frame *output,
                uint32_t index)
{
    size_t count = (size_t)bins->value_count;
    void *values = frame_values(output, index, count * tnd_dtype_bytes(dtype));

    convert_values(dtype, values, TUNDISH_INT64, bins->values, count);
    column_set_like(&output->columns[index], bins, values);
}

void
encoding_store(const struct encoding *encoding, const struct column_spec *input_spec,
               const struct column *bins, struct frame *output, uint32_t index)
{
    if (encoding->mode != ENCODE_INT)
        encoding_apply(encoding, input_spec, bins, NULL, output, index);
    else if (encoding->dtype == TUNDISH_INT64)
        output->columns[index] = *bins;
    else
        store_converted(encoding->dtype, bins, output, index);
}
