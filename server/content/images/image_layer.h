/* image_layer.h - the columns of Keras' random image layers, which keep an image's size: their
 * results are float32, and each image has its own random numbers. */
#ifndef CONTENT_IMAGES_IMAGE_LAYER_H
#define CONTENT_IMAGES_IMAGE_LAYER_H

#include "content/images/images.h"
#include "content/images/warp.h"

struct image_layer;

/* Make one image, [height, width, channels]. u: the layer's draws for it, 0 <= u < 1. */
typedef void image_layer_make(const struct image_layer *layer, const struct images *images,
                              const float *u, const float *from, float *to);

/* The meaning of these draws, for people (content_ops.drawn). */
typedef uint32_t image_layer_tell(const struct image_layer *layer, const float *u,
                                  struct content_drawn *ret_drawn);

struct image_layer {
    struct content_targets targets;
    image_layer_make *make;
    image_layer_tell *tell;
    uint32_t draws; /* for each image; at most 2 */
    int64_t seed;
    bool training;
    bool channels_first;

    /* Parameters of the layers, for `make`. */
    double low[2], high[2]; /* between which each draw lies */
    double range[2];        /* value_range */
    bool horizontal, vertical;
    bool same_zoom; /* the width's is the height's */
    struct warp warp;
};

/* Read seed, training, data_format and columns. The caller sets the rest, before or after. */
tundish_status image_layer_open(struct image_layer *layer, const struct stage_config *config,
                                struct schema *ret_schema, bool *ret_batch_wide);

/* fill_mode, interpolation, fill_value. */
void image_layer_open_warp(struct image_layer *layer, const struct stage_config *config);

/* value_range: two numbers, in order if `sorted`. */
tundish_status image_layer_open_range(struct image_layer *layer, const struct stage_config *config,
                                      bool sorted);

/* A factor: f is [-|f|, |f|], or [least, |f|] if least is greater; a list of two is sorted. */
tundish_status image_layer_factor(const struct stage_config *config, const char *parameter,
                                  double least, double *ret_low, double *ret_high);

/* For stages whose state is a struct image_layer. */
tundish_status image_layer_apply(const void *state, const struct frame *input,
                                 struct frame *output);
uint32_t image_layer_drawn(const void *state, uint64_t ordinal, int64_t row, int64_t rows,
                           struct content_drawn *ret_drawn);
void image_layer_close(void *state);

#endif
