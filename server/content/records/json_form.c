/* json_form.c - where the next value belongs follows from how many came before it. */
#include "content/records/json_form.h"

/* Name the fault by the outermost level at which it shows. */
static const char *
odd_form(const struct example_feature *feature, const struct json_levels *levels, uint32_t level)
{
    if (levels->has_objects[level])
        return "not every object of the list has it, and a place cannot stay empty";
    return feature->is_list && feature->rank == 0
               ? "a list within a list; its shape allows values in one list only"
               : "the form of its lists does not match its shape";
}

static uint32_t
full_levels(const struct example_feature *feature)
{
    return feature->rank + (feature->is_list ? 1u : 0u);
}

/* The length of a level's lists, or -1: any. */
static int64_t
level_size(const struct example_feature *feature, uint32_t level)
{
    if (!feature->is_list)
        return feature->shape[level];
    return level == 0 ? -1 : feature->shape[level - 1];
}

static const char *
takes_nested(const struct example_feature *feature, const struct json_met *met,
             const struct json_levels *levels)
{
    int64_t rest = met->count;

    if (levels->count != full_levels(feature))
        return odd_form(feature, levels, levels->count - 1);
    for (uint32_t i = levels->count; i-- > 1;) {
        int64_t size = level_size(feature, i);

        if (size == 0 || levels->index[i] != rest % size)
            return odd_form(feature, levels, i);
        rest /= size;
    }
    return levels->index[0] == rest ? NULL : odd_form(feature, levels, 0);
}

const char *
json_form_takes(const struct example_feature *feature, struct json_met *met,
                const struct json_levels *levels)
{
    if (met->count == 0)
        met->levels = levels->count;
    else if (met->levels != levels->count)
        return odd_form(feature, levels, 0);
    if (levels->count == 0)
        return NULL;
    if (levels->count > 1)
        return takes_nested(feature, met, levels);
    return levels->index[0] == met->count ? NULL : odd_form(feature, levels, 0);
}

const char *
json_form_ends(const struct example_feature *feature, const struct json_met *met,
               const struct json_levels *levels, int64_t length)
{
    uint32_t level = levels->count - 1;
    uint32_t full = full_levels(feature);
    bool is_nested = met->count > 0 ? met->levels > 1 : levels->count > 1;
    int64_t items = met->count;

    if (!is_nested && (full != 1 || feature->is_list))
        /* One list of all values; `[]` of a shape without values has that shape, too. */
        return length == items || (full > 0 && length == level_size(feature, 0))
                   ? NULL
                   : odd_form(feature, levels, 0);
    if (level >= full)
        return odd_form(feature, levels, level);
    if (level_size(feature, level) >= 0)
        return length == level_size(feature, level) ? NULL : odd_form(feature, levels, level);
    for (uint32_t i = 1; i < full; i++)
        items = level_size(feature, i) == 0 ? 0 : items / level_size(feature, i);
    return length == items ? NULL : odd_form(feature, levels, level);
}
