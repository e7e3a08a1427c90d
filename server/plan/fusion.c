/* fusion.c - which content stages are made as one: pictures decoded and resized. */
#include "content/images/decoded_resized.h"
#include "core/memory.h"
#include "plan/build.h"

static bool
is_content(const struct plan_node *node)
{
    return node->content != NULL && node->order == NULL && node->input_count == 1;
}

/* The only column that a stage writes; -1: there are several. */
static int32_t
written_column(const struct plan_node *node)
{
    int32_t written = -1;

    for (uint32_t i = 0; i < node->schema.count; i++) {
        if (node->schema.columns[i].passed_from >= 0)
            continue;
        if (written >= 0)
            return -1;
        written = (int32_t)i;
    }
    return written;
}

/* Does the stage write the column that its input's stage wrote, in its place and nothing else? */
static bool
is_in_place(const struct plan_node *node, int32_t column)
{
    return written_column(node) == column && node->schema.count == node->inputs[0]->schema.count;
}

static void
fuse(struct plan_node *last, const struct plan_node *resizer, bool to_bytes)
{
    const struct plan_node *decoder = resizer->inputs[0];
    const struct decoded *decoded = decoder->state;
    const struct resized *resized = resizer->state;
    int32_t column = written_column(resizer);

    if (!is_content(decoder) || decoder->content->apply != decoded_apply || column < 0 ||
        written_column(decoder) != column || !is_in_place(resizer, column) ||
        !decoded_resized_fits(decoded, resized, &decoder->schema.columns[column]))
        return;
    last->first = decoder;
    last->decoded_resized = tnd_zalloc(1, sizeof *last->decoded_resized);
    *last->decoded_resized = (struct decoded_resized){
        .decoded = decoded,
        .resized = resized,
        .input = decoded->targets.list[0].input,
        .output = (uint32_t)column,
        .to_bytes = to_bytes,
    };
}

static bool
is_resizer(const struct plan_node *node)
{
    return is_content(node) && node->content->apply == resized_apply_state;
}

static bool
is_cast_to_bytes(const struct plan_node *node)
{
    int32_t column;

    if (!is_content(node) || node->content != content_find("cast") || !is_resizer(node->inputs[0]))
        return false;
    column = written_column(node);
    return column >= 0 && column == written_column(node->inputs[0]) && is_in_place(node, column) &&
           node->schema.columns[column].dtype == TUNDISH_UINT8;
}

void
build_fusion(struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            build_fusion(node->body);
        else if (is_resizer(node))
            fuse(node, node, false);
        else if (is_cast_to_bytes(node))
            fuse(node, node->inputs[0], true);
    }
}
