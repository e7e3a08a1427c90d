/* evaluate_unite.c - elements of zip, of branches, and of function bodies. */
#include "batch/evaluate_private.h"

#include <string.h>

#include "batch/column_combine.h"
#include "core/must.h"

/* Reduce all parts to the elements that every part still has: a zipped element with one bad part is
 * bad. */
static void
intersect(struct evaluation *evaluation, struct frame *parts, uint32_t part_count, int64_t count)
{
    uint8_t *left = evaluate_take(evaluation, (size_t)count, 1);
    int64_t *kept = evaluate_take(evaluation, (size_t)count, sizeof *kept);
    int64_t kept_count = 0;
    bool all = true;

    must_in_debug(part_count <= UINT8_MAX);
    for (uint32_t p = 0; p < part_count; p++)
        all &= parts[p].kept == NULL;
    if (all)
        return;
    memset(left, 0, (size_t)count);
    for (uint32_t p = 0; p < part_count; p++)
        for (int64_t i = 0; i < parts[p].count; i++)
            left[parts[p].kept != NULL ? parts[p].kept[i] : i]++;
    for (int64_t i = 0; i < count; i++)
        if (left[i] == part_count)
            kept[kept_count++] = i;
    for (uint32_t p = 0; p < part_count; p++) {
        int64_t *index = evaluate_take(evaluation, (size_t)kept_count, sizeof *index);

        for (int64_t i = 0, at = 0; i < kept_count; at++)
            if ((parts[p].kept != NULL ? parts[p].kept[at] : at) == kept[i])
                index[i++] = at;
        evaluate_gather(evaluation, &parts[p], index, kept_count);
        parts[p].kept = kept;
    }
    for (uint32_t p = 0; p < part_count; p++)
        must_in_debug(parts[p].count == kept_count);
}

tundish_status
evaluate_zip(struct evaluation *evaluation, const struct plan_node *node,
             const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *parts = evaluate_take(evaluation, node->input_count, sizeof *parts);
    uint32_t column = 0;

    for (uint32_t p = 0; p < node->input_count; p++) {
        const struct plan_node *input = node->inputs[p];
        struct evaluate_request inner = {
            .words = request->words + input->first_word,
            .stride = request->stride,
            .count = request->count,
            .outer = request->outer,
        };
        tundish_status status;

        if (request->destinations != NULL) {
            inner.destinations = request->destinations + column;
            inner.destination_bytes = request->destination_bytes + column;
        }
        status = evaluate(evaluation, input, &inner, &parts[p]);
        if (status != TUNDISH_OK)
            return status;
        column += input->schema.count;
    }
    intersect(evaluation, parts, node->input_count, request->count);
    evaluate_ready(evaluation, &node->schema, parts[0].count, request->outer, ret_frame);
    ret_frame->kept = parts[0].kept;
    column = 0;
    for (uint32_t p = 0; p < node->input_count; p++)
        for (uint32_t i = 0; i < parts[p].column_count; i++)
            ret_frame->columns[column++] = parts[p].columns[i];
    must_in_debug(column == node->schema.count);
    return TUNDISH_OK;
}

tundish_status
evaluate_join(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, const struct frame *parts,
              uint32_t part_count, const int64_t *origin, int64_t total, struct frame *ret_frame)
{
    int64_t *request_at = evaluate_take(evaluation, (size_t)request->count, sizeof *request_at);
    int64_t *index = evaluate_take(evaluation, (size_t)total, sizeof *index);
    int64_t *kept = evaluate_take(evaluation, (size_t)total, sizeof *kept);
    struct column *columns = evaluate_take(evaluation, part_count, sizeof *columns);
    int64_t left = 0;
    bool in_order = true;

    memset(request_at, -1, (size_t)request->count * sizeof *request_at);
    for (int64_t i = 0; i < total; i++)
        request_at[origin[i]] = i;
    for (int64_t i = 0; i < request->count; i++)
        if (request_at[i] >= 0) {
            kept[left] = i;
            in_order &= request_at[i] == left;
            index[left++] = request_at[i];
        }
    must_in_debug(left == total && part_count > 0); /* each is in one part */
    evaluate_ready(evaluation, &node->schema, total, request->outer, ret_frame);
    for (uint32_t i = 0; i < node->schema.count; i++) {
        tundish_status status;

        for (uint32_t p = 0; p < part_count; p++)
            columns[p] = parts[p].columns[i];
        status = evaluate_check_levels(node, columns, part_count, i);
        if (status != TUNDISH_OK)
            return status;
        if (part_count == 1)
            column_copy(&ret_frame->columns[i], &columns[0]);
        else
            column_join(columns, part_count, node->schema.columns[i].dtype, evaluation->scratch,
                        &ret_frame->columns[i]);
    }
    if (!in_order)
        evaluate_gather(evaluation, ret_frame, index, left);
    ret_frame->kept = left == request->count ? NULL : kept;
    return TUNDISH_OK;
}

/* Collect the elements of one branch. Returns their number. */
static int64_t
select_branch(const struct evaluate_request *request, const struct plan_node *input,
              uint32_t branch, uint64_t *words, int64_t *origin)
{
    int64_t count = 0;

    for (int64_t i = 0; i < request->count; i++) {
        const uint64_t *element = request->words + (size_t)i * request->stride;

        if (element[0] != branch)
            continue;
        memcpy(words + (size_t)count * input->width, element + input->first_word,
               input->width * sizeof *words);
        origin[count++] = i;
    }
    return count;
}

/* concatenate, choose, sample: word 0 says which branch an element is from. Each branch is
 * evaluated once, with all of its elements. */
tundish_status
evaluate_branches(struct evaluation *evaluation, const struct plan_node *node,
                  const struct evaluate_request *request, struct frame *ret_frame)
{
    struct frame *parts = evaluate_take(evaluation, node->input_count, sizeof *parts);
    int64_t *origin = evaluate_take(evaluation, (size_t)request->count, sizeof *origin);
    uint32_t part_count = 0;
    int64_t total = 0;

    for (uint32_t branch = 0; branch < node->input_count; branch++) {
        const struct plan_node *input = node->inputs[branch];
        uint64_t *words =
            evaluate_take(evaluation, (size_t)request->count * input->width, sizeof *words);
        int64_t *here = evaluate_take(evaluation, (size_t)request->count, sizeof *here);
        int64_t count = select_branch(request, input, branch, words, here);
        struct evaluate_request inner = {
            .words = words,
            .stride = input->width,
            .count = count,
            .outer = evaluate_outer_kept(evaluation, request->outer, here, count),
        };
        struct frame *part = &parts[part_count];
        tundish_status status;

        /* An empty request still evaluates one branch, which gives the columns their levels. */
        if (count == 0 && !(request->count == 0 && branch == 0))
            continue;
        status = evaluate(evaluation, input, &inner, part);
        if (status != TUNDISH_OK)
            return status;
        for (int64_t i = 0; i < part->count; i++)
            origin[total++] = here[part->kept != NULL ? part->kept[i] : i];
        part_count++;
    }
    must_in_debug(total <= request->count);
    return evaluate_join(evaluation, node, request, parts, part_count, origin, total, ret_frame);
}

/* Evaluate the outer element of each inner one: the columns that $name refers to in a body. */
static tundish_status
evaluate_outer(struct evaluation *evaluation, const struct plan_node *node,
               const struct evaluate_request *request, const struct frame **ret_outer)
{
    const struct plan_graph *body = node->body;
    struct evaluate_request outer_request = {
        .words = request->words + body->root->width,
        .stride = request->stride,
        .count = request->count,
        .outer = request->outer,
    };
    struct frame *outer = evaluate_take(evaluation, 1, sizeof *outer);
    uint64_t skipped = evaluation->skipped;
    struct frame nearest;
    tundish_status status = evaluate(evaluation, node->inputs[0], &outer_request, &nearest);

    evaluation->skipped = skipped; /* the order counted them when it opened the function */
    if (status != TUNDISH_OK)
        return status;
    if (nearest.kept != NULL)
        return tnd_fail(TUNDISH_E_DATA, "%s: an outer element is bad", node->name);
    evaluate_ready(evaluation, &body->outer_schema, request->count, NULL, outer);
    must_in_debug(nearest.count == request->count);
    for (uint32_t i = 0; i < body->outer_schema.count; i++) {
        const char *name = body->outer_schema.columns[i].name;

        must_in_debug(i < nearest.column_count || schema_find(request->outer->schema, name) >= 0);
        outer->columns[i] =
            i < nearest.column_count
                ? nearest.columns[i]
                : request->outer->columns[schema_find(request->outer->schema, name)];
    }
    *ret_outer = outer;
    return TUNDISH_OK;
}

tundish_status
evaluate_body(struct evaluation *evaluation, const struct plan_node *node,
              const struct evaluate_request *request, struct frame *ret_frame)
{
    struct evaluate_request inner = *request;
    tundish_status status = TUNDISH_OK;

    inner.outer = NULL;
    if (node->body->captures)
        status = evaluate_outer(evaluation, node, request, &inner.outer);
    if (status == TUNDISH_OK)
        status = evaluate(evaluation, node->body->root, &inner, ret_frame);
    if (status == TUNDISH_OK) {
        ret_frame->schema = &node->schema;
        ret_frame->outer = request->outer;
    }
    return status;
}
