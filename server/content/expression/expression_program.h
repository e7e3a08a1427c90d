/* expression_program.h - an expression typed and compiled: what check makes and run follows.
 *
 * Steps stand in an order in which every input comes before its use. Steps that work value by value
 * and have the same shape make a group, run in one pass over blocks of values that stay in the
 * cache; what a group gives, and what any other step gives, is a whole column.
 */
#ifndef CONTENT_EXPRESSION_EXPRESSION_PROGRAM_H
#define CONTENT_EXPRESSION_EXPRESSION_PROGRAM_H

#include "column/vector.h"
#include "content/expression/expression.h"
#include "content/expression/expression_tree.h"
#include "content/expression/reduce.h"
#include "content/expression/slice.h"

enum { BLOCK_VALUES = 1024, STEP_INPUTS_MAX = 3, NO_STEP = -1 };

/* The type of a value: all that is known before there is data. */
struct value_type {
    struct column_spec spec; /* without name */
    bool is_batched;         /* dimension 0 is the batch, whose rows may be far apart */
    int32_t structure;       /* RAGGED, SPARSE: the column whose lists it has (outer ones: below
                                -1); else -1 */
};

enum step_kind {
    STEP_CONSTANT,
    STEP_COLUMN, /* of the input */
    STEP_OUTER,  /* of the outer element */
    STEP_VECTOR, /* a kernel */
    STEP_CONVERT,
    STEP_JOIN,  /* strings */
    STEP_STACK, /* scalars to a vector */
    STEP_REDUCE,
    STEP_SLICE,
    STEP_LENGTH, /* of dimension 0 */
    STEP_UNIFORM
};

struct expression_step {
    enum step_kind kind;
    uint32_t at; /* in the text, for messages */
    struct value_type type;
    int32_t inputs[STEP_INPUTS_MAX]; /* steps before this one, or NO_STEP */
    int32_t *more;                   /* STACK: all of them; SLICE: of its items, pairs */
    uint32_t more_count;

    void *constant;                     /* BLOCK_VALUES copies of the value */
    char *text;                         /* of a constant string */
    uint32_t column;                    /* COLUMN, OUTER */
    enum vector_op op;                  /* VECTOR */
    const struct vector_kernel *kernel; /* VECTOR */
    enum reduce_op reduce;
    uint32_t axes; /* REDUCE: bit k: dimension k goes */
    struct slice_item items[RANK_MAX];
    int64_t uniform_count; /* UNIFORM: values; -1: a scalar */

    bool is_root;  /* its result is needed as a column */
    int32_t group; /* the root it is computed with */
};

/* Where an operand is while a group runs. */
enum location_kind {
    LOCATION_NONE,
    LOCATION_LEAF,
    LOCATION_CONSTANT,
    LOCATION_BLOCK,
    LOCATION_RESULT
};

struct location {
    enum location_kind kind;
    uint32_t number;
};

struct group_op {
    int32_t step;
    struct location inputs[STEP_INPUTS_MAX];
    struct location output;
};

struct expression_group {
    int32_t root;
    uint32_t op_count, leaf_count, block_count;
    struct group_op *ops;
    int32_t *leaves; /* roots that are read, each once */
};

struct expression {
    char *text;
    uint32_t step_count;
    struct expression_step *steps;
    uint32_t group_count;
    struct expression_group *groups; /* in the order of their roots */
    int32_t result;                  /* the last step */
    bool is_batch_wide;
};

/* Type the tree and append its steps. */
tundish_status expression_check(const struct expression_config *config, const struct tree *root,
                                struct expression *expression);

/* Cut the steps into groups. */
void expression_group(struct expression *expression);

static inline bool
step_is_by_value(const struct expression_step *step)
{
    return step->kind == STEP_VECTOR || step->kind == STEP_CONVERT || step->kind == STEP_JOIN;
}

/* Bytes of one value while it is computed. */
size_t expression_value_bytes(tundish_dtype dtype);

#endif
