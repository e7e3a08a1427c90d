/* portable.c - runs are written where their word stands: 0 for none, else 1, a head, and their
 * elements. */
#include "batch/portable.h"

#include <stdlib.h>

#include "content/content.h"
#include "core/memory.h"
#include "core/must.h"
#include "order/ops.h"
#include "order/run.h"
#include "source/source.h"

/* A batch of batches of ... : a malformed message must not take the stack. */
enum { DEPTH_MAX = 32 };

/* `shares`: it is rows of the run that follows, from `begin` on, instead of having its own. */
struct run_head {
    uint64_t run_words, element_count, row_count, repeated, begin;
    uint32_t width;
    uint8_t in_pieces, has_parent, shares, reserved;
};

/* The first node that is in the way, and why. Slices that are cut from one batch are made together,
 * which is not so once they are of several nodes. */
static char *
node_obstacle(const struct plan *plan, const struct plan_node *node)
{
    bool makes_rows = node->cuts_content && !(plan->cuts_batches && node == plan->graph->root);
    const char *why = NULL;

    if (node->source != NULL && node->source->words == WORDS_OF_HERE)
        why = "has rows that only this server has";
    else if (makes_rows || (node->order != NULL && node->order->form == ORDER_UNBATCHES))
        why = "makes rows of content";
    else if (node->content != NULL && node->content->code_hash != NULL)
        why = "runs code of your own";
    if (why == NULL)
        return NULL;
    return node->stage != NULL ? tnd_sprintf("stage '%s' (line %u) %s", node->name,
                                             (unsigned)node->stage->line, why)
                               : tnd_sprintf("'%s' %s", node->name, why);
}

static char *
graph_obstacle(const struct plan *plan, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        char *why = node_obstacle(plan, node);

        if (why == NULL && node->body != NULL)
            why = graph_obstacle(plan, node->body);
        if (why != NULL)
            return why;
    }
    return NULL;
}

char *
portable_obstacle(const struct plan *plan)
{
    if (plan_has_owners(plan))
        return tnd_strdup("each file has one node that reads it");
    return graph_obstacle(plan, plan->graph);
}

void
portable_add(struct portable_bytes *to, const void *bytes, size_t byte_count)
{
    if (to->room - to->used < byte_count) {
        to->room = 2 * to->room + byte_count + 256;
        to->bytes = tnd_realloc(to->bytes, to->room, 1);
    }
    must_in_debug(to->used + byte_count <= to->room);
    if (byte_count > 0)
        memcpy(to->bytes + to->used, bytes, byte_count);
    to->used += byte_count;
}

bool
portable_take(struct byte_view *from, void *to, size_t byte_count)
{
    if (from->size < byte_count)
        return false;
    if (byte_count > 0)
        memcpy(to, from->data, byte_count);
    from->data += byte_count;
    from->size -= byte_count;
    return true;
}

static void write_run(const struct run *run, struct portable_bytes *to);

static void
write_elements(const uint64_t *words, uint64_t count, uint32_t width, uint64_t run_words,
               struct portable_bytes *to)
{
    static const uint64_t none = 0, one = 1;

    if (run_words == 0) {
        portable_add(to, words, (size_t)count * width * sizeof *words);
        return;
    }
    for (uint64_t i = 0; i < count; i++)
        for (uint32_t w = 0; w < width; w++) {
            uint64_t word = words[i * width + w];
            bool is_run = (run_words >> w & 1) != 0;

            portable_add(to, !is_run ? &word : word != 0 ? &one : &none, sizeof word);
            if (is_run && word != 0)
                write_run(run_of_word(word), to);
        }
}

/* The batch that a slice is of matters only if the slice is empty: then it tells what the batch
 * looks like (evaluate_empty.c). */
static void
write_run(const struct run *run, struct portable_bytes *to)
{
    bool has_parent = run->parent != NULL && run->row_count == 0;
    struct run_head head = {
        .run_words = run->run_words,
        .element_count = run->element_count,
        .row_count = run->row_count,
        .repeated = run->repeated,
        .width = run->width,
        .in_pieces = run->in_pieces,
        .has_parent = has_parent,
        .shares = has_parent && !run->in_pieces,
    };

    must_in_debug(run->in_pieces || run->row_count == run->element_count);
    if (head.shares)
        head.begin = (uint64_t)(run->words - run->parent->words) / run->width;
    must_in_debug(!head.shares || head.begin <= run->parent->element_count);
    portable_add(to, &head, sizeof head);
    if (has_parent)
        write_run(run->parent, to);
    if (!head.shares)
        write_elements(run->words, run->element_count, run->width, run->run_words, to);
}

void
portable_write(const struct portable_elements *elements, struct portable_bytes *to)
{
    write_elements(elements->words, elements->count, elements->width, elements->run_words, to);
}

static tundish_status
makes_no_sense(void)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "malformed elements");
}

static tundish_status read_run(struct byte_view *from, uint32_t depth, uint64_t *ret_word);

static tundish_status
read_elements(struct byte_view *from, uint64_t count, uint32_t width, uint64_t run_words,
              uint32_t depth, uint64_t *ret_words)
{
    uint64_t word_count = count * width;

    if (run_words == 0)
        return portable_take(from, ret_words, word_count * sizeof *ret_words) ? TUNDISH_OK
                                                                              : makes_no_sense();
    for (uint64_t i = 0; i < word_count; i++) {
        bool is_run = (run_words >> i % width & 1) != 0;
        tundish_status status = TUNDISH_OK;

        ret_words[i] = 0;
        if (!portable_take(from, &ret_words[i], sizeof *ret_words) || (is_run && ret_words[i] > 1))
            status = makes_no_sense();
        else if (is_run && ret_words[i] == 1)
            status = read_run(from, depth + 1, &ret_words[i]);
        if (status == TUNDISH_OK)
            continue;
        if (is_run)
            ret_words[i] = 0;
        for (uint64_t k = 0; k < i; k++)
            if ((run_words >> k % width & 1) != 0)
                run_release(run_of_word(ret_words[k]));
        return status;
    }
    return TUNDISH_OK;
}

static bool
is_head(const struct run_head *head, const struct byte_view *rest)
{
    uint64_t words;

    /* Elements take their bytes, but for those of another run. */
    return head->width >= 1 && head->width <= PLAN_WIDTH_MAX &&
           (head->width == PLAN_WIDTH_MAX || head->run_words >> head->width == 0) &&
           !__builtin_mul_overflow(head->element_count, head->width, &words) &&
           words <= rest->size / sizeof words && head->in_pieces <= 1 && head->has_parent <= 1 &&
           head->shares == (head->has_parent && !head->in_pieces) &&
           (head->in_pieces ? head->row_count <= INT64_MAX
                            : head->row_count == head->element_count) &&
           head->repeated <= head->row_count && (!head->has_parent || head->row_count == 0);
}

static tundish_status
read_own(struct byte_view *from, const struct run_head *head, uint32_t depth, struct run *parent,
         uint64_t *ret_word)
{
    uint64_t *words = tnd_alloc((head->element_count * head->width + 1) * sizeof *words);
    tundish_status status =
        read_elements(from, head->element_count, head->width, head->run_words, depth, words);

    if (status == TUNDISH_OK) {
        struct run *run = head->in_pieces
                              ? run_join(words, head->element_count, head->width, head->run_words,
                                         head->row_count)
                              : run_new(words, head->element_count, head->width, head->run_words);

        run->parent = parent;
        run->repeated = head->repeated;
        *ret_word = run_word(run);
    }
    free(words);
    return status;
}

/* *ret_word is set only on success. */
static tundish_status
read_run(struct byte_view *from, uint32_t depth, uint64_t *ret_word)
{
    struct run_head head;
    uint64_t word = 0;
    struct run *parent;
    tundish_status status = TUNDISH_OK;

    if (depth > DEPTH_MAX || !portable_take(from, &head, sizeof head) || !is_head(&head, from))
        return makes_no_sense();
    if (head.has_parent)
        status = read_run(from, depth + 1, &word);
    if (status != TUNDISH_OK)
        return status;
    parent = run_of_word(word);
    if (!head.shares) {
        status = read_own(from, &head, depth, parent, ret_word);
        if (status != TUNDISH_OK)
            run_release(parent);
        return status;
    }
    if (head.begin > parent->element_count || head.element_count > 0 || parent->parent != NULL ||
        head.width != parent->width || head.run_words != parent->run_words)
        status = makes_no_sense();
    else
        *ret_word = run_word(run_view(parent, head.begin, 0));
    run_release(parent); /* the view has its own */
    return status;
}

tundish_status
portable_read(struct byte_view *from, uint64_t count, uint32_t width, uint64_t run_words,
              uint64_t *ret_words)
{
    return read_elements(from, count, width, run_words, 0, ret_words);
}

/* The elements of a batch: of the run, or of the one that it is an empty slice of, as write_run has
 * them. The run of which a window is a view is filled meanwhile. */
static tundish_status
visit_run(const struct portable_visit *visit, const struct plan_node *node, const struct run *run)
{
    const struct plan_node *input = node->inputs[0];
    bool pieces = node->order->form == ORDER_REBATCHES;

    for (; run != NULL; run = run->row_count == 0 ? run->parent : NULL) {
        tundish_status status;
        uint64_t rows = 0, all = 0;

        if (run->width != input->width || run->run_words != input->run_words ||
            run->in_pieces != pieces || (pieces && run->element_count == 0))
            return makes_no_sense();
        for (uint64_t i = 0; pieces && i < run->element_count; i++, all += rows)
            if (!run_words_rows(run->words + i * run->width, run->width, run->run_words, &rows) ||
                rows > run->row_count - all)
                return makes_no_sense();
        if (pieces && all != run->row_count)
            return makes_no_sense();
        status = portable_visit(visit, input, run->words, run->width, run->element_count);
        if (status != TUNDISH_OK)
            return status;
    }
    return TUNDISH_OK;
}

/* An element of one branch has no runs in the words of others. */
static tundish_status
visit_branch(const struct portable_visit *visit, const struct plan_node *node,
             const uint64_t *words)
{
    const struct plan_node *input;

    if (words[0] >= node->input_count)
        return makes_no_sense();
    input = node->inputs[words[0]];
    for (uint32_t w = 0; w < node->width; w++)
        if ((node->run_words >> w & 1) != 0 && words[w] != 0 &&
            (w < input->first_word || w >= input->first_word + input->width))
            return makes_no_sense();
    return portable_visit(visit, input, words + input->first_word, input->width, 1);
}

static tundish_status
visit_one(const struct portable_visit *visit, const struct plan_node *node, const uint64_t *words)
{
    const struct plan_node *input;
    tundish_status status = TUNDISH_OK;

    switch (node->order->form) {
    case ORDER_BATCHES:
    case ORDER_REBATCHES:
        return words[0] == 0 ? makes_no_sense() : visit_run(visit, node, run_of_word(words[0]));
    case ORDER_BRANCHES:
        return visit_branch(visit, node, words);
    case ORDER_ZIPS:
        for (uint32_t i = 0; status == TUNDISH_OK && i < node->input_count; i++) {
            input = node->inputs[i];
            status = portable_visit(visit, input, words + input->first_word, input->width, 1);
        }
        return status;
    case ORDER_FUNCTION:
        input = node->body->root;
        status = portable_visit(visit, input, words, input->width, 1);
        if (status == TUNDISH_OK && node->body->captures)
            status = portable_visit(visit, node->inputs[0], words + input->width,
                                    node->inputs[0]->width, 1);
        return status;
    case ORDER_READS:
    case ORDER_PASSES:
    case ORDER_NUMBERS:
    case ORDER_SLICES:
    case ORDER_UNBATCHES:
        break;
    }
    return makes_no_sense();
}

/* A node that leaves words as its input has them, perhaps with more after those. */
static bool
passes_words(const struct plan_node *node)
{
    return node->source == NULL &&
           (node->order == NULL || node->order->form == ORDER_PASSES ||
            node->order->form == ORDER_NUMBERS || node->order->form == ORDER_SLICES);
}

tundish_status
portable_visit(const struct portable_visit *visit, const struct plan_node *node,
               const uint64_t *words, size_t stride, uint64_t count)
{
    tundish_status status = TUNDISH_OK;

    while (passes_words(node))
        node = node->inputs[0];
    for (uint64_t i = 0; status == TUNDISH_OK && i < count; i++) {
        const uint64_t *element = words + i * stride;

        status = node->source != NULL
                     ? visit->visit(visit->user, node, (uint64_t *)(uintptr_t)element)
                     : visit_one(visit, node, element);
    }
    return status;
}
