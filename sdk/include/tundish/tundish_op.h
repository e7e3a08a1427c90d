/* tundish_op.h - transforms of your own, as stages of a pipeline.
 *
 *     - op: {library: "libmine.so", name: clamp, parameters: {low: 0, high: 10}, columns: "I*"}
 *
 * A shared object exports tundish_ops, which returns its transforms. Examples:
 * sdk/examples/op_clamp.c and op_lists.c.
 *
 * A transform takes one value of each input column, or, with TUNDISH_OP_VECTORS, one vector (the
 * last dimension). For each output column it makes one value, a vector of fixed width, or a list of
 * any length. It must be pure and say so in flags: the same values give the same bits, on any
 * thread, whatever was computed before. Tundish computes content in any order, on any thread, and
 * may compute it again.
 */
#ifndef TUNDISH_OP_H
#define TUNDISH_OP_H

#include <stddef.h>
#include <stdint.h>

#include <tundish/tundish.h>

#ifdef __cplusplus
extern "C" {
#endif

#define TUNDISH_OP_VERSION 1u
#define TUNDISH_OP_PURE 1u    /* flags: same values, same bits; required */
#define TUNDISH_OP_VECTORS 2u /* flags: takes vectors: the last dimension of its columns */

#define TUNDISH_OP_LIST UINT32_MAX /* width of an output: lists of any length */

/* A string value: size bytes at data, any of them. */
typedef struct tundish_op_text {
    const uint8_t *data;
    uint64_t size;
} tundish_op_text;

/* The type of a column.
 * Input: width is the size of one vector (TUNDISH_OP_VECTORS), else 0. Output: width is 0 for one
 * value per input value or vector, the size of a vector, or TUNDISH_OP_LIST. Vectors and lists
 * become a new last dimension; that of lists is ragged.
 */
typedef struct tundish_op_spec {
    tundish_dtype dtype;
    uint32_t width;
} tundish_op_spec;

/* Functions that apply may call. */
typedef struct tundish_op_call {
    size_t size;
    /* Memory for a string value; lives as long as the values. */
    uint8_t *(*text_room)(struct tundish_op_call *call, size_t bytes);
    /* Report value `index` as bad: its row is an error or is skipped. The sentence is copied. */
    void (*reject)(struct tundish_op_call *call, uint64_t index, const char *sentence);
    /* Memory for a list of `count` values: output `output` (of width TUNDISH_OP_LIST) for value
     * `index`. Write it before the next call. Call once per value, in ascending order; a value
     * without a call has an empty list. NULL: wrong order, another kind of output, or more than
     * 2^31 values. */
    void *(*list_room)(struct tundish_op_call *call, uint32_t output, uint64_t index,
                       uint64_t count);
} tundish_op_call;

/* A constant in the shared object. Version and size come first: new members are added at the end,
 * and Tundish does not call a member that an older object lacks. */
typedef struct tundish_op {
    uint32_t version; /* TUNDISH_OP_VERSION */
    uint32_t size;    /* sizeof(tundish_op) */
    const char *name;
    const char *help; /* one sentence */
    uint32_t flags;
    uint32_t input_count;  /* columns per call; at least 1 */
    uint32_t output_count; /* at least 1 */

    /* Called once, when the pipeline is planned. `parameters` is the stage's `parameters` as JSON
     * ("null" if it has none); `inputs` are the columns. Fill in `outputs` and *ret_state (may stay
     * NULL). Return NULL, or a sentence that explains the error and lives until close. */
    const char *(*open)(const char *parameters, const tundish_op_spec *inputs,
                        tundish_op_spec *outputs, void **ret_state);

    /* Called on any thread, on several at a time. inputs[i] has `count` values of column i
     * (strings: tundish_op_text), or count * width. Write count values, or count * width, of each
     * output. A list output has no outputs[i]: use list_room. */
    void (*apply)(const void *state, uint64_t count, const void *const *inputs,
                  void *const *outputs, tundish_op_call *call);

    /* Called after open, also if open failed. */
    void (*close)(void *state);
} tundish_op;

/* The function that the shared object exports: its transforms, ended by NULL. */
TUNDISH_API const tundish_op *const *tundish_ops(void);

#ifdef __cplusplus
}
#endif

#endif
