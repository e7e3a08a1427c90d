/* images.h - the images in a column: [height, width, channels], or several of them in an element.
 */
#ifndef CONTENT_IMAGES_IMAGES_H
#define CONTENT_IMAGES_IMAGES_H

#include "content/content.h"

/* The images of one element: `count` images of one size. */
struct images {
    int64_t count, height, width, channels;
    int64_t offset; /* of its first value in the column */
};

/* Refuse columns that hold no images: text, sparse and ragged columns, other ranks than 3 and 4. */
tundish_status images_check(const struct stage_config *config, const struct column_spec *column);

/* Is `data_format` channels_first? */
bool images_channels_first(const struct stage_config *config);

/* The dimensions of an element, by name. */
struct images images_at(const struct column *column, int64_t element, bool channels_first);

/* Where height and width stand among a column's dimensions. */
static inline uint32_t
images_height_axis(uint32_t rank, bool channels_first)
{
    return rank - (channels_first ? 2 : 3);
}

/* Give `column` the structure of `from` with other heights and widths, one for each element. */
void images_set_size(struct column *column, const struct column *from, const int64_t *heights,
                     const int64_t *widths, bool channels_first, struct scratch *scratch);

/* [channels, height, width] to [height, width, channels]. */
void images_to_last(const float *from, int64_t height, int64_t width, int64_t channels, float *to);
void images_to_first(const float *from, int64_t height, int64_t width, int64_t channels, float *to);

#endif
