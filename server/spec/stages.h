/* stages.h - the table of stages (stages.def).
 *
 * Parser, `tundish help`, the manual page and the completion all read this one table.
 */
#ifndef SPEC_STAGES_H
#define SPEC_STAGES_H

#include <stdbool.h>
#include <stdint.h>

struct check;
struct spec_stage;
struct spec_value;

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
    TYPE_NULL = 1 << 13,  /* null, a value of its own */
    TYPE_ANY = 1 << 14,
    TYPE_INTEGERS = 1 << 15,    /* a list of integers */
    TYPE_NUMBERS = 1 << 16,     /* a list of integers and floats */
    TYPE_TEXTS = 1 << 17,       /* a list of texts */
    TYPE_EXPRESSIONS = 1 << 18, /* a mapping column -> expression */
    TYPE_TEXT_MAP = 1 << 19,    /* a mapping of texts to texts */
    TYPE_DURATION = 1 << 20,    /* 30s, 5m, 100ms */
    TYPE_SIZE = 1 << 21,        /* bytes, or 64MiB */
    TYPE_UNSET = 1 << 22,       /* null, the same as leaving the parameter out */
    TYPE_VARYING = 1 << 23,     /* $name may stand for it, or inside it */
    TYPE_ENTRIES = 1 << 24,     /* a mapping whose entries are checked by a table of their own */
    TYPE_AUTOTUNE = 1 << 25,    /* the word AUTOTUNE, which is kept as the integer -1 */
    TYPE_FILE_NAME = 1 << 26,   /* a text, made into a file's name as tf.Transform does */
    TYPE_NO_EFFECT = 1 << 27,   /* whatever is given, the same rows come out */
    TYPE_LATER = 1 << 28,       /* places and results of stages without it are older than it is */
    TYPE_PATTERN = 1 << 29      /* a path with * ? [..], or a list of them */
};

/* Complains about a written value (or a default) that types and limits let pass: stage_rules.h. */
typedef void stage_rule(struct check *check, const struct spec_stage *stage,
                        const struct spec_value *value);

struct parameter_info {
    const char *name;
    uint32_t types; /* enum parameter_type */
    bool required;
    const char *default_value; /* YAML as a user would write it; NULL: none */
    int64_t minimum, maximum;  /* of integers and numbers, in lists too; minimum > maximum: any */
    const char *choices;       /* "int|one_hot|..." for texts and integers; NULL: any */
    stage_rule *rule;          /* what the fields above cannot say; NULL: nothing */
    const char *help;          /* one sentence */
};

struct stage_info {
    const char *name;
    enum stage_kind kind;
    const char *group;    /* heading in the manual: "Sources", "Keras layers" ... */
    const char *namesake; /* tf.data.Dataset.shuffle ...; NULL: ours */
    const char *help;     /* one or two sentences */
    bool stands_first;
    bool stands_alone;        /* the only stage of a stream */
    bool has_short_form;      /* `name: VALUE` gives short_parameter */
    bool has_bounds_form;     /* `name: [start, stop, step]`, as the arguments of Python's range */
    bool is_whole;            /* the stage's mapping is itself the value of parameter 0 */
    uint32_t short_parameter; /* index, when has_short_form */
    uint32_t parameter_count;
    const struct parameter_info *parameters;
};

extern const struct stage_info stage_table[];
extern const uint32_t stage_count;

const struct stage_info *stage_find(const char *name); /* NULL: there is none */

/* The mappings around the stages (sections.c), in the same form: the file itself, a stream,
 * `distribute`, `deliver`, `remote`, and the entries of mappings that some stages take. */
extern const struct stage_info section_file;
extern const struct stage_info section_stream;
extern const struct stage_info section_distribute;
extern const struct stage_info section_deliver;
extern const struct stage_info section_remote;
extern const struct stage_info section_widen;
extern const struct stage_info section_tensor;       /* {values, dtype} and {npy} */
extern const struct stage_info section_program_spec; /* {dtype, shape} */
extern const struct stage_info section_field;        /* record_defaults: {values, dtype} */
extern const struct stage_info feature_table[];      /* FixedLen, FixedLenSequence ... */
extern const uint32_t feature_count;

/* The index of a parameter, or -1. */
int stage_parameter(const struct stage_info *stage, const char *name);

/* Does it run a dataset on each of its elements, whose columns that sees as $name? */
bool stage_runs_dataset(const struct stage_info *stage);

#endif
