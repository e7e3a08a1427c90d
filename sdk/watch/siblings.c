/* siblings.c - time for a row, node by node. */
#include "watch/siblings.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A node is slow that takes SLOW times as long as the others do. */
static const double SLOW = 1.5;

/* Less work than this share of one thread's time says nothing. */
static const double ENOUGH_WORK = 0.01;

/* Streams that are compared: nodes of a job serve the same few. */
enum { STREAMS_MAX = 8 };

/* A node's time for a row; 0: it is not known. */
struct pace {
    uint32_t sibling;
    double row_ns;
};

static bool
is_of_stream(const struct watch_set *set, const char *stream)
{
    char name[TND_STATS_VALUE_BYTES];

    watch_label(set, "stream", name, sizeof name);
    return strcmp(name, stream) == 0;
}

/* The time of all threads for a row of the stream. Their waiting for other nodes counts as the
 * others'. */
static double
row_ns(const struct watch_sibling *sibling, const char *stream)
{
    double passed_ns = (double)(sibling->now->taken_ns - sibling->before->taken_ns);
    const struct watch_set *set = NULL, *link = watch_next(sibling->now, "link", NULL);
    double work_ns = 0, rows = 0;

    while ((set = watch_next(sibling->now, "thread", set)) != NULL)
        if (is_of_stream(set, stream))
            work_ns += (double)watch_growth(sibling->before, set, "busy");
    while ((set = watch_next(sibling->now, "stream", set)) != NULL)
        if (is_of_stream(set, stream)) {
            work_ns += (double)watch_growth(sibling->before, set, "deal_busy");
            rows += (double)watch_growth(sibling->before, set, "rows");
        }
    if (link != NULL)
        work_ns -= (double)watch_growth(sibling->before, link, "wait");
    return rows > 0 && work_ns > ENOUGH_WORK * passed_ns ? work_ns / rows : 0;
}

static int
by_pace(const void *one, const void *other)
{
    const struct pace *a = one, *b = other;

    return (a->row_ns > b->row_ns) - (a->row_ns < b->row_ns);
}

/* "...; for each row this node works 3.2 times as long as the others do (median)". Where the
 * machine is short of something, or waits for its files, that is the reason, and this only says
 * that others do not; a stage is the same on all nodes. */
static void
say_slow(const struct watch_sibling *sibling, uint32_t others)
{
    static const char advice[] =
        "The other nodes do the same work faster, so the pipeline is not the reason. Look at this "
        "machine: its clock (heat, a power limit), its memory, other programs on it. Or take it "
        "out "
        "of the job.";
    struct watch_diagnosis *diagnosis = sibling->diagnosis;
    bool waits_for_files = diagnosis->cause == WATCH_CAUSE_STORE || diagnosis->file_share >= 0.5;
    size_t used = strlen(diagnosis->sentence);

    snprintf(diagnosis->sentence + used, sizeof diagnosis->sentence - used,
             "; for each row this node works %.1f times as long as the other%s", sibling->slowness,
             others == 1 ? " does" : "s do (median)");
    if (waits_for_files) {
        used = strlen(diagnosis->advice);
        snprintf(diagnosis->advice + used, sizeof diagnosis->advice - used,
                 " The other nodes get theirs faster: compare this node's mount, disk and network "
                 "with theirs.");
    } else if (diagnosis->cause == WATCH_CAUSE_STAGE || diagnosis->cause == WATCH_CAUSE_SOURCE ||
               diagnosis->cause == WATCH_CAUSE_ORDER) {
        diagnosis->cause = WATCH_CAUSE_NODE;
        snprintf(diagnosis->culprit, sizeof diagnosis->culprit, "%s",
                 sibling->now->copy.header->node);
        snprintf(diagnosis->advice, sizeof diagnosis->advice, "%s", advice);
    }
}

/* The median of sorted paces but the one at `own` (the lower of two). */
static double
median_of_others(const struct pace *paces, uint32_t count, uint32_t own)
{
    uint32_t middle = (count - 2) / 2;

    return paces[middle < own ? middle : middle + 1].row_ns;
}

static void
compare_stream(struct watch_sibling *siblings, uint32_t count, const char *stream,
               struct pace *paces)
{
    uint32_t known = 0;

    for (uint32_t i = 0; i < count; i++) {
        double takes_ns = row_ns(&siblings[i], stream);

        if (takes_ns > 0)
            paces[known++] = (struct pace){ .sibling = i, .row_ns = takes_ns };
    }
    qsort(paces, known, sizeof *paces, by_pace);
    for (uint32_t i = 0; known > 1 && i < known; i++) {
        struct watch_sibling *sibling = &siblings[paces[i].sibling];

        if (strcmp(sibling->diagnosis->stream, stream) != 0)
            continue;
        sibling->slowness = paces[i].row_ns / median_of_others(paces, known, i);
        if (sibling->slowness >= SLOW && sibling->diagnosis->level == WATCH_WAITING)
            say_slow(sibling, known - 1);
    }
}

void
watch_compare(struct watch_sibling *siblings, uint32_t count)
{
    struct pace *paces = calloc(count + 1, sizeof *paces);
    bool *seen = calloc(count + 1, sizeof *seen);
    uint32_t streams = 0;

    for (uint32_t i = 0; i < count; i++)
        siblings[i].slowness = 0;
    for (uint32_t i = 0; paces != NULL && seen != NULL && i < count; i++) {
        const char *stream = siblings[i].diagnosis->stream;

        if (seen[i] || stream[0] == '\0' || ++streams > STREAMS_MAX)
            continue;
        compare_stream(siblings, count, stream, paces);
        for (uint32_t other = i; other < count; other++)
            seen[other] |= strcmp(siblings[other].diagnosis->stream, stream) == 0;
    }
    free(paces);
    free(seen);
}
