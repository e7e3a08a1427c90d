/* op_object.h - a transform of one's own (tundish_op.h). */
#ifndef CONTENT_CUSTOM_OP_OBJECT_H
#define CONTENT_CUSTOM_OP_OBJECT_H

#include "content/content.h"
#include "tundish/tundish_op.h"

enum { OP_COLUMNS_MAX = 64 }; /* that go in, and that go out */

/* Load the stage's `library` and find `name` in it. Its table's statements about itself are
 * checked. */
tundish_status op_object_find(const struct stage_config *config, const tundish_op **ret_op);

#endif
