/* origin_rows.c - the rows of an element, and each as a list of what it was made of. */
#include "batch/origin_private.h"

#include <string.h>

#include "core/must.h"
#include "order/run.h"

/* A row, with the marks of the batch that it is of. */
static struct origin *
row_of(struct origin_walk *walk, const struct origin *batch, struct origin *row, size_t index,
       size_t count)
{
    struct origin *marked;

    if (batch->marks == NULL)
        return row;
    marked = origin_new(walk, ORIGIN_BESIDE, 1);
    marked->parts[0] = row;
    for (const struct origin_marked *next = batch->marks; next != NULL; next = next->next) {
        struct origin_marked *one = scratch_alloc(walk->origins->scratch, sizeof *one);

        *one = (struct origin_marked){ next->mark, marked->marks };
        /* The outermost of several levels counts: the stage was given all of it. */
        one->mark.row = (int64_t)index;
        one->mark.rows = (int64_t)count;
        marked->marks = one;
    }
    return marked;
}

/* The rows of all parts side by side, which have as many. */
static bool
rows_beside(struct origin_walk *walk, const struct origin *origin, size_t part_count,
            struct origin_rows *ret_rows)
{
    struct origin_rows *each = scratch_array(walk->origins->scratch, part_count + 1, sizeof *each);

    for (size_t p = 0; p < part_count; p++)
        if (!origin_rows_told(walk, origin->parts[p], &each[p]) || each[p].count != each[0].count)
            return false;
    ret_rows->count = part_count > 0 ? each[0].count : 0;
    ret_rows->list =
        scratch_array(walk->origins->scratch, ret_rows->count + 1, sizeof *ret_rows->list);
    for (size_t i = 0; i < ret_rows->count; i++) {
        struct origin *row = origin_new(walk, origin->kind, origin->count);

        for (size_t p = 0; p < origin->count; p++)
            row->parts[p] = p < part_count ? each[p].list[i] : origin->parts[p];
        ret_rows->list[i] = row;
    }
    return true;
}

bool
origin_rows_told(struct origin_walk *walk, const struct origin *origin,
                 struct origin_rows *ret_rows)
{
    bool told = false;

    switch (origin->kind) {
    case ORIGIN_SOURCE:
    case ORIGIN_PIECE:
        return false;
    case ORIGIN_BATCH:
        ret_rows->count = origin->count;
        ret_rows->list =
            scratch_array(walk->origins->scratch, origin->count + 1, sizeof *ret_rows->list);
        if (origin->count > 0)
            memcpy(ret_rows->list, origin->parts, origin->count * sizeof *ret_rows->list);
        told = true;
        break;
    case ORIGIN_BESIDE:
        told = rows_beside(walk, origin, origin->count, ret_rows);
        break;
    case ORIGIN_INSIDE:
        told = rows_beside(walk, origin, 1, ret_rows);
        break;
    }
    for (size_t i = 0; told && i < ret_rows->count; i++)
        ret_rows->list[i] = row_of(walk, origin, ret_rows->list[i], i, ret_rows->count);
    return told;
}

/* Dimension 0 of the longest column. */
static int64_t
rows_of_frame(const struct frame *frame)
{
    int64_t rows = -1;

    if (frame->count == 0)
        return 0;
    for (uint32_t i = 0; i < frame->column_count; i++) {
        const struct column *column = &frame->columns[i];
        int64_t here;

        if (column->level_count == 0)
            continue;
        here = column->dense_shape != NULL ? column->dense_shape[0]
                                           : level_length(&column->levels[0], 0);
        if (here > rows)
            rows = here;
    }
    return rows;
}

int64_t
origin_content_rows(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words)
{
    struct evaluation *evaluation = walk->evaluation;
    struct evaluate_request request = { .words = words, .stride = node->width, .count = 1 };
    struct frame frame;

    if (walk->functions > 0)
        return -1;
    scratch_reset(evaluation->scratch);
    return evaluate(evaluation, node, &request, &frame) == TUNDISH_OK ? rows_of_frame(&frame) : -1;
}

/* Does a stage after the batch cut content by number? Its elements have more rows than they show.
 */
static bool
is_cut(const struct plan_node *node)
{
    for (;; node = node->inputs[0]) {
        if (node->order != NULL && node->cuts_content)
            return true;
        if (node->body != NULL)
            return is_cut(node->body->root);
        if (node->source != NULL || (node->order != NULL && node->order->form == ORDER_BATCHES))
            return false;
        for (uint32_t i = 1; i < node->input_count; i++)
            if (is_cut(node->inputs[i]))
                return true;
    }
}

/* An element of a node, of whose rows some are left out. */
struct leaving_out {
    struct origin_walk *walk;
    const struct plan_node *node;
    const uint64_t *words;
    struct origin_rows *rows;
    size_t left; /* rows that are settled and stay */
};

/* How many of the first `count` rows stay: whether a row does may depend on those before it. */
static size_t
count_left(const struct leaving_out *leaving, size_t count)
{
    const struct plan_node *node = leaving->node;
    uint64_t first[PLAN_WIDTH_MAX];
    int64_t left;

    must_in_debug(count <= leaving->rows->count);
    run_words_slice(leaving->words, node->width, node->run_words, 0, count, first);
    left = origin_content_rows(leaving->walk, node, first);
    run_words_release(first, 1, node->width, node->run_words);
    return left < 0 ? count : (size_t)left;
}

/* Settle rows [begin, end), of which `stay` stay. */
static void
settle(struct leaving_out *leaving, size_t begin, size_t end, size_t stay)
{
    struct origin **list = leaving->rows->list;
    size_t middle = begin + (end - begin) / 2, left = leaving->left, before;

    must_in_debug(begin < end && end <= leaving->rows->count);
    must_in_debug(left <= begin);
    if (stay == end - begin)
        memmove(list + left, list + begin, stay * sizeof *list);
    if (stay == end - begin || stay == 0 || end - begin == 1) {
        leaving->left += stay == end - begin ? stay : 0;
        return;
    }
    before = count_left(leaving, middle);
    before = before > left ? before - left : 0;
    before = before < stay ? before : stay;
    settle(leaving, begin, middle, before);
    settle(leaving, middle, end, stay - before);
}

/* Where bad rows are left out (on_error: skip), the batch has fewer rows than it has references. */
static void
leave_out_bad(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words,
              struct origin_rows *rows)
{
    struct leaving_out leaving = { walk, node, words, rows, 0 };
    uint64_t run_rows = 0;
    int64_t made;

    if (!walk->evaluation->skip_bad || rows->count == 0 || is_cut(node) ||
        !run_words_rows(words, node->width, node->run_words, &run_rows) || run_rows != rows->count)
        return;
    made = origin_content_rows(walk, node, words);
    if (made < 0 || made >= (int64_t)rows->count)
        return;
    settle(&leaving, 0, rows->count, (size_t)made);
    rows->count = leaving.left;
}

void
origin_rows_of(struct origin_walk *walk, const struct plan_node *node, const uint64_t *words,
               const struct origin *origin, struct origin_rows *ret_rows)
{
    int64_t count;

    if (origin_rows_told(walk, origin, ret_rows)) {
        leave_out_bad(walk, node, words, ret_rows);
        return;
    }
    count = origin_content_rows(walk, node, words);
    ret_rows->count = count < 0 ? 0 : (size_t)count;
    ret_rows->list =
        scratch_array(walk->origins->scratch, ret_rows->count + 1, sizeof *ret_rows->list);
    for (size_t i = 0; i < ret_rows->count; i++) {
        struct origin *piece = origin_new(walk, ORIGIN_PIECE, 1);

        piece->parts[0] = (struct origin *)(uintptr_t)origin;
        piece->row = (int64_t)i;
        ret_rows->list[i] = piece;
    }
}

struct origin *
origin_cut(struct origin_walk *walk, const struct origin_rows *rows, uint64_t begin, uint64_t end)
{
    uint64_t first = begin < rows->count ? begin : rows->count;
    uint64_t last = end < rows->count ? end : rows->count;
    struct origin *origin =
        origin_new(walk, ORIGIN_BATCH, (size_t)(last > first ? last - first : 0));

    if (origin->count > 0)
        memcpy(origin->parts, rows->list + first, origin->count * sizeof *origin->parts);
    return origin;
}

/* Counts first, then fills. */
struct listing {
    struct origin_row *row;
    bool fills;
};

static void
list_origin(const struct listing *listing, const struct origin *origin, int64_t row, bool is_outer)
{
    struct origin_row *to = listing->row;

    if (origin->kind == ORIGIN_PIECE && origin->row >= 0)
        row = origin->row;
    if (origin->kind == ORIGIN_SOURCE) {
        if (listing->fills)
            to->sources[to->source_count] =
                (struct origin_source){ origin->node, origin->words,
                                        origin->row >= 0 ? origin->row : row, is_outer };
        to->source_count++;
    }
    for (size_t p = 0; p < origin->count; p++)
        list_origin(listing, origin->parts[p], row,
                    is_outer || (origin->kind == ORIGIN_INSIDE && p > 0));
    for (const struct origin_marked *next = origin->marks; next != NULL; next = next->next) {
        if (listing->fills)
            to->marks[to->mark_count] = next->mark;
        to->mark_count++;
    }
}

static void
list_row(struct scratch *scratch, const struct origin *origin, struct origin_row *row)
{
    struct listing listing = { .row = row };

    *row = (struct origin_row){ 0 };
    list_origin(&listing, origin, -1, false);
    row->sources = scratch_array(scratch, row->source_count + 1, sizeof *row->sources);
    row->marks = scratch_array(scratch, row->mark_count + 1, sizeof *row->marks);
    row->source_count = row->mark_count = 0;
    listing.fills = true;
    list_origin(&listing, origin, -1, false);
}

void
origins_open(struct evaluation *evaluation, const struct plan_node *root, const uint64_t *words,
             struct origins *ret_origins)
{
    struct origins *origins = ret_origins;
    struct origin_walk walk = { .origins = origins, .evaluation = evaluation };
    struct origin *origin;
    struct origin_rows rows = { .list = &origin, .count = 1 };

    *origins = (struct origins){ .scratch = scratch_open(), .is_batch = root->depth > 0 };
    origin = origin_of(&walk, root, words);
    if (origins->is_batch)
        origin_rows_of(&walk, root, words, origin, &rows);
    else if (evaluation->skip_bad && origin_content_rows(&walk, root, words) == 0)
        rows.count = 0;
    origins->rows = scratch_array(origins->scratch, rows.count + 1, sizeof *origins->rows);
    origins->row_count = rows.count;
    for (size_t i = 0; i < rows.count; i++)
        list_row(origins->scratch, rows.list[i], &origins->rows[i]);
    must_in_debug(walk.functions == 0);
}

void
origins_close(struct origins *origins)
{
    scratch_close(origins->scratch);
    *origins = (struct origins){ 0 };
}
