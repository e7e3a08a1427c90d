/* stages.h - what the table of stages says about each of them. */
#ifndef SPEC_STAGES_H
#define SPEC_STAGES_H

#include <stdbool.h>
#include <stdint.h>

enum stage_kind {
    STAGE_SOURCE, /* stands first; yields elements from files, memory or a program */
    STAGE_ORDER,  /* decides which element comes next, never looks inside one */
    STAGE_CONTENT /* decides what is in an element */
};

/* Which kinds of value a parameter takes; several may be set. */
enum parameter_type {
    TYPE_BOOL = 1 << 0,
    TYPE_INTEGER = 1 << 1,
    TYPE_NUMBER = 1 << 2, /* integers too */
    TYPE_TEXT = 1 << 3,
    TYPE_LIST = 1 << 4,
    TYPE_MAP = 1 << 5,
    TYPE_DATASET = 1 << 6,  /* a name of `datasets:` or an inline list of stages */
    TYPE_DATASETS = 1 << 7, /* a list of these */
    TYPE_COLUMNS = 1 << 8,  /* a column list (columns.h) */
    TYPE_DTYPE = 1 << 9,
    TYPE_SHAPE = 1 << 10, /* a list of integers and nulls */
    TYPE_EXPRESSION = 1 << 11,
    TYPE_PATHS = 1 << 12, /* a path or a list of paths */
    TYPE_NULL = 1 << 13,  /* null may be written */
    TYPE_ANY = 1 << 14
};

struct parameter_info {
    const char *name;
    uint32_t types; /* enum parameter_type */
    bool required;
    const char *default_value; /* YAML as a user would write it; NULL: none */
    int64_t minimum, maximum;  /* for integers; minimum > maximum: no range */
    const char *choices;       /* "int|one_hot|..." for TEXT; NULL: any */
    const char *help;          /* one sentence */
};

struct stage_info {
    const char *name;
    enum stage_kind kind;
    const char *group;    /* heading in the manual: "Sources", "Keras layers" ... */
    const char *namesake; /* tf.data.Dataset.shuffle ...; NULL: ours */
    const char *help;     /* one or two sentences */
    bool stands_first;
    bool has_short_form;
    uint32_t short_parameter; /* index, when has_short_form */
    uint32_t parameter_count;
    const struct parameter_info *parameters;
};

extern const struct stage_info stage_table[];
extern const uint32_t stage_count;

const struct stage_info *stage_find(const char *name); /* NULL: there is none */

#endif
