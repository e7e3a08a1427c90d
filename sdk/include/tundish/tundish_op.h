/* tundish_op.h - transforms of your own, as stages of a pipeline.
 *
 *     - op: {library: "libmine.so", name: clamp, parameters: {low: 0, high: 10}, columns: "I*"}
 *
 * A shared object exports tundish_ops, which gives its transforms. sdk/examples/op_clamp.c and
 * op_lists.c are such.
 *
 * A transform works value by value: of one value of each of its input columns - or, if it says so,
 * of one vector, the last dimension - it makes for each output column one value, a vector of fixed
 * width, or a list of any length. It must be pure - the same values give the same bits, whatever
 * came before, on any thread - and says so in flags: tundish makes content in whatever order and on
 * whatever thread suits, and makes it again.
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
#define TUNDISH_OP_PURE 1u    /* flags: same values, same bits; needed */
#define TUNDISH_OP_VECTORS 2u /* flags: takes the last dimension of its columns at once */

#define TUNDISH_OP_LIST UINT32_MAX /* width of an output: lists, each as long as it is */

/* A string value: size bytes at data, any of them. */
typedef struct tundish_op_text {
    const uint8_t *data;
    uint64_t size;
} tundish_op_text;

/* What a column holds.
 * Of an input, width is the size of the vectors that are taken at once (TUNDISH_OP_VECTORS), else
 * 0. An output has one value, or vector, or list for each that is taken: width 0, the size of the
 * vectors, or TUNDISH_OP_LIST. Vectors and lists become a new last dimension, lists a ragged one.
 */
typedef struct tundish_op_spec {
    tundish_dtype dtype;
    uint32_t width;
} tundish_op_spec;

/* What apply may ask of tundish. */
typedef struct tundish_op_call {
    size_t size;
    /* Room for a string value; lives as long as the values. */
    uint8_t *(*text_room)(struct tundish_op_call *call, size_t bytes);
    /* Value `index` is bad: its row is an error, or is skipped. The sentence is copied. */
    void (*reject)(struct tundish_op_call *call, uint64_t index, const char *sentence);
    /* Room for the list that output number `output` (of TUNDISH_OP_LIST) has for value `index`:
     * `count` values, to be written before the next call. Once for a value, in rising order; one
     * that is passed over has an empty list. NULL: out of order, not such an output, or more than
     * 2^31 values. */
    void *(*list_room)(struct tundish_op_call *call, uint32_t output, uint64_t index,
                       uint64_t count);
} tundish_op_call;

/* Made by the shared object, constant. Version and size come first: members are only added behind,
 * and one that an older object does not have is not called. */
typedef struct tundish_op {
    uint32_t version; /* TUNDISH_OP_VERSION */
    uint32_t size;    /* sizeof(tundish_op) */
    const char *name;
    const char *help; /* one sentence */
    uint32_t flags;
    uint32_t input_count;  /* columns it takes together; at least 1 */
    uint32_t output_count; /* at least 1 */

    /* Once, when the pipeline is planned. `parameters` is the stage's as JSON ("null" if it has
     * none); `inputs` are the columns. Fill in `outputs` and *ret_state (may stay NULL). Return
     * NULL, or a sentence about what is wrong, which lives until close. */
    const char *(*open)(const char *parameters, const tundish_op_spec *inputs,
                        tundish_op_spec *outputs, void **ret_state);

    /* Any thread, several at a time. inputs[i] are `count` values of column i (strings:
     * tundish_op_text), or count * width; write count values, or count * width, of each output.
     * Of lists there is no outputs[i]: see list_room. */
    void (*apply)(const void *state, uint64_t count, const void *const *inputs,
                  void *const *outputs, tundish_op_call *call);

    /* After open, whether it went well or not. */
    void (*close)(void *state);
} tundish_op;

/* What the shared object exports: its transforms; the list ends with NULL. */
TUNDISH_API const tundish_op *const *tundish_ops(void);

#ifdef __cplusplus
}
#endif

#endif
