/* check_dataset.c - lists of stages, by name or written out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "spec/check.h"
#include "spec/describe.h"

static const struct spec_dataset *check_stages(struct check *check, const struct spec_value *list);

struct named_dataset *
check_find_dataset(struct check *check, const char *name)
{
    for (size_t i = 0; i < check->named_count; i++)
        if (strcmp(check->named[i].key->text, name) == 0)
            return &check->named[i];
    return NULL;
}

static void
refuse_name(struct check *check, const struct spec_value *name)
{
    const char **words = spec_memory_take(check->memory, check->named_count, sizeof *words);
    const char *nearest;

    for (size_t i = 0; i < check->named_count; i++)
        words[i] = check->named[i].key->text;
    nearest = spec_nearest(name->text, words, check->named_count);
    if (nearest != NULL)
        spec_complain(check->errors, name->line, name->column,
                      "there is no dataset \"%s\"; did you mean %s?", name->text, nearest);
    /* `dataset: range` is a common mistake for `dataset: [range]`. */
    else if (stage_find(name->text) != NULL)
        spec_complain(check->errors, name->line, name->column,
                      "there is no dataset \"%s\"; for a list of this one stage write [%s]",
                      name->text, name->text);
    else
        spec_complain(check->errors, name->line, name->column,
                      "there is no dataset \"%s\"; expected a name from `datasets:` or a list of "
                      "stages",
                      name->text);
}

/* Print the names of the datasets being looked at, from `first` down to the innermost. */
static void
print_chain(FILE *out, const struct named_dataset *first, const struct named_dataset *last)
{
    if (last != first && last->mentioned_by != NULL)
        print_chain(out, first, last->mentioned_by);
    fprintf(out, "%s -> ", last->key->text);
}

/* "a -> b -> a", or "" outside of `datasets:`. The caller frees it. */
static char *
chain_from(const struct check *check, const struct named_dataset *first, const char *last)
{
    char *chain;
    size_t chain_bytes;
    FILE *out = open_memstream(&chain, &chain_bytes);

    tnd_must_have(out != NULL);
    if (check->open != NULL)
        print_chain(out, first, check->open);
    fputs(last, out);
    tnd_must_have(fclose(out) == 0);
    return chain;
}

static void
refuse_circle(struct check *check, const struct named_dataset *named,
              const struct spec_value *mention)
{
    char *chain = chain_from(check, named, named->key->text);

    spec_complain(check->errors, mention->line, mention->column,
                  "the dataset %s contains itself: %s", named->key->text, chain);
    free(chain);
}

static void
refuse_depth(struct check *check, uint32_t line, uint32_t column)
{
    char *chain = chain_from(check, NULL, "...");

    spec_complain(check->errors, line, column, "datasets are nested more than %d deep: %s",
                  DATASET_DEPTH_MAX, chain);
    free(chain);
}

static const struct spec_dataset *
look_at_named(struct check *check, struct named_dataset *named)
{
    const struct named_dataset *outside = check->open;
    const struct spec_dataset *stages;

    /* A mention of this dataset below is a circle as long as it is open. */
    named->is_open = true;
    named->mentioned_by = outside;
    check->open = named;
    stages = check_stages(check, named->value);
    check->open = outside;
    named->is_open = false;
    /* A dataset is checked once, however often it is named, or a small file could take exponential
     * time. */
    named->dataset = spec_memory_take(check->memory, 1, sizeof *named->dataset);
    *named->dataset = *stages;
    named->dataset->name = named->key->text;
    return named->dataset;
}

static const struct spec_dataset *
dataset_by_name(struct check *check, const struct spec_value *mention)
{
    struct named_dataset *named = check_find_dataset(check, mention->text);

    if (named == NULL) {
        refuse_name(check, mention);
        return NULL;
    }
    if (named->is_open) {
        refuse_circle(check, named, mention);
        return NULL;
    }
    return named->dataset != NULL ? named->dataset : look_at_named(check, named);
}

const struct spec_dataset *
check_dataset(struct check *check, const struct spec_value *value)
{
    const struct spec_dataset *dataset = NULL;
    char found[80];

    if (check->nesting >= DATASET_DEPTH_MAX) {
        refuse_depth(check, value->line, value->column);
        return NULL;
    }
    check->nesting++;
    if (value->kind == SPEC_LIST)
        /* A broken value has been complained about already. */
        dataset = check_stages(check, value);
    else if (value->kind == SPEC_TEXT)
        dataset = dataset_by_name(check, value);
    else if (value->kind != SPEC_BROKEN)
        spec_complain(check->errors, value->line, value->column,
                      "expected the name of a dataset or a list of stages, not %s",
                      describe_value(value, found, sizeof found));
    check->nesting--;
    return dataset;
}

static void
check_order_of_stages(struct check *check, const struct spec_stage *stages, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        const struct spec_stage *stage = &stages[i];

        if (i == 0 && !stage->info->stands_first)
            spec_complain(check->errors, stage->line, stage->column,
                          "%s cannot be the first stage: a dataset begins with a source (range, "
                          "list_files, tfrecord, ...) or with zip, concatenate, "
                          "sample_from_datasets or choose_from_datasets",
                          stage->info->name);
        else if (i > 0 && stage->info->stands_first)
            spec_complain(check->errors, stage->line, stage->column,
                          "%s can only be the first stage; %s", stage->info->name,
                          stage->info->kind == STAGE_SOURCE
                              ? "inside interleave or flat_map it reads the outer element"
                              : "move the stages before it to `datasets`");
        if (stage->info->stands_alone && (count > 1 || check->nesting > 1))
            spec_complain(check->errors, stage->line, stage->column,
                          "%s must be the only stage of a stream", stage->info->name);
    }
}

/* Measure how deep datasets are nested, and how many stages there are if every mention is built
 * separately. A small file can name datasets that grow exponentially, so both are bounded. */
static void
measure(struct check *check, struct spec_dataset *dataset)
{
    uint64_t total = dataset->stage_count;
    uint32_t depth = 0;
    bool inner_is_too_large = false; /* and has been complained about */

    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];

        for (uint32_t j = 0; j < stage->info->parameter_count; j++) {
            const struct spec_value *value = stage->arguments[j];
            const struct spec_value *items = value;
            uint32_t count = 1;

            if (value != NULL && value->kind == SPEC_LIST) {
                items = value->items;
                count = value->count;
            }
            for (uint32_t k = 0; value != NULL && k < count; k++) {
                if (items[k].kind != SPEC_DATASET)
                    continue;
                total += items[k].dataset->stage_total;
                inner_is_too_large |= items[k].dataset->stage_total > STAGE_TOTAL_MAX;
                depth = items[k].dataset->depth > depth ? items[k].dataset->depth : depth;
            }
        }
    }
    dataset->depth = depth + 1;
    /* Saturated, so that sums of sums cannot overflow. */
    dataset->stage_total = total > STAGE_TOTAL_MAX ? STAGE_TOTAL_MAX + 1 : (uint32_t)total;
    /* Only the first level that is too deep is reported; those around it are deeper still. */
    if (dataset->depth == DATASET_DEPTH_MAX + 1)
        refuse_depth(check, dataset->line, dataset->column);
    if (total > STAGE_TOTAL_MAX && !inner_is_too_large)
        spec_complain(check->errors, dataset->line, dataset->column,
                      "with all datasets that it refers to, counted at each reference, this "
                      "dataset has more than %d stages",
                      STAGE_TOTAL_MAX);
}

static const struct spec_dataset *
check_stages(struct check *check, const struct spec_value *list)
{
    struct spec_dataset *dataset = spec_memory_take(check->memory, 1, sizeof *dataset);
    struct spec_stage *stages;
    uint32_t count = 0;
    bool all_known = true;
    char found[80];

    dataset->line = list->line;
    dataset->column = list->column;
    if (list->kind != SPEC_LIST && list->kind != SPEC_BROKEN)
        spec_complain(check->errors, list->line, list->column, "expected a list of stages, not %s",
                      describe_value(list, found, sizeof found));
    else if (list->kind == SPEC_LIST && list->count == 0)
        spec_complain(check->errors, list->line, list->column,
                      "expected at least one stage; the first is a source (range, list_files, "
                      "tfrecord, ...)");
    if (list->kind != SPEC_LIST)
        return dataset;
    stages = spec_memory_take(check->memory, list->count, sizeof *stages);
    for (uint32_t i = 0; i < list->count; i++) {
        bool known = check_stage(check, &list->items[i], &stages[count]);

        count += known;
        all_known = all_known && known;
    }
    /* An unknown stage may well be the source, so a complaint about the order would only
     * mislead. */
    if (all_known)
        check_order_of_stages(check, stages, count);
    dataset->stage_count = count;
    dataset->stages = stages;
    measure(check, dataset);
    return dataset;
}

void
check_named_datasets(struct check *check, const struct spec_value *datasets)
{
    check->named = spec_memory_take(check->memory, datasets->count, sizeof *check->named);
    for (uint32_t i = 0; i < datasets->count; i++) {
        if (datasets->keys[i].kind != SPEC_TEXT)
            continue;
        check->named[check->named_count++] =
            (struct named_dataset){ .key = &datasets->keys[i], .value = &datasets->items[i] };
    }
    /* Datasets that no stream names are checked too: an error in one should not wait until it is
     * used. */
    for (size_t i = 0; i < check->named_count; i++) {
        check->nesting = 2; /* as deep as any mention is */
        if (check->named[i].dataset == NULL)
            look_at_named(check, &check->named[i]);
        check->nesting = 0;
    }
}
