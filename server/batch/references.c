/* references.c - visits the references of elements, down the tree of the plan as evaluate goes. */
#include "batch/references.h"

#include "core/must.h"
#include "order/run.h"
#include "source/source.h"

/* Visit each element through its own branch. */
static void
visit_branches(const struct plan_node *node, const uint64_t *words, size_t stride, uint64_t count,
               references_visitor visit, void *user)
{
    for (uint64_t i = 0; i < count; i++) {
        const uint64_t *element = words + i * stride;
        const struct plan_node *input;

        if (element[0] >= node->input_count)
            continue;
        input = node->inputs[element[0]];
        references_visit(input, element + input->first_word, 1, 1, visit, user);
    }
}

static void
visit_zipped(const struct plan_node *node, const uint64_t *words, size_t stride, uint64_t count,
             references_visitor visit, void *user)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        references_visit(node->inputs[i], words + node->inputs[i]->first_word, stride, count, visit,
                         user);
}

/* Visit the elements of runs. A piece begins with the words of its element (run.h).
 */
static void
visit_runs(const struct plan_node *node, const uint64_t *words, size_t stride, uint64_t count,
           references_visitor visit, void *user)
{
    for (uint64_t i = 0; i < count; i++) {
        const struct run *run = run_of_word(words[i * stride]);

        must_in_debug(run == NULL || run->width >= node->inputs[0]->width);
        if (run != NULL)
            references_visit(node->inputs[0], run->words, run->width, run->element_count, visit,
                             user);
    }
}

void
references_visit(const struct plan_node *node, const uint64_t *words, size_t stride, uint64_t count,
                 references_visitor visit, void *user)
{
    while (node->source == NULL) {
        switch (node->order != NULL ? node->order->form : ORDER_PASSES) {
        case ORDER_PASSES:
        case ORDER_NUMBERS:
        case ORDER_SLICES:
            node = node->inputs[0];
            break;
        case ORDER_FUNCTION:
            node = node->body->root;
            break;
        case ORDER_BRANCHES:
            visit_branches(node, words, stride, count, visit, user);
            return;
        case ORDER_ZIPS:
            visit_zipped(node, words, stride, count, visit, user);
            return;
        case ORDER_BATCHES:
        case ORDER_REBATCHES:
            visit_runs(node, words, stride, count, visit, user);
            return;
        case ORDER_READS:
        case ORDER_UNBATCHES:
            return;
        }
    }
    if (!node->source->refers_to_records && !node->source->tells_records)
        return;
    for (uint64_t i = 0; i < count; i++)
        visit(user, words + i * stride, node->source->extra_bytes);
}
