/* image_layer.c - apply a random layer to each image, with its own numbers. */
#include "content/images/image_layer.h"

#include <stdlib.h>
#include <string.h>

#include "column/convert.h"
#include "content/draws.h"
#include "core/memory.h"

tundish_status
image_layer_open(struct image_layer *layer, const struct stage_config *config,
                 struct schema *ret_schema, bool *ret_batch_wide)
{
    tundish_status status = content_targets_open(config, ret_schema, &layer->targets);

    layer->training = spec_bool(config->stage, "training");
    layer->seed = draws_seed(config);
    layer->channels_first = images_channels_first(config);
    /* Keras draws one vector for a batch, so the position of a row in the batch matters. */
    *ret_batch_wide = config->depth > 0 && layer->training;
    for (uint32_t i = 0; i < layer->targets.count && status == TUNDISH_OK; i++) {
        struct column_spec *column = &ret_schema->columns[layer->targets.list[i].output];

        status = images_check(config, column);
        column->dtype = TUNDISH_FLOAT32;
        column->has_range = false;
    }
    return status;
}

void
image_layer_open_warp(struct image_layer *layer, const struct stage_config *config)
{
    const char *fill = spec_text(config->stage, "fill_mode");

    layer->warp.fill = strcmp(fill, "wrap") == 0       ? WARP_WRAP
                       : strcmp(fill, "constant") == 0 ? WARP_CONSTANT
                       : strcmp(fill, "nearest") == 0  ? WARP_NEAREST
                                                       : WARP_REFLECT;
    layer->warp.fill_value = (float)spec_number(config->stage, "fill_value");
    layer->warp.nearest = strcmp(spec_text(config->stage, "interpolation"), "nearest") == 0;
}

static double
number_of(const struct spec_value *value)
{
    return value->kind == SPEC_INTEGER ? (double)value->integer : value->number;
}

tundish_status
image_layer_open_range(struct image_layer *layer, const struct stage_config *config, bool sorted)
{
    const struct spec_value *range = spec_get(config->stage, "value_range");

    if (range->kind != SPEC_LIST || range->count != 2)
        return spec_complain(config->errors, range->line, range->column,
                             "value_range must be [lowest, highest]");
    layer->range[0] = number_of(&range->items[0]);
    layer->range[1] = number_of(&range->items[1]);
    if (sorted && layer->range[0] > layer->range[1]) {
        layer->range[0] = number_of(&range->items[1]);
        layer->range[1] = number_of(&range->items[0]);
    }
    return TUNDISH_OK;
}

tundish_status
image_layer_factor(const struct stage_config *config, const char *parameter, double least,
                   double *ret_low, double *ret_high)
{
    /* A number f means [-f, f], cut at the least that the layer allows. */
    const struct spec_value *factor = spec_get(config->stage, parameter);
    double a, b;

    if (factor->kind != SPEC_LIST) {
        b = number_of(factor) < 0 ? -number_of(factor) : number_of(factor);
        a = -b > least ? -b : least;
    } else if (factor->count == 2) {
        a = number_of(&factor->items[0]);
        b = number_of(&factor->items[1]);
    } else {
        return spec_complain(config->errors, factor->line, factor->column,
                             "%s must be a number or [lower, upper], not a list of %u", parameter,
                             factor->count);
    }
    *ret_low = a < b ? a : b;
    *ret_high = a < b ? b : a;
    return TUNDISH_OK;
}

/* The images of one element, and memory to move channels last if they come first. */
struct pass {
    const struct image_layer *layer;
    struct scratch *scratch;
    float *turned;
    size_t turned_values;
};

static void
make_image(struct pass *pass, const struct images *images, const float *u, const float *from,
           float *to)
{
    const struct image_layer *layer = pass->layer;
    size_t values = (size_t)(images->height * images->width * images->channels);

    if (!layer->channels_first) {
        layer->make(layer, images, u, from, to);
        return;
    }
    if (pass->turned == NULL || pass->turned_values < values) {
        pass->turned = scratch_array(pass->scratch, values, 2 * sizeof *pass->turned);
        pass->turned_values = values;
    }
    images_to_last(from, images->height, images->width, images->channels, pass->turned);
    layer->make(layer, images, u, pass->turned, pass->turned + values);
    images_to_first(pass->turned + values, images->height, images->width, images->channels, to);
}

/* Draw the numbers of all images of an element first, as Keras draws them, and then make each
 * image. */
static void
make_element(struct pass *pass, const struct images *images, uint64_t ordinal, const float *from,
             float *to)
{
    const struct image_layer *layer = pass->layer;
    size_t count = (size_t)images->count, values;
    float *u = scratch_array(pass->scratch, count * 2 + 8, sizeof *u);

    values = (size_t)(images->height * images->width * images->channels);
    if (values == 0)
        return;
    for (uint32_t k = 0; k < layer->draws; k++)
        draws_uniform(layer->seed, ordinal * layer->draws + k, count, u + k * count);
    for (size_t i = 0; i < count; i++) {
        const float own[2] = { u[i], layer->draws > 1 ? u[count + i] : 0 };

        make_image(pass, images, own, from + i * values, to + i * values);
    }
}

tundish_status
image_layer_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct image_layer *layer = state;

    for (uint32_t i = 0; i < layer->targets.count; i++) {
        const struct content_target *target = &layer->targets.list[i];
        const struct column *from = &input->columns[target->input];
        tundish_dtype dtype = input->schema->columns[target->input].dtype;
        const float *values = convert_column(TUNDISH_FLOAT32, dtype, from, output->scratch);
        size_t bytes = (size_t)from->value_count * sizeof(float);
        float *to = frame_values(output, target->output, bytes);
        struct pass pass = { .layer = layer, .scratch = output->scratch };

        if (!layer->training && bytes > 0)
            memcpy(to, values, bytes);
        for (int64_t e = 0; layer->training && e < from->count; e++) {
            struct images images = images_at(from, e, layer->channels_first);

            make_element(&pass, &images, output->ordinals[e], values + images.offset,
                         to + images.offset);
        }
        column_set_like(&output->columns[target->output], from, to);
    }
    return TUNDISH_OK;
}

uint32_t
image_layer_drawn(const void *state, uint64_t ordinal, int64_t row, int64_t rows,
                  struct content_drawn *ret_drawn)
{
    const struct image_layer *layer = state;
    float *numbers = tnd_alloc((size_t)rows * sizeof *numbers);
    float own[2] = { 0, 0 };

    for (uint32_t k = 0; k < layer->draws; k++) {
        draws_uniform(layer->seed, ordinal * layer->draws + k, (size_t)rows, numbers);
        own[k] = numbers[row];
    }
    free(numbers);
    return layer->tell(layer, own, ret_drawn);
}

void
image_layer_close(void *state)
{
    struct image_layer *layer = state;

    content_targets_close(&layer->targets);
}
