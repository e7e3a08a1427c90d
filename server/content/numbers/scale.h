/* scale.h - tf.Transform's scalings: one mapper for several stages, plain and per key. */
#ifndef CONTENT_SCALE_H
#define CONTENT_SCALE_H

#include "content/content.h"

enum scale_kind { SCALE_Z_SCORE, SCALE_MIN_MAX, SCALE_0_1, SCALE_GAUSSIAN };

struct scaled;

struct scale {
    enum scale_kind kind;
    bool per_key;
    uint32_t key; /* column of the input */
    float low, high;
    struct content_targets targets;
    struct scaled *columns; /* of each target */
};

tundish_status scale_open(struct scale *scale, enum scale_kind kind, bool per_key,
                          const struct stage_config *config, struct schema *ret_schema,
                          bool *ret_batch_wide);
tundish_status scale_apply(const void *state, const struct frame *input, struct frame *output);
void scale_close(void *state);

#endif
