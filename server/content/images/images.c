/* images.c - shapes of elements that are images. */
#include "content/images/images.h"

#include <string.h>

#include "column/dims.h"

tundish_status
images_check(const struct stage_config *config, const struct column_spec *column)
{
    const char *stage = config->stage->info->name;

    if (column->dtype == TUNDISH_STRING)
        return stage_complain(config,
                              "%s: '%s' has dtype string; expected images (use decode_jpeg)", stage,
                              column->name);
    if (column->kind != TUNDISH_DENSE)
        return stage_complain(config, "%s: '%s' is %s, and images are dense", stage, column->name,
                              column->kind == TUNDISH_SPARSE ? "sparse" : "ragged");
    if (column->rank == RANK_UNKNOWN)
        return stage_complain(config,
                              "%s: the rank of '%s' is not known; decode_image with "
                              "expand_animations: false gives 3 dimensions",
                              stage, column->name);
    if (column->rank != 3 && column->rank != 4)
        return stage_complain(config,
                              "%s: '%s' has rank %d, and an image has 3 dimensions (several: 4)",
                              stage, column->name, column->rank);
    return TUNDISH_OK;
}

bool
images_channels_first(const struct stage_config *config)
{
    const struct spec_value *format = spec_get(config->stage, "data_format");

    return format != NULL && format->kind == SPEC_TEXT &&
           strcmp(format->text, "channels_first") == 0;
}

struct images
images_at(const struct column *column, int64_t element, bool channels_first)
{
    uint32_t rank = column->level_count, axis = images_height_axis(rank, channels_first);
    int64_t dims[RANK_MAX], end;
    struct images images;

    column_dims(column, element, dims);
    images.count = rank == 4 ? dims[0] : 1;
    images.height = dims[axis];
    images.width = dims[axis + 1];
    images.channels = dims[channels_first ? axis - 1 : axis + 2];
    column_value_range(column, element, element + 1, &images.offset, &end);
    return images;
}

void
images_set_size(struct column *column, const struct column *from, const int64_t *heights,
                const int64_t *widths, bool channels_first, struct scratch *scratch)
{
    uint32_t rank = from->level_count, axis = images_height_axis(rank, channels_first);
    int64_t *dims = scratch_array(scratch, (size_t)from->count * rank, sizeof *dims);

    for (int64_t i = 0; i < from->count; i++) {
        int64_t own[RANK_MAX];

        column_dims(from, i, own);
        own[axis] = heights[i];
        own[axis + 1] = widths[i];
        memcpy(dims + i * rank, own, rank * sizeof *dims);
    }
    column_set_dims_each(column, from->count, rank, dims, scratch);
}

void
images_to_last(const float *from, int64_t height, int64_t width, int64_t channels, float *to)
{
    int64_t pixels = height * width;

    for (int64_t i = 0; i < pixels; i++)
        for (int64_t c = 0; c < channels; c++)
            *to++ = from[c * pixels + i];
}

void
images_to_first(const float *from, int64_t height, int64_t width, int64_t channels, float *to)
{
    int64_t pixels = height * width;

    for (int64_t c = 0; c < channels; c++)
        for (int64_t i = 0; i < pixels; i++)
            *to++ = from[i * channels + c];
}
