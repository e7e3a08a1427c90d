/* learn_view.c - a dataset as it is learned from: every element once, in file order, without random
 * changes. Statistics then depend only on the data. */
#include "learn/learn_view.h"

#include <stdlib.h>

#include "content/learned/learned.h"
#include "core/memory.h"
#include "order/ops.h"

static const struct spec_value no = { .kind = SPEC_BOOL, .text = "false", .text_bytes = 5 };

/* Memory that lives as long as the view: copies of stages and values share it with the originals.
 */
static void *
take_block(struct learn_view *view, size_t count, size_t bytes)
{
    view->blocks = tnd_realloc(view->blocks, view->block_count + 1, sizeof *view->blocks);
    return view->blocks[view->block_count++] = tnd_zalloc(count + 1, bytes);
}

/* Leave out stages that only reorder, and shards by worker: num_shards as text stands for the
 * number of workers, and one worker learns from all rows. */
static bool
is_left_out(const struct spec_stage *stage)
{
    const struct order_ops *order = order_find(stage->info->name);

    return order != NULL && (order->selection == ORDER_ONLY_ORDERS ||
                             (stage_parameter(stage->info, "num_shards") >= 0 &&
                              spec_get(stage, "num_shards")->kind == SPEC_TEXT));
}

static struct spec_dataset view_dataset(struct learn_view *view, const struct spec_dataset *dataset,
                                        uint32_t *written_at);

/* The value with each dataset in it replaced by its view; the value itself if it holds none. */
static const struct spec_value *
view_value(struct learn_view *view, const struct spec_value *value)
{
    struct spec_value *copy;

    if (value == NULL || (value->kind != SPEC_DATASET && value->kind != SPEC_LIST))
        return value;
    if (value->kind == SPEC_LIST && (value->count == 0 || value->items[0].kind != SPEC_DATASET))
        return value;
    copy = take_block(view, 1, sizeof *copy);
    *copy = *value;
    if (value->kind == SPEC_DATASET) {
        struct spec_dataset *dataset = take_block(view, 1, sizeof *dataset);

        *dataset = view_dataset(view, value->dataset, NULL);
        copy->dataset = dataset;
    } else {
        struct spec_value *items = take_block(view, value->count, sizeof *items);

        for (uint32_t i = 0; i < value->count; i++)
            items[i] = *view_value(view, &value->items[i]);
        copy->items = items;
    }
    return copy;
}

static void
set_false(const struct spec_stage *stage, const char *parameter)
{
    int index = stage_parameter(stage->info, parameter);

    if (index >= 0)
        stage->arguments[index] = &no;
}

/* written_at, if not NULL, gets the index in `dataset` of each stage of the view. */
static struct spec_dataset
view_dataset(struct learn_view *view, const struct spec_dataset *dataset, uint32_t *written_at)
{
    struct spec_stage *stages = take_block(view, dataset->stage_count, sizeof *stages);
    struct spec_dataset copy = *dataset;

    copy.stages = stages;
    copy.stage_count = 0;
    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];
        struct spec_stage *to = &stages[copy.stage_count];
        uint32_t count = stage->info->parameter_count;

        if (is_left_out(stage))
            continue;
        *to = *stage;
        to->arguments = take_block(view, count, sizeof *to->arguments);
        for (uint32_t k = 0; k < count; k++)
            to->arguments[k] = view_value(view, stage->arguments[k]);
        /* Random augmentation and a source's shuffle would give every run other statistics. */
        set_false(to, "training");
        if (stage->info->kind == STAGE_SOURCE)
            set_false(to, "shuffle");
        if (written_at != NULL)
            written_at[copy.stage_count] = i;
        copy.stage_count++;
    }
    return copy;
}

void
learn_view_open(struct learn_view *view, const struct spec_dataset *dataset)
{
    *view = (struct learn_view){ 0 };
    view->written_at = take_block(view, dataset->stage_count, sizeof *view->written_at);
    view->dataset = view_dataset(view, dataset, view->written_at);
}

void
learn_view_close(struct learn_view *view)
{
    for (size_t i = 0; i < view->block_count; i++)
        free(view->blocks[i]);
    free(view->blocks);
    *view = (struct learn_view){ 0 };
}

static bool
learns(const struct spec_dataset *dataset)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++)
        if (learned_is_needed(&dataset->stages[i]) || learn_view_learns_inside(&dataset->stages[i]))
            return true;
    return false;
}

static bool
value_learns(const struct spec_value *value)
{
    if (value == NULL)
        return false;
    if (value->kind == SPEC_DATASET)
        return learns(value->dataset);
    for (uint32_t i = 0; value->kind == SPEC_LIST && i < value->count; i++)
        if (value_learns(&value->items[i]))
            return true;
    return false;
}

bool
learn_view_learns_inside(const struct spec_stage *stage)
{
    for (uint32_t k = 0; k < stage->info->parameter_count; k++)
        if (value_learns(stage->arguments[k]))
            return true;
    return false;
}
