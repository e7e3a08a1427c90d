/* decode_text.h - stages that make of each string another one: decode_base64, decode_compressed. */
#ifndef CONTENT_RECORDS_DECODE_TEXT_H
#define CONTENT_RECORDS_DECODE_TEXT_H

#include "content/content.h"

/* Expand the targets, which must be strings and stay such. */
tundish_status decode_text_open(const struct stage_config *config, struct schema *ret_schema,
                                struct content_targets *ret_targets);

/* Call `decode` for each value of each target. It stores the result for `from` in *ret_to, in
 * scratch, and returns NULL; otherwise it returns the fault, and the element is rejected. */
void decode_text_apply(const struct content_targets *targets, const struct frame *input,
                       struct frame *output,
                       const char *(*decode)(void *context, struct byte_view from,
                                             struct scratch *scratch, struct byte_view *ret_to),
                       void *context);

#endif
