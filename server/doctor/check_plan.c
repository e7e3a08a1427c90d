/* check_plan.c - a stream's files and needs. */
#include <stdio.h>

#include "batch/inputs.h"
#include "content/content.h"
#include "content/vocabulary/vocab.h"
#include "core/memory.h"
#include "core/status.h"
#include "doctor/doctor.h"
#include "session/lane_size.h"

static void
add(uint64_t *sum, uint64_t bytes)
{
    if (__builtin_add_overflow(*sum, bytes, sum))
        *sum = UINT64_MAX;
}

/* Stages and streams that look up the same terms map one table. */
static bool
is_counted(struct doctor *doctor, const struct vocab *vocab)
{
    uint64_t fingerprint = vocab_fingerprint(vocab) ^ (uint64_t)vocab_keys(vocab);

    for (uint32_t i = 0; i < doctor->table_count; i++)
        if (doctor->tables[i] == fingerprint)
            return true;
    doctor->tables = tnd_realloc(doctor->tables, doctor->table_count + 1, sizeof *doctor->tables);
    doctor->tables[doctor->table_count++] = fingerprint;
    return false;
}

static void
add_table(void *context, const char *name, const struct vocab *vocab)
{
    struct doctor *doctor = context;

    (void)name;
    if (!is_counted(doctor, vocab))
        add(&doctor->table_bytes, vocab_bytes(vocab));
}

static void
add_tables(struct doctor *doctor, const struct plan_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->body != NULL)
            add_tables(doctor, node->body);
        if (node->content != NULL && node->content->vocabularies != NULL)
            node->content->vocabularies(node->state, add_table, doctor);
    }
}

static void
add_needs(struct doctor *doctor, const struct plan *plan)
{
    const struct spec_deliver *deliver = &plan->stream->deliver;
    struct plan_memory memory;
    struct plan_lanes lanes;
    uint64_t bytes = 0;

    plan_memory(plan, &memory);
    lane_forecast(plan, &lanes);
    if (lanes.lane_bytes > 0 &&
        __builtin_mul_overflow((uint64_t)lanes.lane_bytes, (uint64_t)plan->replicas, &bytes))
        bytes = UINT64_MAX;
    if (!deliver->memory_memfd)
        add(&doctor->shm_bytes, bytes);
    add(&doctor->memory_bytes, bytes);
    add(&doctor->memory_bytes, memory.window_bytes > 0 ? (uint64_t)memory.window_bytes : 0);
    if (deliver->memory_memfd)
        doctor->huge_pages_memfd |= deliver->huge_pages;
    else
        doctor->huge_pages |= deliver->huge_pages;
    add_tables(doctor, plan->graph);
    if (lanes.lane_bytes < 0)
        doctor_say(doctor, DOCTOR_NOTE, "batches", NULL,
                   "stream %s: their size is known after the first batch, so they are missing from "
                   "the needs told here",
                   plan->stream->name);
}

void
doctor_check_plan(struct doctor *doctor, const struct plan *plan)
{
    const struct source_files_options options = { .root = plan->file->root,
                                                  .cache_folder = doctor->cache };

    add_needs(doctor, plan);
    if (plan_memory_check(plan) != TUNDISH_OK)
        doctor_say(doctor, DOCTOR_FAULT, "batches", NULL, "stream %s: %s", plan->stream->name,
                   tnd_error_text());
    if (inputs_check(plan, &options, NULL) != TUNDISH_OK)
        doctor_say(doctor, DOCTOR_FAULT, "files", NULL, "stream %s: %s", plan->stream->name,
                   tnd_error_text());
    else
        doctor_say(doctor, DOCTOR_OK, "files", NULL, "stream %s: can be read", plan->stream->name);
}
