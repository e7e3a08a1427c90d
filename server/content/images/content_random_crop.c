/* content_random_crop.c - keras.layers.RandomCrop: the same position for a whole batch. */
#include "content/draws.h"
#include "content/images/resized.h"

struct random_crop {
    struct resized resized;
    int64_t seed;
    bool training;
};

static float
drawn_share(const struct random_crop *layer, uint64_t draw)
{
    float u;

    draws_uniform(layer->seed, draw, 1, &u);
    return u;
}

/* A start from 0 to slack, drawn in float32 as Keras draws it and truncated. */
static int64_t
drawn_start(const struct random_crop *layer, uint64_t draw, int64_t slack)
{
    return (int64_t)draws_between(drawn_share(layer, draw), 0, (double)(slack + 1));
}

/* The position as shares of the room that there is: columns may differ in size. */
static uint32_t
random_crop_drawn(const void *state, uint64_t ordinal, int64_t row, int64_t rows,
                  struct content_drawn *ret_drawn)
{
    (void)row;
    (void)rows;
    ret_drawn[0] = (struct content_drawn){ "top_share", (double)drawn_share(state, ordinal * 2) };
    ret_drawn[1] =
        (struct content_drawn){ "left_share", (double)drawn_share(state, ordinal * 2 + 1) };
    return 2;
}

/* For an image that is too small: the middle in the target's proportions. Keras still cuts to the
 * target's size from there, as far as the image reaches. */
static void
centre(const struct resized *resized, const struct images *images, struct image_part *part)
{
    int64_t height = (int64_t)((double)(images->width * resized->height) / (double)resized->width);
    int64_t width = (int64_t)((double)(images->height * resized->width) / (double)resized->height);

    part->top = (images->height - image_part_within(height, 1, images->height)) / 2;
    part->left = (images->width - image_part_within(width, 1, images->width)) / 2;
}

static void
choose_part(const struct resized *resized, const struct images *images, int64_t element,
            int64_t index, struct frame *output, struct image_part *part)
{
    const struct random_crop *layer = (const struct random_crop *)resized;

    (void)index;
    part->to_height = images->height;
    part->to_width = images->width;
    if (!layer->training)
        return;
    if (images->height > resized->height && images->width > resized->width) {
        uint64_t draw = output->ordinals[element] * 2;

        part->top = drawn_start(layer, draw, images->height - resized->height);
        part->left = drawn_start(layer, draw + 1, images->width - resized->width);
    } else {
        centre(resized, images, part);
    }
    part->height = image_part_within(resized->height, 0, images->height - part->top);
    part->width = image_part_within(resized->width, 0, images->width - part->left);
    part->to_height = resized->height;
    part->to_width = resized->width;
}

static tundish_status
random_crop_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                 bool *ret_batch_wide)
{
    struct random_crop *layer = state;
    struct resized *resized = &layer->resized;
    tundish_status status;

    layer->training = spec_bool(config->stage, "training");
    layer->seed = draws_seed(config);
    *ret_batch_wide = false; /* all images of a batch are cut at one position */
    resized->height = spec_int(config->stage, "height");
    resized->width = spec_int(config->stage, "width");
    resized->channels_first = images_channels_first(config);
    resized->choose_part = choose_part;
    resized->method = RESAMPLE_BILINEAR;
    resized->copies = !layer->training;
    resized->takes_bools = true;
    status = resized_open(resized, config, ret_schema, ret_batch_wide);
    for (uint32_t i = 0; i < resized->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &resized->targets.list[i];
        const struct column_spec *from = &config->input->columns[target->input];
        struct column_spec *column = &ret_schema->columns[target->output];
        uint32_t axis = images_height_axis((uint32_t)column->rank, resized->channels_first);

        if (!layer->training) {
            column->shape[axis] = from->shape[axis];
            column->shape[axis + 1] = from->shape[axis + 1];
        } else if (from->shape[axis] < 0 || from->shape[axis + 1] < 0) {
            return stage_complain(config,
                                  "random_crop: the height and width of '%s' are unknown; use "
                                  "resize first, or random_resized_crop",
                                  column->name);
        }
    }
    return status;
}

const struct content_ops content_random_crop = {
    .name = "random_crop",
    .takes_missing = true,
    .state_bytes = sizeof(struct random_crop),
    .draws = true,
    .open = random_crop_open,
    .apply = resized_apply_state,
    .drawn = random_crop_drawn,
    .close = resized_close_state,
};
