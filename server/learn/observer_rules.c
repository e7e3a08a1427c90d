/* observer_rules.c - which stages a pass may run after a stage that it learns.
 *
 * The output of such a stage is missing in this pass. The pass may go on after it while every
 * element still comes through unchanged and no stage needs a missing column. */
#include "learn/observer_private.h"

#include "order/ops.h"
#include "spec/column_list.h"

static bool
is_missing(const struct observer *observer, const char *name)
{
    for (size_t i = 0; i < observer->missing->count; i++)
        if (strcmp(observer->missing->names[i], name) == 0)
            return true;
    return false;
}

/* Does the node pass on every element exactly once and unchanged? Otherwise a later stage would
 * learn from other rows than in a pass of its own. */
static bool
keeps_elements(const struct plan_node *node)
{
    const struct spec_value *drop;

    if (node->order->selection != ORDER_KEEPS && node->order->selection != ORDER_ONLY_ORDERS)
        return false;
    if (node->stage == NULL || stage_parameter(node->stage->info, "drop_remainder") < 0)
        return true;
    drop = spec_get(node->stage, "drop_remainder");
    return drop == NULL || drop->kind != SPEC_BOOL || !drop->boolean;
}

bool
observer_lacks_sides(const struct observer *observer, const struct spec_stage *stage)
{
    static const char *const parameters[] = { "key", "weights", "labels", "count_weights", NULL };

    for (size_t i = 0; parameters[i] != NULL; i++)
        if (spec_has_value(stage, parameters[i])) {
            const struct spec_value *value = spec_get(stage, parameters[i]);

            /* The key of a hash is not a column but two integers. */
            if (value->kind == SPEC_TEXT && is_missing(observer, value->text))
                return true;
        }
    return false;
}

bool
observer_lets_follow(const struct observer *observer, const struct plan_node *node,
                     const struct stage_config *config)
{
    if (observer->observed_count == 0)
        return true;
    if (config->input->count == 0)
        return false;
    if (node->order != NULL) {
        /* Padding by column names every column, the missing ones too. */
        if (observer->missing->count > 0 && (spec_has_value(node->stage, "padded_shapes") ||
                                             spec_has_value(node->stage, "padding_values")))
            return false;
        return keeps_elements(node);
    }
    return observer->missing->count == 0 ||
           (node->content->takes_missing && !observer_lacks_sides(observer, node->stage));
}

/* Are all columns that the stage names there? A glob only finds what exists, so it is compared with
 * the missing names. */
bool
observer_has_columns(const struct observer *observer, const struct stage_config *config)
{
    const struct spec_value *columns = spec_get(config->stage, "columns");
    uint32_t count = columns == NULL ? 0 : columns->kind == SPEC_LIST ? columns->count : 1;

    if (observer->missing->count == 0)
        return true;
    /* No list means all columns, of which some are missing. */
    if (columns == NULL)
        return false;
    for (uint32_t i = 0; i < count; i++) {
        const struct spec_value *item = columns->kind == SPEC_LIST ? &columns->items[i] : columns;
        struct spec_names names = { 0 };
        struct spec_errors errors = { 0 };
        bool complete = true;

        if (strpbrk(item->text, "*?[") == NULL) {
            if (spec_expand_columns(item, NULL, 0, &errors, &names) == TUNDISH_OK)
                for (size_t n = 0; n < names.count; n++)
                    complete &= !is_missing(observer, names.names[n]);
        } else {
            for (size_t n = 0; n < observer->missing->count; n++)
                complete &= !spec_name_matches(item->text, observer->missing->names[n]);
        }
        spec_names_close(&names);
        spec_errors_close(&errors);
        if (!complete)
            return false;
    }
    return true;
}
