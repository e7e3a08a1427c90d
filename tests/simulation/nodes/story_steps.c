/* story_steps.c - the dealing threads: steps of epochs that end with the first node, with the last,
 * or early. */
#include "story_private.h"
#include "stream.h"

static uint64_t
mixed(uint32_t rank, uint32_t epoch)
{
    return (rank * UINT64_C(0x9e3779b97f4a7c15) + epoch) >> 32;
}

static uint64_t
steps_of(const struct story *story, uint32_t rank, uint32_t epoch)
{
    return story->options->steps +
           (story->options->are_known ? 0 : mixed(rank, epoch) % MORE_STEPS);
}

/* From this step on the node's trainers want the next epoch. */
static uint64_t
wants_cut_from(const struct node_of_story *node)
{
    if (!node->story->options->is_cut || node->epochs > 0)
        return UINT64_MAX;
    return node->story->options->steps / 2 + mixed(node->rank, EPOCHS) % MORE_STEPS;
}

static struct progress *
progress_of(struct story *story, uint32_t epoch, uint64_t number)
{
    return &story->steps[epoch * (story->options->steps + MORE_STEPS) + number];
}

static void
note_progress(struct story *story, uint32_t epoch, uint64_t number)
{
    struct progress *progress = progress_of(story, epoch, number);

    if (progress->nodes++ == 0)
        progress->first_ns = fibers_now_ns();
    progress->last_ns = fibers_now_ns();
}

/* An answer could be given when the one step that it needs had come, or the last of all. */
static void
note_answer(struct node_of_story *node, uint64_t number, int64_t asked_ns, bool is_more)
{
    struct story *story = node->story;
    const struct progress *progress;
    int64_t from_ns = asked_ns;
    double late;

    story->answers++;
    if (fibers_now_ns() == asked_ns)
        return;
    story->waits++;
    if (!is_more)
        return;
    progress = progress_of(story, node->epochs, number);
    if (story->options->ends_with_first && progress->last_ns > from_ns)
        from_ns = progress->last_ns;
    if (!story->options->ends_with_first && progress->first_ns > from_ns)
        from_ns = progress->first_ns;
    late = (double)(fibers_now_ns() - from_ns) / (double)story->options->step_ns;
    if (late > story->result->steps_late)
        story->result->steps_late = late;
}

static tundish_status
deal_step(struct node_of_story *node, uint64_t number, bool *ret_more)
{
    struct story *story = node->story;
    bool has = number < steps_of(story, node->rank, node->epochs);
    int64_t asked_ns = fibers_now_ns();
    tundish_status status;

    if (has)
        note_progress(story, node->epochs, number);
    status = stream_deal(node->stream, number, has, ret_more);
    if (status == TUNDISH_OK)
        note_answer(node, number, asked_ns, *ret_more);
    return status;
}

static tundish_status
deal_epoch(struct node_of_story *node)
{
    uint64_t pause_ns = (uint64_t)node->story->options->step_ns;
    tundish_status status = stream_begin_epoch(node->stream, node->epochs);
    bool is_more = true, is_cut = false;

    for (uint64_t number = 0; status == TUNDISH_OK && is_more; number++) {
        node->ends[node->epochs] = number;
        if (number >= wants_cut_from(node))
            status = stream_cut(node->stream, number, &is_cut);
        if (status == TUNDISH_OK && is_cut)
            return TUNDISH_OK;
        if (status == TUNDISH_OK)
            status = deal_step(node, number, &is_more);
        if (stream_error(node->stream) != NULL)
            status = TUNDISH_E_DATA;
        fibers_sleep((int64_t)(pause_ns / 2 + fibers_draw(pause_ns + 1)));
    }
    return status;
}

tundish_status
steps_deal(struct node_of_story *node)
{
    tundish_status status = TUNDISH_OK;

    while (status == TUNDISH_OK && node->epochs < EPOCHS) {
        status = deal_epoch(node);
        node->epochs += status == TUNDISH_OK;
    }
    return status;
}

/* Where the epoch ends by itself. */
static uint64_t
end_of(const struct story *story, uint32_t epoch)
{
    uint64_t end = steps_of(story, 0, epoch);

    for (uint32_t i = 1; i < story->options->nodes; i++) {
        uint64_t has = steps_of(story, i, epoch);

        end = story->options->ends_with_first == (has < end) ? has : end;
    }
    return end;
}

/* Each epoch ends at the same step for all. */
void
steps_judge_ends(struct story *story)
{
    for (uint32_t epoch = 0; epoch < EPOCHS; epoch++) {
        uint64_t end = end_of(story, epoch);

        if (epoch == 0 && story->options->is_cut) {
            if (story->nodes[0].ends[0] > end)
                complain(story, "epoch 0 goes beyond its end");
            end = story->nodes[0].ends[0];
        }
        for (uint32_t i = 0; i < story->options->nodes; i++)
            if (story->nodes[i].epochs != EPOCHS || story->nodes[i].ends[epoch] != end)
                complain(story, "on node %u epoch %u ends after %llu steps, and not after %llu%s%s",
                         i, epoch, (unsigned long long)story->nodes[i].ends[epoch],
                         (unsigned long long)end, story->nodes[i].text[0] != '\0' ? ": " : "",
                         story->nodes[i].text);
    }
}
