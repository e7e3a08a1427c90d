/* snapshot.c - add up sets of metrics by kind and labels. */
#include "watch/snapshot.h"

#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/status.h"

/* A server shows life once a second: after several missed signs it counts as hung. */
static const uint64_t HUNG_NS = UINT64_C(5000000000);

static uint64_t
word_at(const unsigned char *values, uint64_t offset)
{
    uint64_t word;

    memcpy(&word, values + offset, sizeof word);
    return word;
}

static void
add_histogram(struct watch_histogram *sum, const unsigned char *values, uint64_t offset)
{
    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++)
        sum->buckets[i] += word_at(values, offset + i * sizeof(uint64_t));
    sum->sum_ns += word_at(values, offset + TND_STATS_BUCKETS * sizeof(uint64_t));
}

/* How many of the kind's first fields are histograms. */
static uint32_t
histograms_before(const struct tnd_stats_kind_entry *kind, uint32_t field)
{
    uint32_t count = 0;

    for (uint32_t i = 0; i < field; i++)
        count += kind->fields[i].type == TND_STATS_HISTOGRAM;
    return count;
}

const struct watch_histogram *
watch_histogram_of(const struct watch_set *set, uint32_t field)
{
    return &set->histograms[histograms_before(set->kind, field)];
}

static void
add_values(struct watch_set *set, const struct tnd_stats_set_entry *entry)
{
    struct watch_histogram *histogram = set->histograms;

    /* The value of a histogram is its count of observations, so it has a rate like a counter. */
    for (uint32_t i = 0; i < set->kind->field_count; i++) {
        const struct tnd_stats_field *field = &set->kind->fields[i];

        if (field->type != TND_STATS_HISTOGRAM) {
            set->values[i] += word_at(entry->values, field->offset);
            continue;
        }
        add_histogram(histogram, entry->values, field->offset);
        set->values[i] = 0;
        for (unsigned b = 0; b < TND_STATS_BUCKETS; b++)
            set->values[i] += histogram->buckets[b];
        histogram++;
    }
}

/* Finds sets by hash while a snapshot is made. Every thread has a set of each kind, so a linear
 * search would take time that grows with the square of the threads. */
struct lookup {
    uint32_t *numbers; /* 1 + that of the set; 0: nothing here */
    uint32_t size;     /* a power of two, more than there are sets */
};

static uint32_t
hash_of(const struct tnd_stats_kind_entry *kind, const char *labels)
{
    /* FNV-1a. The kind is an address in the copy, whose low bits say little. */
    uint32_t hash = 2166136261u ^ (uint32_t)((uintptr_t)kind >> 7);

    for (; *labels != '\0'; labels++)
        hash = (hash ^ (unsigned char)*labels) * 16777619u;
    return hash;
}

static struct watch_set *
find_or_add(struct watch_snapshot *snapshot, struct lookup *lookup,
            const struct tnd_stats_kind_entry *kind, const char *labels)
{
    struct watch_set *set;
    uint32_t at = hash_of(kind, labels) & (lookup->size - 1);

    for (; lookup->numbers[at] != 0; at = (at + 1) & (lookup->size - 1)) {
        set = &snapshot->sets[lookup->numbers[at] - 1];
        if (set->kind == kind && strcmp(set->labels, labels) == 0)
            return set;
    }
    set = realloc(snapshot->sets, (snapshot->set_count + 1) * sizeof *set);
    if (set == NULL)
        return NULL;
    snapshot->sets = set;
    set = &snapshot->sets[snapshot->set_count];
    *set = (struct watch_set){ .number = snapshot->set_count, .kind = kind, .labels = labels };
    lookup->numbers[at] = snapshot->set_count + 1;
    set->values = calloc(kind->field_count + 1, sizeof *set->values);
    set->histograms =
        calloc(histograms_before(kind, kind->field_count) + 1, sizeof *set->histograms);
    snapshot->set_count++; /* counted first, so that a failure below frees it with the rest */
    return set->values != NULL && set->histograms != NULL ? set : NULL;
}

static tundish_status
open_lookup(const struct watch_snapshot *snapshot, struct lookup *ret_lookup)
{
    /* No file has more sets than entries fit into it, so the table never fills up or grows. */
    uint64_t sets_max = snapshot->copy.byte_count / sizeof(struct tnd_stats_set_entry) + 1;

    ret_lookup->size = 16;
    while (ret_lookup->size < 2 * sets_max)
        ret_lookup->size *= 2;
    ret_lookup->numbers = calloc(ret_lookup->size, sizeof *ret_lookup->numbers);
    return ret_lookup->numbers != NULL ? TUNDISH_OK
                                       : tnd_fail(TUNDISH_E_MEMORY, "no memory for the metrics");
}

static tundish_status
add_all(struct watch_snapshot *snapshot, struct lookup *lookup)
{
    for (const struct tnd_stats_entry *entry = tnd_stats_next(&snapshot->copy, NULL); entry != NULL;
         entry = tnd_stats_next(&snapshot->copy, entry)) {
        const struct tnd_stats_kind_entry *kind = tnd_stats_kind_of(&snapshot->copy, entry);
        const struct tnd_stats_set_entry *set = (const void *)entry;
        struct watch_set *sum;

        /* Relaxed: the copy is of this process alone. */
        if (kind == NULL || atomic_load_explicit(&set->live, memory_order_relaxed) == 0)
            continue;
        sum = find_or_add(snapshot, lookup, kind, set->labels);
        if (sum == NULL)
            return tnd_fail(TUNDISH_E_MEMORY, "no memory for the metrics");
        add_values(sum, set);
    }
    return TUNDISH_OK;
}

tundish_status
watch_snapshot_open(struct tnd_stats_file *file, struct watch_snapshot *ret_snapshot)
{
    struct watch_snapshot snapshot = { .taken_ns = tnd_clock_ns() };
    struct lookup lookup = { 0 };
    tundish_status status = tnd_stats_read(file);

    if (status != TUNDISH_OK)
        return status;
    /* The snapshot takes the copy over. The descriptor stays with the file, for the next snapshot.
     */
    snapshot.copy = *file;
    snapshot.copy.descriptor = -1;
    file->header = NULL;
    file->byte_count = file->capacity = 0;
    status = open_lookup(&snapshot, &lookup);
    if (status == TUNDISH_OK)
        status = add_all(&snapshot, &lookup);
    free(lookup.numbers);
    if (status != TUNDISH_OK) {
        watch_snapshot_close(&snapshot);
        return status;
    }
    *ret_snapshot = snapshot;
    return TUNDISH_OK;
}

void
watch_snapshot_close(struct watch_snapshot *snapshot)
{
    for (uint32_t i = 0; i < snapshot->set_count; i++) {
        free(snapshot->sets[i].values);
        free(snapshot->sets[i].histograms);
    }
    free(snapshot->sets);
    free(snapshot->copy.header);
    *snapshot = (struct watch_snapshot){ 0 };
}

bool
watch_is_finished(const struct watch_snapshot *snapshot)
{
    return tnd_stats_get_state(snapshot->copy.header) == TND_STATS_STOPPED;
}

bool
watch_is_stopping(const struct watch_snapshot *snapshot)
{
    return tnd_stats_get_state(snapshot->copy.header) == TND_STATS_DRAINING;
}

uint64_t
watch_silent_ns(const struct watch_snapshot *snapshot, int64_t now_ns)
{
    const struct tnd_stats_header *header = snapshot->copy.header;
    /* The file of another node is written by the local server, whose clock this is; the heartbeat
     * in it is of the other machine's clock. */
    uint64_t relayed_ns = (uint64_t)atomic_load_explicit(&header->relayed_ns, memory_order_relaxed);
    uint64_t seen_ns = relayed_ns != 0
                           ? relayed_ns
                           : watch_value(watch_next(snapshot, "server", NULL), "heartbeat");

    if (!tnd_stats_is_alive(&snapshot->copy) || seen_ns == 0 || (uint64_t)now_ns < seen_ns)
        return 0;
    return (uint64_t)now_ns - seen_ns;
}

bool
watch_is_hung(const struct watch_snapshot *snapshot, int64_t now_ns)
{
    const struct tnd_stats_header *header = snapshot->copy.header;

    return watch_silent_ns(snapshot, now_ns) > HUNG_NS &&
           atomic_load_explicit(&header->relayed_ns, memory_order_relaxed) == 0;
}

const struct watch_set *
watch_next(const struct watch_snapshot *snapshot, const char *kind,
           const struct watch_set *previous)
{
    uint32_t first = previous == NULL ? 0 : (uint32_t)(previous - snapshot->sets) + 1;

    for (uint32_t i = first; i < snapshot->set_count; i++)
        if (strcmp(snapshot->sets[i].kind->name, kind) == 0)
            return &snapshot->sets[i];
    return NULL;
}

const struct watch_set *
watch_find(const struct watch_snapshot *snapshot, const char *kind, const char *labels)
{
    const struct watch_set *set = NULL;

    while ((set = watch_next(snapshot, kind, set)) != NULL)
        if (strcmp(set->labels, labels) == 0)
            return set;
    return NULL;
}

/* A field's number, or that of fields. */
static uint32_t
find_field(const struct watch_set *set, const char *field)
{
    uint32_t i = 0;

    while (i < set->kind->field_count && strcmp(set->kind->fields[i].name, field) != 0)
        i++;
    return i;
}

uint64_t
watch_value(const struct watch_set *set, const char *field)
{
    uint32_t i = set != NULL ? find_field(set, field) : 0;

    return set != NULL && i < set->kind->field_count ? set->values[i] : 0;
}

/* Most likely it has the same number there. */
const struct watch_set *
watch_again(const struct watch_snapshot *snapshot, const struct watch_set *set)
{
    if (set->number < snapshot->set_count) {
        const struct watch_set *likely = &snapshot->sets[set->number];

        if (strcmp(likely->labels, set->labels) == 0 &&
            strcmp(likely->kind->name, set->kind->name) == 0)
            return likely;
    }
    return watch_find(snapshot, set->kind->name, set->labels);
}

uint64_t
watch_growth(const struct watch_snapshot *before, const struct watch_set *now, const char *field)
{
    uint64_t was = watch_value(watch_again(before, now), field), is = watch_value(now, field);

    /* A set that was freed and taken again, or a server that was restarted, may count from 0 again.
     */
    return is > was ? is - was : 0;
}

bool
watch_observed(const struct watch_snapshot *before, const struct watch_set *now, const char *field,
               struct watch_histogram *ret_grown)
{
    const struct watch_set *then = watch_again(before, now);
    uint32_t is = find_field(now, field), was = then != NULL ? find_field(then, field) : 0;
    bool has_before = then != NULL && was < then->kind->field_count &&
                      then->kind->fields[was].type == TND_STATS_HISTOGRAM;
    const struct watch_histogram *old_histogram = has_before ? watch_histogram_of(then, was) : NULL;

    if (is == now->kind->field_count || now->kind->fields[is].type != TND_STATS_HISTOGRAM)
        return false;
    *ret_grown = *watch_histogram_of(now, is);
    for (unsigned i = 0; i < TND_STATS_BUCKETS && has_before; i++) {
        uint64_t old = old_histogram->buckets[i];

        /* Buckets are read one after the other while the server counts, so one may seem to shrink.
         */
        ret_grown->buckets[i] -= old < ret_grown->buckets[i] ? old : ret_grown->buckets[i];
    }
    if (has_before && old_histogram->sum_ns <= ret_grown->sum_ns)
        ret_grown->sum_ns -= old_histogram->sum_ns;
    return true;
}

uint64_t
watch_quantile_ns(const struct watch_histogram *histogram, double share)
{
    double total = 0, below = 0;

    for (unsigned i = 0; i < TND_STATS_BUCKETS; i++)
        total += (double)histogram->buckets[i];
    for (unsigned i = 0; i < TND_STATS_BUCKETS && total > 0; i++) {
        double here = (double)histogram->buckets[i], wanted = share * total - below;
        double begin = i > 0 ? (double)tnd_stats_bucket_ns(i - 1) : 0;

        if (here > 0 && wanted <= here)
            /* Linear within the bucket; the last bucket has no end, so its begin stands for it. */
            return i + 1 == TND_STATS_BUCKETS
                       ? (uint64_t)begin
                       : (uint64_t)(begin +
                                    ((double)tnd_stats_bucket_ns(i) - begin) * wanted / here);
        below += here;
    }
    return 0;
}

void
watch_label(const struct watch_set *set, const char *key, char *text, size_t text_bytes)
{
    size_t key_bytes = strlen(key), used = 0;

    text[0] = '\0';
    /* Labels are written as Prometheus wants them: key="value", with \\ before \ and ". They come
     * from a file that another process writes, so every step looks for the end of the text. */
    for (const char *label = set->labels; *label != '\0';) {
        const char *value = strstr(label, "=\"");
        bool wanted;

        if (value == NULL)
            return;
        wanted = (size_t)(value - label) == key_bytes && memcmp(label, key, key_bytes) == 0;
        for (value += 2; *value != '\0' && *value != '"'; value++) {
            if (*value == '\\' && value[1] != '\0')
                value++;
            if (wanted && used + 1 < text_bytes)
                text[used++] = *value;
        }
        if (wanted) {
            text[used] = '\0';
            return;
        }
        label = *value == '"' ? value + 1 : value;
        label += *label == ',';
    }
}

bool
watch_is_of(const struct watch_set *set, const struct watch_set *session)
{
    static const char *const keys[] = { "stream", "session" };

    for (size_t i = 0; i < sizeof keys / sizeof *keys; i++) {
        char one[TND_STATS_VALUE_BYTES], other[TND_STATS_VALUE_BYTES];

        watch_label(set, keys[i], one, sizeof one);
        watch_label(session, keys[i], other, sizeof other);
        if (strcmp(one, other) != 0)
            return false;
    }
    return true;
}

const struct tnd_stats_text_entry *
watch_text(const struct watch_snapshot *snapshot, const char *name, const char *stream)
{
    for (const struct tnd_stats_entry *entry = tnd_stats_next(&snapshot->copy, NULL); entry != NULL;
         entry = tnd_stats_next(&snapshot->copy, entry)) {
        const struct tnd_stats_text_entry *text = (const void *)entry;

        if (entry->type == TND_STATS_ENTRY_TEXT && strcmp(text->name, name) == 0 &&
            strcmp(text->stream, stream) == 0)
            return text;
    }
    return NULL;
}

uint32_t
watch_notes(const struct watch_snapshot *snapshot, uint64_t from, struct watch_note *notes,
            uint32_t capacity)
{
    const struct tnd_stats_header *header = snapshot->copy.header;
    uint64_t end = tnd_stats_get(&header->note_count);
    uint32_t count = 0;

    if (end > TND_STATS_NOTES && from < end - TND_STATS_NOTES)
        from = end - TND_STATS_NOTES;
    /* An odd sequence: the server was writing this note when the copy was made. */
    for (; from < end && count < capacity; from++) {
        const struct tnd_stats_note *note = &header->notes[from % TND_STATS_NOTES];

        if (atomic_load_explicit(&note->sequence, memory_order_relaxed) % 2 != 0 ||
            memchr(note->text, '\0', sizeof note->text) == NULL)
            continue;
        notes[count] =
            (struct watch_note){ .number = from, .level = note->level, .wall_ns = note->wall_ns };
        memcpy(notes[count].text, note->text, sizeof note->text);
        count++;
    }
    return count;
}
