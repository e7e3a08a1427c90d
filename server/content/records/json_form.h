/* json_form.h - the form of the lists that a feature's values stand in, held against its shape.
 *
 * Lists around a value are levels, outermost first, lists of objects on the way to a member among
 * them. A feature's values stand in lists of its shape (after a first dimension of any length, if
 * it is a list itself), or all in one list; a value alone is a list of one.
 */
#ifndef CONTENT_RECORDS_JSON_FORM_H
#define CONTENT_RECORDS_JSON_FORM_H

#include "content/records/example.h"

enum { JSON_LEVELS_MAX = 64 };

/* The lists that are open. */
struct json_levels {
    uint32_t count;
    bool has_objects[JSON_LEVELS_MAX]; /* among the items */
    bool has_wanted[JSON_LEVELS_MAX];  /* members of these objects, or of objects below */
    int64_t index[JSON_LEVELS_MAX];    /* of the item that is being read */
};

/* A record's part of a feature so far. */
struct json_met {
    int64_t count;   /* of values; -1: not met */
    int64_t before;  /* of them, how many when its last object began */
    uint64_t object; /* which has the member */
    uint32_t above;  /* levels around this object */
    uint32_t levels; /* around each value */
};

/* Whether the next value stands where it belongs. If not, NULL, else the fault. Counts nothing. */
const char *json_form_takes(const struct example_feature *feature, struct json_met *met,
                            const struct json_levels *levels);

/* The same of the end of the innermost list, which has `length` items. */
const char *json_form_ends(const struct example_feature *feature, const struct json_met *met,
                           const struct json_levels *levels, int64_t length);

#endif
