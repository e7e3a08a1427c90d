/* evaluate_private.h - shared by the files of evaluate.h only. */
#ifndef BATCH_EVALUATE_PRIVATE_H
#define BATCH_EVALUATE_PRIVATE_H

#include "batch/evaluate.h"
#include "core/must.h"

/* The run that an element is, whose first word it is. */
static inline const struct run *
evaluate_run_at(const struct evaluate_request *request, int64_t element)
{
    struct run *run = run_of_word(request->words[(size_t)element * request->stride]);

    must_in_debug(element < request->count && run != NULL);
    return run;
}

void *evaluate_take(struct evaluation *evaluation, size_t count, size_t bytes);

/* A frame for `count` elements of `schema`, columns zeroed. */
void evaluate_ready(struct evaluation *evaluation, const struct schema *schema, int64_t count,
                    const struct frame *outer, struct frame *frame);

void evaluate_gather(struct evaluation *evaluation, struct frame *frame, const int64_t *index,
                     int64_t count);

/* After a stage has run: leave out bad elements, or fail because of them. Each counts as the rows
 * it has in `before` (the input of the stage, batched `depth` times); NULL: as one. */
tundish_status evaluate_settle(struct evaluation *evaluation, const struct frame *before,
                               uint32_t depth, struct frame *frame);

/* Rows [splits[b], splits[b + 1]) are to become a batch of `node`: those whose shape in column
 * `index` is not the first one's are bad. */
void evaluate_check_shapes(const struct plan_node *node, uint32_t index, const int64_t *splits,
                           int64_t batch_count, struct frame *rows);

/* Complete the sentence about the frame's first bad element, which `node` made of `input` (NULL: it
 * is a row): where the element comes from, if it is a record of a file or a batch of such, and
 * which stage of the pipeline file it failed at. */
void evaluate_say_where(struct evaluation *evaluation, const struct plan_node *node,
                        const struct evaluate_request *request, const struct frame *input,
                        struct frame *frame);

/* The same where element `index` of `request` is a batch: of its row `row`; -1: it is not known. */
void evaluate_say_row(struct evaluation *evaluation, const struct plan_node *node,
                      const struct evaluate_request *request, int64_t index, int64_t row,
                      struct frame_errors *errors);

/* The second half of that: the stage alone. */
void evaluate_say_stage(const struct plan_node *node, struct frame_errors *errors);

/* The input of the content stage `node`, and of those that are fused with it. */
const struct plan_node *evaluate_before(const struct plan_node *node);

/* Apply it to `input`, elements that `request` asks for. Which are bad is left to be settled. */
tundish_status evaluate_apply(struct evaluation *evaluation, const struct plan_node *node,
                              const struct evaluate_request *request, struct frame *input,
                              struct frame *ret_frame);

/* The stage `node` has found batches of its input bad: if single rows of them are, leave those out,
 * so that it can be applied again. Not *ret_done: its rows depend on each other, or none is bad
 * alone. */
tundish_status evaluate_leave_out_rows(struct evaluation *evaluation, const struct plan_node *node,
                                       const struct evaluate_request *request,
                                       struct frame *batches, bool *ret_done);

/* The first row that makes batch `index` of `batches`, input of the stage `node`, bad; -1: its rows
 * depend on each other, or none is bad alone. */
int64_t evaluate_bad_row(struct evaluation *evaluation, const struct plan_node *node,
                         const struct frame *batches, int64_t index);

/* The outer elements of those that are left. */
const struct frame *evaluate_outer_kept(struct evaluation *evaluation, const struct frame *outer,
                                        const int64_t *kept, int64_t count);

/* Index in `input` (an ancestor of `node`) of the column that this column of `node` passes through
 * unchanged; -1 if a stage in between wrote it. */
int32_t evaluate_passed_from(const struct plan_node *node, const struct plan_node *input,
                             uint32_t column);

/* Destinations of an input's columns, from those of the columns that pass through. */
void evaluate_pass_destinations(struct evaluation *evaluation, const struct plan_node *node,
                                const struct plan_node *input,
                                const struct evaluate_request *outer_request,
                                struct evaluate_request *inner);

/* Joined columns need equally many levels. Fails for columns of unknown rank that differ between
 * branches. */
tundish_status evaluate_check_levels(const struct plan_node *node, const struct column *parts,
                                     uint32_t part_count, uint32_t column);

tundish_status evaluate_zip(struct evaluation *evaluation, const struct plan_node *node,
                            const struct evaluate_request *request, struct frame *ret_frame);

/* concatenate, choose, sample: word 0 says which branch an element is of. */
tundish_status evaluate_branches(struct evaluation *evaluation, const struct plan_node *node,
                                 const struct evaluate_request *request, struct frame *ret_frame);

/* Put the elements of all parts together, which have equally many levels, and in the order of the
 * request. `origin`: the position there of each, `total` in all. */
tundish_status evaluate_join(struct evaluation *evaluation, const struct plan_node *node,
                             const struct evaluate_request *request, const struct frame *parts,
                             uint32_t part_count, const int64_t *origin, int64_t total,
                             struct frame *ret_frame);

/* Make the elements, also those of this node that are kept. */
tundish_status evaluate_anew(struct evaluation *evaluation, const struct plan_node *node,
                             const struct evaluate_request *request, struct frame *ret_frame);

/* Take those that are kept, and make the others. False: none is kept, and nothing is done. */
bool evaluate_kept(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *ret_frame,
                   tundish_status *ret_status);

tundish_status evaluate_body(struct evaluation *evaluation, const struct plan_node *node,
                             const struct evaluate_request *request, struct frame *ret_frame);

tundish_status evaluate_batch(struct evaluation *evaluation, const struct plan_node *node,
                              const struct evaluate_request *request, struct frame *ret_frame);

/* The rows of batches that have many rows in common, each made once. False: they have not, or not
 * all rows are there and of one shape. */
bool evaluate_overlapping(struct evaluation *evaluation, const struct plan_node *node,
                          const struct evaluate_request *request, const int64_t *splits,
                          struct frame *ret_rows, tundish_status *ret_status);

/* The element of `node` that holds just this row, which `unbatch` took off, in temporary runs. They
 * live in scratch and are never released. */
uint64_t *evaluate_element_of_row(struct evaluation *evaluation, const struct plan_node *node,
                                  const uint64_t *row);

/* Evaluate each row as a batch of its own, which stages that treat rows independently cannot tell
 * from the batch it was in. */
tundish_status evaluate_unbatch(struct evaluation *evaluation, const struct plan_node *node,
                                const struct evaluate_request *request, struct frame *ret_frame);

/* Rows that only content has: the last word of each says which one of its element it is. Rows of
 * one element mostly come together, so it is made once for them. */
tundish_status evaluate_content_rows(struct evaluation *evaluation, const struct plan_node *node,
                                     const struct evaluate_request *request,
                                     struct frame *ret_frame);

/* rebatch and deal_carry: batches made of pieces of others. */
tundish_status evaluate_rebatched(struct evaluation *evaluation, const struct plan_node *node,
                                  const struct evaluate_request *request, struct frame *ret_frame);

/* Is this one slice of deal_split that has no rows, of a batch that has some? */
bool evaluate_is_empty_slice(const struct plan_node *node, const struct evaluate_request *request);

/* An empty slice has no row to take inner dimensions from, so it takes them from the first good row
 * of its batch. */
tundish_status evaluate_empty_slice(struct evaluation *evaluation, const struct plan_node *node,
                                    const struct evaluate_request *request,
                                    struct frame *ret_frame);

/* An empty frame that has the node's columns. */
void evaluate_none(struct evaluation *evaluation, const struct plan_node *node,
                   const struct evaluate_request *request, struct frame *ret_frame);

/* deal_split where content is cut: each slice from its whole element, whose last word says which it
 * is. */
tundish_status evaluate_slices(struct evaluation *evaluation, const struct plan_node *node,
                               const struct evaluate_request *request, struct frame *ret_frame);

/* The last column of a node that deals even slices: false for the rows that were repeated. */
tundish_status evaluate_mask(struct evaluation *evaluation, const struct plan_node *node,
                             const struct evaluate_request *request, struct frame *ret_frame);

#endif
