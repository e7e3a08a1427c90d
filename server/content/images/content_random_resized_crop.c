/* content_random_resized_crop.c - draw a part as tf.image.stateless_sample_distorted_bounding_box
 * does with the seed (seed, ordinal), then resize it (tf.image.resize). No object needs to be
 * covered (min_object_covered 0): area_range alone limits how small a part may be. */
#include <math.h>
#include <string.h>

#include "content/draws.h"
#include "content/images/resized.h"

struct random_resized_crop {
    struct resized resized;
    int64_t seed, max_attempts;
    bool training;
    float area[2], ratio[2];
};

/* TensorFlow's SimplePhilox: 0 <= n < limit. Words that would make some numbers more likely are
 * rejected. */
static int64_t
draw_below(struct tnd_random *random, uint32_t limit)
{
    uint32_t least = UINT32_MAX % limit + 1, word;

    if ((limit & (limit - 1)) == 0)
        return tnd_random_next(random) & (limit - 1);
    do
        word = tnd_random_next(random);
    while (word < least);
    return word % limit;
}

/* The largest height whose width fits, with the op's correction of 1e-7 against rounding up. */
static int64_t
highest(float most_area, float ratio, int64_t height, int64_t width)
{
    int64_t most = lrintf(sqrtf(most_area / ratio));

    if (lrintf((float)most * ratio) > width) {
        most = (int64_t)(((float)width + 0.5F - 0.0000001F) / ratio);
        if (lrintf((float)most * ratio) > width)
            most--;
    }
    return most < height ? most : height;
}

/* Make one attempt in the op's order of draws, in float32. False: the drawn part does not fit. */
static bool
draw_part(const struct random_resized_crop *layer, struct tnd_random *random, int64_t height,
          int64_t width, struct image_part *part)
{
    float u = tnd_uniform_float(tnd_random_next(random));
    float ratio = u * (layer->ratio[1] - layer->ratio[0]) + layer->ratio[0];
    float least_area = layer->area[0] * (float)width * (float)height;
    float most_area = layer->area[1] * (float)width * (float)height;
    int64_t least = lrintf(sqrtf(least_area / ratio));
    int64_t most = highest(most_area, ratio, height, width), tall, wide;

    tall = least < most ? least : most;
    if (tall < 0)
        return false;
    if (tall < most)
        tall += draw_below(random, (uint32_t)(most - tall + 1));
    wide = lrintf((float)tall * ratio);
    if ((float)(wide * tall) < least_area)
        wide = lrintf((float)++tall * ratio);
    if ((float)(wide * tall) > most_area)
        wide = lrintf((float)--tall * ratio);
    if ((float)(wide * tall) < least_area || (float)(wide * tall) > most_area || wide > width ||
        tall > height || wide <= 0 || tall <= 0)
        return false;
    part->top = tall < height ? draw_below(random, (uint32_t)(height - tall)) : 0;
    part->left = wide < width ? draw_below(random, (uint32_t)(width - wide)) : 0;
    part->height = tall;
    part->width = wide;
    return true;
}

/* Draw a part. Image k of an element uses the generator's words from 2^34 k on, so that images
 * never share words. */
static void
choose_part(const struct resized *resized, const struct images *images, int64_t element,
            int64_t index, struct frame *output, struct image_part *part)
{
    const struct random_resized_crop *layer = (const struct random_resized_crop *)resized;
    struct tnd_philox philox;
    struct tnd_random random;

    part->to_height = resized->height;
    part->to_width = resized->width;
    if (images->height < 1 || images->width < 1) {
        frame_reject(output, element, "random_resized_crop: an image of %lld by %lld pixels",
                     (long long)images->width, (long long)images->height);
        return;
    }
    if (!layer->training)
        return;
    philox = draws_at(layer->seed, output->ordinals[element]);
    tnd_philox_skip(&philox, (uint64_t)index << 32);
    random = tnd_random_of(philox);
    for (int64_t i = 0; i < layer->max_attempts; i++)
        if (draw_part(layer, &random, images->height, images->width, part))
            return;
}

static tundish_status
read_range(const struct stage_config *config, const char *parameter, double most, float ret[2])
{
    const struct spec_value *list = spec_get(config->stage, parameter);
    double numbers[2] = { 0, 0 };

    for (uint32_t i = 0; list->kind == SPEC_LIST && list->count == 2 && i < 2; i++)
        numbers[i] = list->items[i].kind == SPEC_INTEGER ? (double)list->items[i].integer
                                                         : list->items[i].number;
    if (!(numbers[0] > 0 && numbers[0] <= numbers[1] && numbers[1] <= most))
        return spec_complain(config->errors, list->line, list->column,
                             "%s must be two numbers greater than 0 in ascending order%s",
                             parameter, most < 2 ? ", up to 1" : "");
    ret[0] = (float)numbers[0];
    ret[1] = (float)numbers[1];
    return TUNDISH_OK;
}

static tundish_status
random_resized_crop_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                         bool *ret_batch_wide)
{
    struct random_resized_crop *layer = state;
    struct resized *resized = &layer->resized;
    tundish_status status;

    layer->training = spec_bool(config->stage, "training");
    layer->seed = draws_seed(config);
    layer->max_attempts = spec_int(config->stage, "max_attempts");
    *ret_batch_wide = config->depth > 0 && layer->training;
    status = read_range(config, "area_range", 1, layer->area);
    if (status == TUNDISH_OK)
        status = read_range(config, "aspect_ratio_range", 1e6, layer->ratio);
    if (status != TUNDISH_OK)
        return status;
    resized->height = spec_int(config->stage, "height");
    resized->width = spec_int(config->stage, "width");
    resized->has_one_size = true;
    resized->choose_part = choose_part;
    resample_method_of(spec_text(config->stage, "method"), &resized->method);
    resized->antialias = spec_bool(config->stage, "antialias");
    resized->keeps_dtype = resized->method == RESAMPLE_NEAREST;
    return resized_open(resized, config, ret_schema, ret_batch_wide);
}

const struct content_ops content_random_resized_crop = {
    .name = "random_resized_crop",
    .takes_missing = true,
    .state_bytes = sizeof(struct random_resized_crop),
    .draws = true,
    .open = random_resized_crop_open,
    .apply = resized_apply_state,
    .close = resized_close_state,
};
