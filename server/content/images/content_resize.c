/* content_resize.c - tf.image.resize. */
#include <math.h>
#include <string.h>

#include "content/images/resized.h"

/* The largest size within the target that keeps the proportions. tf.image.resize computes it in
 * float32 and rounds half to even. */
static void
keep_proportions(const struct resized *resized, int64_t height, int64_t width, int64_t *ret_height,
                 int64_t *ret_width)
{
    float by_height = (float)resized->height / (float)height;
    float by_width = (float)resized->width / (float)width;
    float scale = by_height < by_width ? by_height : by_width;

    *ret_height = (int64_t)rintf(scale * (float)height);
    *ret_width = (int64_t)rintf(scale * (float)width);
}

static void
choose_part(const struct resized *resized, const struct images *images, int64_t element,
            int64_t index, struct frame *output, struct image_part *part)
{
    (void)index;
    part->to_height = resized->height;
    part->to_width = resized->width;
    if (images->height < 1 || images->width < 1) {
        frame_reject(output, element, "resize: an image of %lld by %lld pixels",
                     (long long)images->width, (long long)images->height);
        return;
    }
    if (resized->keeps_proportions)
        keep_proportions(resized, images->height, images->width, &part->to_height, &part->to_width);
    if (part->to_height < 1 || part->to_width < 1) {
        frame_reject(output, element,
                     "resize: an image of %lld by %lld pixels would keep its proportions at %lld "
                     "by %lld",
                     (long long)images->width, (long long)images->height, (long long)part->to_width,
                     (long long)part->to_height);
        part->to_height = part->to_width = 1;
    }
}

static tundish_status
resize_open(void *state, const struct stage_config *config, struct schema *ret_schema,
            bool *ret_batch_wide)
{
    struct resized *resized = state;
    const struct spec_value *size = spec_get(config->stage, "size");
    tundish_status status;

    *ret_batch_wide = false;
    if (size->count != 2)
        return spec_complain(config->errors, size->line, size->column,
                             "size of resize must be [height, width]");
    resized->height = size->items[0].integer;
    resized->width = size->items[1].integer;
    if (resized->height > INT32_MAX || resized->width > INT32_MAX)
        return spec_complain(config->errors, size->line, size->column, "size is too large");
    resized->keeps_proportions = spec_bool(config->stage, "preserve_aspect_ratio");
    resized->choose_part = choose_part;
    resized->takes_all = true;
    resample_method_of(spec_text(config->stage, "method"), &resized->method);
    resized->antialias = spec_bool(config->stage, "antialias");
    resized->keeps_dtype = resized->method == RESAMPLE_NEAREST;
    resized->has_one_size = !resized->keeps_proportions;
    status = resized_open(resized, config, ret_schema, ret_batch_wide);
    for (uint32_t i = 0;
         resized->keeps_proportions && i < resized->targets.count && status == TUNDISH_OK; i++) {
        const struct content_target *target = &resized->targets.list[i];
        const int64_t *from = config->input->columns[target->input].shape;
        struct column_spec *column = &ret_schema->columns[target->output];
        int axis = column->rank - 3;

        if (from[axis] > 0 && from[axis + 1] > 0)
            keep_proportions(resized, from[axis], from[axis + 1], &column->shape[axis],
                             &column->shape[axis + 1]);
    }
    return status;
}

const struct content_ops content_resize = {
    .name = "resize",
    .takes_missing = true,
    .state_bytes = sizeof(struct resized),
    .open = resize_open,
    .apply = resized_apply_state,
    .close = resized_close_state,
};
