/* learners.c - where a stream learns.
 *
 * A stage that learns may be inside interleave or flat_map. Its input is then wrapped in copies of
 * the stages around it, so that one dataset leads from the files to that stage. */
#include "learn/learners.h"

#include <stdlib.h>
#include <string.h>

#include "content/learned/learned.h"
#include "core/memory.h"
#include "learn/learn_view.h"

/* A stage that runs an inner dataset for each of its elements, and the stages around that one. NULL
 * at the top level. */
struct around {
    const struct around *farther;
    const struct spec_dataset *dataset;
    uint32_t at;        /* of the stage in it */
    uint32_t parameter; /* that holds the inner dataset */
};

struct walk {
    struct learners *learners;
    const struct spec_dataset *
        *united; /* datasets already visited: the pipeline file may mention one twice */
    uint32_t united_count;
};

static void *
take_block(struct learners *learners, size_t count, size_t bytes)
{
    learners->blocks =
        tnd_realloc(learners->blocks, learners->block_count + 1, sizeof *learners->blocks);
    return learners->blocks[learners->block_count++] = tnd_zalloc(count + 1, bytes);
}

/* `inner` with everything around and before it. The last stage of the result is the outermost one
 * around `inner`. */
static struct spec_dataset
wrap(struct learners *learners, const struct around *around, struct spec_dataset inner)
{
    for (; around != NULL; around = around->farther) {
        const struct spec_stage *written = &around->dataset->stages[around->at];
        uint32_t count = written->info->parameter_count;
        struct spec_stage *stages = take_block(learners, around->at + 1, sizeof *stages);
        struct spec_stage *stage = &stages[around->at];
        struct spec_value *value = take_block(learners, 1, sizeof *value);
        struct spec_dataset *body = take_block(learners, 1, sizeof *body);

        memcpy(stages, around->dataset->stages, (around->at + 1) * sizeof *stages);
        stage->arguments = take_block(learners, count, sizeof *stage->arguments);
        memcpy(stage->arguments, written->arguments, count * sizeof *stage->arguments);
        *body = inner;
        *value = *written->arguments[around->parameter];
        value->dataset = body;
        stage->arguments[around->parameter] = value;
        inner = *around->dataset;
        inner.stages = stages;
        inner.stage_count = around->at + 1;
    }
    return inner;
}

static struct spec_dataset
cut(const struct spec_dataset *dataset, uint32_t count)
{
    struct spec_dataset beginning = *dataset;

    beginning.stage_count = count;
    return beginning;
}

/* Does the value refer to a column of the outer element, as $name or within a text? */
static bool
names_outer(const struct spec_value *value)
{
    if (value == NULL)
        return false;
    if (value->kind == SPEC_VARIABLE ||
        (value->kind == SPEC_TEXT && strchr(value->text, '$') != NULL))
        return true;
    for (uint32_t i = 0; (value->kind == SPEC_LIST || value->kind == SPEC_MAP) && i < value->count;
         i++)
        if (names_outer(&value->items[i]))
            return true;
    return false;
}

/* May the stage be moved out of the inner dataset? It may if it sees one element at a time and no
 * outer column: several can then learn in one pass. */
static bool
comes_out(const struct spec_stage *stage)
{
    if (stage->info->kind != STAGE_CONTENT)
        return false;
    for (uint32_t k = 0; k < stage->info->parameter_count; k++)
        if (names_outer(stage->arguments[k]))
            return false;
    return true;
}

/* Make a run of stages [first, end): those of them that learn are learned together. */
static void
add_run(struct learners *learners, const struct spec_dataset *dataset, const struct around *around,
        uint32_t first, uint32_t end)
{
    struct learner_run *run;
    uint32_t index = learners->run_count++;

    learners->runs = tnd_realloc(learners->runs, learners->run_count, sizeof *learners->runs);
    run = &learners->runs[index];
    *run = (struct learner_run){ .dataset = cut(dataset, end), .first = first };
    /* The stages of the run come after the outermost stage instead of inside it. */
    if (around != NULL) {
        struct spec_dataset before = wrap(learners, around, cut(dataset, first));
        struct spec_stage *stages =
            take_block(learners, (size_t)before.stage_count + end - first, sizeof *stages);

        memcpy(stages, before.stages, before.stage_count * sizeof *stages);
        memcpy(stages + before.stage_count, dataset->stages + first,
               (end - first) * sizeof *stages);
        run->first = before.stage_count;
        run->dataset = before;
        run->dataset.stages = stages;
        run->dataset.stage_count += end - first;
    }
    for (uint32_t i = first; i < end; i++) {
        if (!learned_is_needed(&dataset->stages[i]))
            continue;
        learners->list = tnd_realloc(learners->list, learners->count + 1, sizeof *learners->list);
        learners->list[learners->count++] = (struct learner){
            .stage = &dataset->stages[i],
            .up_to = wrap(learners, around, cut(dataset, i + 1)),
            .run = index,
            .at = run->first + i - first,
        };
    }
}

static void walk_dataset(struct walk *walk, const struct spec_dataset *dataset,
                         const struct around *around);

/* A dataset that is joined with others, by zip or concatenate, learns by itself and once. */
static void
walk_united(struct walk *walk, const struct spec_dataset *dataset)
{
    for (uint32_t i = 0; i < walk->united_count; i++)
        if (walk->united[i] == dataset)
            return;
    walk->united =
        tnd_realloc(walk->united, walk->united_count + 1, sizeof(const struct spec_dataset *));
    walk->united[walk->united_count++] = dataset;
    walk_dataset(walk, dataset, NULL);
}

static void
walk_inside(struct walk *walk, const struct spec_dataset *dataset, uint32_t at,
            const struct around *farther)
{
    const struct spec_stage *stage = &dataset->stages[at];

    for (uint32_t k = 0; k < stage->info->parameter_count; k++) {
        const struct around around = { farther, dataset, at, k };
        const struct spec_value *value = stage->arguments[k];
        /* `dataset` runs for each element; datasets in other parameters stand beside the stream. */
        bool runs = strcmp(stage->info->parameters[k].name, "dataset") == 0;

        if (value == NULL)
            continue;
        if (value->kind == SPEC_DATASET && runs)
            walk_dataset(walk, value->dataset, &around);
        else if (value->kind == SPEC_DATASET)
            walk_united(walk, value->dataset);
        for (uint32_t i = 0; value->kind == SPEC_LIST && i < value->count; i++)
            if (value->items[i].kind == SPEC_DATASET)
                walk_united(walk, value->items[i].dataset);
    }
}

static void
walk_dataset(struct walk *walk, const struct spec_dataset *dataset, const struct around *around)
{
    uint32_t count = dataset->stage_count, first = count;

    for (uint32_t i = 0; i < count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];
        bool inside = learn_view_learns_inside(stage);

        /* End the open run before a stage that needs the statistics, or that cannot be moved
         * out. */
        if (first < count && (inside || (around != NULL && !comes_out(stage)))) {
            add_run(walk->learners, dataset, around, first, i);
            first = count;
        }
        if (inside)
            walk_inside(walk, dataset, i, around);
        if (first == count && learned_is_needed(stage))
            first = i;
    }
    if (first < count)
        add_run(walk->learners, dataset, around, first, count);
}

void
learners_open(const struct spec_dataset *dataset, struct learners *ret_learners)
{
    struct walk walk = { .learners = ret_learners };

    *ret_learners = (struct learners){ 0 };
    walk_dataset(&walk, dataset, NULL);
    free(walk.united);
}

void
learners_close(struct learners *learners)
{
    for (size_t i = 0; i < learners->block_count; i++)
        free(learners->blocks[i]);
    free(learners->blocks);
    free(learners->list);
    free(learners->runs);
    *learners = (struct learners){ 0 };
}
