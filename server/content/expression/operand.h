/* operand.h - typing an expression: what operators, functions and indices share. */
#ifndef CONTENT_EXPRESSION_OPERAND_H
#define CONTENT_EXPRESSION_OPERAND_H

#include "content/expression/expression_program.h"

struct checker {
    const struct expression_config *config;
    struct expression *expression;
    tundish_status status; /* the first complaint's */
};

/* The meaning of a part of the tree. A literal has no dtype until it is combined with an operand
 * that has one. */
struct operand {
    enum { OPERAND_BAD, OPERAND_INTEGER, OPERAND_NUMBER, OPERAND_VECTOR, OPERAND_STEP } kind;
    uint32_t at;
    tree_integer integer;
    double number;           /* NUMBER, also INTEGER's value */
    const struct tree *tree; /* VECTOR: of literals */
    int32_t step;            /* STEP */
};

/* Complain once, at `at`, and yield a bad operand. */
#define operand_complain(checker, at, ...)                                                         \
    ((checker)->status = (checker)->status != TUNDISH_OK                                           \
                             ? (checker)->status                                                   \
                             : expression_complain((checker)->config, at, __VA_ARGS__),            \
     operand_bad())

struct operand operand_bad(void);

/* Type a part of the tree. */
struct operand operand_tree(struct checker *checker, const struct tree *tree);

/* Give literals among the operands the dtype of the others (by default int32 or int64, float32), so
 * that all are steps of one dtype. Complain if dtypes differ. False: it has complained. */
bool operand_unify(struct checker *checker, struct operand *operands, uint32_t count);

/* A literal without other operands gets its default dtype. */
struct operand operand_default(struct checker *checker, struct operand operand);

/* A literal as a constant of a dtype; a step stays as it is. */
struct operand operand_as(struct checker *checker, struct operand operand, tundish_dtype dtype);

struct operand operand_integer(struct checker *checker, uint32_t at, tree_integer value);
struct operand operand_number(uint32_t at, double value);
struct operand operand_text(struct checker *checker, const struct tree *tree);
struct operand operand_vector(struct checker *checker, const struct tree *tree);
bool operand_is_scalar_literal(struct operand operand);

/* Arithmetic on two scalar literals, as Python does it. */
struct operand operand_fold(struct checker *checker, enum tree_kind kind, uint32_t at,
                            struct operand left, struct operand right);

/* Store a scalar literal as one value of `dtype`, or complain that it does not fit. */
bool operand_store(struct checker *checker, struct operand operand, tundish_dtype dtype,
                   void *ret_value);

/* A constant of that value. */
struct operand operand_constant(struct checker *checker, uint32_t at, tundish_dtype dtype,
                                const void *value);

/* A step without inputs, of a dense scalar whose dtype is to be set. */
struct expression_step operand_step(enum step_kind kind, uint32_t at);

const struct value_type *operand_type(const struct checker *checker, struct operand operand);
tundish_dtype operand_dtype(const struct checker *checker, struct operand operand);
bool operand_is_literal(struct operand operand);

/* Combine the types of two values, in `a`: their shapes broadcast. False: it has complained. */
bool operand_broadcast(struct checker *checker, uint32_t at, struct value_type *a,
                       const struct value_type *b);

/* Append a step: its kind, inputs and type are given. */
struct operand operand_emit(struct checker *checker, const struct expression_step *step);

/* Append a kernel over unified operands (16-bit floats go through float32). */
struct operand operand_kernel(struct checker *checker, enum vector_op op, uint32_t at,
                              const struct operand *operands, uint32_t count);

struct operand operand_convert(struct checker *checker, struct operand operand, tundish_dtype dtype,
                               uint32_t at);

/* A float operation on operands of one dtype, refused for other dtypes. `word` names it. */
struct operand operand_binary(struct checker *checker, enum tree_kind kind, uint32_t at,
                              struct operand left, struct operand right);
struct operand operand_select(struct checker *checker, uint32_t at, struct operand condition,
                              struct operand yes, struct operand no);

/* expression_operator.c */
struct operand operand_operator(struct checker *checker, const struct tree *tree);

/* expression_call.c */
struct operand operand_call(struct checker *checker, const struct tree *tree);

/* expression_index.c */
struct operand operand_index(struct checker *checker, const struct tree *tree);

/* Mark the expression batch-wide if the operand has the batch as dimension 0. */
void operand_crosses_rows(struct checker *checker, struct operand operand);

#endif
