/* text_case.h - small and capital letters: the two stages differ in one word. */
#ifndef CONTENT_TEXT_CASE_H
#define CONTENT_TEXT_CASE_H

#include "content/text/texts.h"

struct text_case {
    bool upper, utf8;
    struct UCaseMap *map; /* utf8: ICU's, for the root locale */
    struct content_targets targets;
};

tundish_status text_case_open(struct text_case *stage, bool upper,
                              const struct stage_config *config, struct schema *ret_schema,
                              bool *ret_batch_wide);
tundish_status text_case_apply(const void *state, const struct frame *input, struct frame *output);
void text_case_close(void *state);

#endif
