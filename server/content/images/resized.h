/* resized.h - the columns of stages that bring images to another size: resize, resizing,
 * center_crop and random_resized_crop differ in which part of an image they take.
 */
#ifndef CONTENT_IMAGES_RESIZED_H
#define CONTENT_IMAGES_RESIZED_H

#include "content/images/images.h"
#include "content/images/resample.h"

/* A part of an image, framed by pad_height and pad_width of `fill` on both sides, brought to a
 * size. A part whose size is that one is only copied. */
struct image_part {
    int64_t top, left, height, width;
    int64_t pad_height, pad_width;
    int64_t to_height, to_width;
};

/* The value, or the bound that it passes; `least` where they contradict each other. */
static inline int64_t
image_part_within(int64_t value, int64_t least, int64_t most)
{
    value = value < most ? value : most;
    return value > least ? value : least;
}

struct resized;

/* The part of image `index` of an element, which has the size that `images` says. An element is
 * rejected through `output`; then the part must be one that exists. */
typedef void resized_choose(const struct resized *resized, const struct images *images,
                            int64_t element, int64_t index, struct frame *output,
                            struct image_part *ret_part);

struct resized {
    struct content_targets targets;
    resized_choose *choose_part;
    enum resample_method method;
    bool antialias;
    bool keeps_dtype;  /* RESAMPLE_NEAREST of tf.image.resize; else float32 */
    bool takes_bools;  /* as Keras' layers, which make float32 of everything */
    bool copies;       /* never resamples: part and target are equally large */
    bool has_one_size; /* no part is padded, and height and width are those of every result */
    bool takes_all;    /* the whole image counts, however it is fitted into height and width */
    bool channels_first;
    float fill;
    bool keeps_proportions; /* no result is larger than height and width, but may be smaller */
    int64_t height, width;  /* of the result; meant for choose_part */
};

/* Targets, dtypes and shapes: height and width are those of the result, or not known where it keeps
 * proportions. Sets *ret_batch_wide where the rows of a batch are the lines of an image. */
tundish_status resized_open(struct resized *resized, const struct stage_config *config,
                            struct schema *ret_schema, bool *ret_batch_wide);

/* For stages whose state is a struct resized or begins with one. */
tundish_status resized_apply_state(const void *state, const struct frame *input,
                                   struct frame *output);
void resized_close_state(void *state);

#endif
