/* expression_index.c - a[i], a[i:j:k], a[..., i]. */
#include <stdlib.h>

#include "column/dims.h"
#include "content/expression/operand.h"
#include "core/memory.h"
#include "core/plural.h"

/* A start, stop or index: a literal, or a scalar of each element, which becomes an input of the
 * step. */
struct bound {
    bool given;
    int64_t literal;
    int32_t step; /* NO_STEP: the literal */
};

static bool
check_bound(struct checker *checker, const struct tree *tree, struct bound *ret)
{
    struct operand operand;

    *ret = (struct bound){ .step = NO_STEP };
    if (tree->kind == TREE_OMITTED)
        return true;
    operand = operand_tree(checker, tree);
    if (operand.kind == OPERAND_BAD)
        return false;
    ret->given = true;
    if (operand.kind == OPERAND_INTEGER) {
        /* Half the range is beyond any size, and adding a size cannot overflow. */
        ret->literal = operand.integer > INT64_MAX / 2   ? INT64_MAX / 2
                       : operand.integer < INT64_MIN / 2 ? INT64_MIN / 2
                                                         : (int64_t)operand.integer;
        return true;
    }
    if (operand.kind != OPERAND_STEP || operand_type(checker, operand)->spec.rank != 0 ||
        !tnd_dtype_is_integer(operand_dtype(checker, operand))) {
        operand_complain(checker, tree->at,
                         "an index must be an integer, or an integer column that "
                         "is a scalar in each element");
        return false;
    }
    operand = operand_convert(checker, operand, TUNDISH_INT64, tree->at);
    ret->step = operand.step;
    return operand.kind != OPERAND_BAD;
}

/* Check i:j:k. The step must be a literal, because its sign decides the defaults of start and
 * stop. */
static bool
check_slice_item(struct checker *checker, const struct tree *tree, struct slice_item *item,
                 struct bound bounds[2])
{
    struct bound step;

    if (!check_bound(checker, tree->children[0], &bounds[0]) ||
        !check_bound(checker, tree->children[1], &bounds[1]) ||
        !check_bound(checker, tree->children[2], &step))
        return false;
    if (step.given && (step.step != NO_STEP || step.literal == 0)) {
        operand_complain(checker, tree->children[2]->at,
                         "a step is an integer literal that is not 0");
        return false;
    }
    *item = (struct slice_item){
        .has_start = bounds[0].given,
        .has_stop = bounds[1].given,
        .start = bounds[0].literal,
        .stop = bounds[1].literal,
        .step = step.given ? step.literal : 1,
    };
    return true;
}

static bool
is_whole(const struct slice_item *item)
{
    return !item->is_index && !item->has_start && !item->has_stop && item->step == 1;
}

/* Append what a dimension of `size` (or -1) becomes to the shape. False: an index is outside. */
static bool
resolve_shape(struct checker *checker, uint32_t at, const struct slice_item *item,
              const struct bound bounds[2], int64_t size, struct value_type *type)
{
    bool is_known = size >= 0 && bounds[0].step == NO_STEP && bounds[1].step == NO_STEP;
    int64_t first;

    if (!item->is_index) {
        type->spec.shape[type->spec.rank++] = is_whole(item) ? size
                                              : is_known     ? slice_resolve(item, size, &first)
                                                             : -1;
        return true;
    }
    if (is_known && (item->start >= size || item->start < -size)) {
        operand_complain(checker, at, "index %lld is outside: there are %lld",
                         (long long)item->start, (long long)size);
        return false;
    }
    return true;
}

/* The item for dimension `k` of `rank`; -1: none, or the ellipsis. */
static int64_t
item_of(const struct tree *tree, int k, int rank)
{
    int count = (int)tree->child_count - 1, ellipsis = count;

    for (int i = 0; i < count; i++)
        if (tree->children[i + 1]->kind == TREE_ELLIPSIS)
            ellipsis = i;
    if (k < ellipsis)
        return k < count ? k : -1;
    if (ellipsis == count)
        return -1;
    k -= rank - (count - 1 - ellipsis); /* from the first item after the ellipsis */
    return k < 0 ? -1 : ellipsis + 1 + k;
}

static bool
check_item_count(struct checker *checker, const struct tree *tree, int rank)
{
    int ellipses = 0;

    for (uint32_t i = 1; i < tree->child_count; i++)
        ellipses += tree->children[i]->kind == TREE_ELLIPSIS;
    if (ellipses > 1)
        operand_complain(checker, tree->at, "more than one ... in an index");
    else if ((int)tree->child_count - 1 - ellipses > rank)
        operand_complain(checker, tree->at, "%d indices, but there %s %d dimension%s",
                         (int)tree->child_count - 1 - ellipses, rank == 1 ? "is" : "are", rank,
                         TND_PLURAL(rank));
    else
        return true;
    return false;
}

/* Check the item of each dimension, and build the shape. Inputs 2k and 2k + 1 are the bounds of
 * dimension k. */
static bool
check_items(struct checker *checker, const struct tree *tree, struct expression_step *step,
            const struct value_type *base)
{
    for (int k = 0; k < base->spec.rank; k++) {
        int64_t number = item_of(tree, k, base->spec.rank);
        const struct tree *item = number < 0 ? NULL : tree->children[number + 1];
        struct bound bounds[2] = { { .step = NO_STEP }, { .step = NO_STEP } };

        if (item == NULL)
            step->items[k] = (struct slice_item){ .step = 1 };
        else if (item->kind == TREE_SLICE) {
            if (!check_slice_item(checker, item, &step->items[k], bounds))
                return false;
        } else {
            if (!check_bound(checker, item, &bounds[0]))
                return false;
            step->items[k] = (struct slice_item){
                .is_index = true, .has_start = true, .start = bounds[0].literal, .step = 1
            };
        }
        step->more[2 * k] = bounds[0].step;
        step->more[2 * k + 1] = bounds[1].step;
        if (!resolve_shape(checker, item == NULL ? tree->at : item->at, &step->items[k], bounds,
                           base->spec.shape[k], &step->type))
            return false;
        if (k == 0 && base->is_batched && !is_whole(&step->items[k]))
            checker->expression->is_batch_wide = true;
    }
    return true;
}

struct operand
operand_index(struct checker *checker, const struct tree *tree)
{
    struct operand base = operand_default(checker, operand_tree(checker, tree->children[0]));
    struct expression_step step = { .kind = STEP_SLICE, .at = tree->at };
    struct value_type type;

    if (base.kind == OPERAND_BAD)
        return base;
    type = *operand_type(checker, base);
    if (type.spec.kind != TUNDISH_DENSE)
        return operand_complain(checker, tree->at, "a ragged or sparse column cannot be indexed");
    if (type.spec.rank == RANK_UNKNOWN)
        return operand_complain(checker, tree->at,
                                "the number of dimensions is unknown here; use reshape first");
    if (!check_item_count(checker, tree, type.spec.rank))
        return operand_bad();
    step.inputs[0] = base.step;
    step.inputs[1] = step.inputs[2] = NO_STEP;
    step.more_count = 2 * (uint32_t)type.spec.rank;
    step.more = tnd_zalloc(step.more_count + 1, sizeof *step.more);
    step.type = type;
    step.type.spec.rank = 0;
    if (!check_items(checker, tree, &step, &type)) {
        free(step.more);
        return operand_bad();
    }
    step.type.is_batched = type.is_batched && !step.items[0].is_index;
    return operand_emit(checker, &step);
}
