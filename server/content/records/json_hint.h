/* json_hint.h - what a record has instead of a member that is missing. */
#ifndef CONTENT_RECORDS_JSON_HINT_H
#define CONTENT_RECORDS_JSON_HINT_H

#include <stddef.h>

#include "core/bytes.h"

/* "; the record has 'label'", the nearest name among the object's members, or "". */
void json_hint(struct byte_view record, const char *name, char *ret_text, size_t room);

#endif
