/* place_contents.c - the server's part of a place: written, read and checked. */
#include "session/checkpoint/place_contents.h"

#include <string.h>

#include "core/hash_farm.h"
#include "core/magic.h"
#include "core/must.h"
#include "session/checkpoint/place_code.h"
#include "session/checkpoint/place_words.h"
#include "spec/fingerprint.h"

enum { DIFFERENCE_BYTES = 512 };

/* Version 2 has no split. Version 4 has code, which others have none of. */
static const uint32_t PLACE_VERSION = 3, UNSPLIT_VERSION = 2, CODE_VERSION = 4;
/* Before version 2 each dataset of a function numbered what it drew for itself. */
static const uint32_t ORDER_RULES_VERSION = 2, TOP_RULES_VERSION = 1;

static enum spec_counting
counts_with_patterns(const struct parameter_info *parameter)
{
    if ((parameter->types & TYPE_NO_EFFECT) != 0)
        return COUNTS_NOT;
    return (parameter->types & TYPE_PATHS) != 0 ? COUNTS_AS_PATH : COUNTS_WHOLE;
}

/* The files that a pattern matches are compared themselves (place_files.h): names, sizes, bytes, in
 * their order. */
static enum spec_counting
counts(const struct parameter_info *parameter)
{
    return (parameter->types & TYPE_PATTERN) != 0 ? COUNTS_AS_MATCHES
                                                  : counts_with_patterns(parameter);
}

static uint64_t
fingerprint_of(const struct plan *plan, spec_counts *counting)
{
    uint64_t numbers[] = {
        plan->graph->draw_count > plan->graph->own_draw_count ? ORDER_RULES_VERSION
                                                              : TOP_RULES_VERSION,
        plan->file->has_seed ? (uint64_t)plan->file->seed : UINT64_MAX,
        (uint64_t)plan->policy,
    };

    return spec_hash_dataset(tnd_hash_farm(numbers, sizeof numbers), &plan->stream->dataset,
                             counting);
}

uint64_t
place_fingerprint(const struct plan *plan)
{
    return fingerprint_of(plan, counts);
}

/* Older servers counted the texts of patterns, too. */
static tundish_status
check_stages(const struct place *place, const struct place *here, const struct plan *plan)
{
    char difference[DIFFERENCE_BYTES];

    if (place->fingerprint == here->fingerprint ||
        place->fingerprint == fingerprint_of(plan, counts_with_patterns))
        return TUNDISH_OK;
    place_words_compare(plan, place->fingerprint, difference, sizeof difference);
    if (difference[0] != '\0')
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place belongs to another pipeline than stream '%s' in %s: %s",
                        plan->stream->name, plan->file->path, difference);
    return tnd_fail(TUNDISH_E_PLACE,
                    "the place belongs to another pipeline: its stages, parameters or seeds differ "
                    "from those of stream '%s' in %s",
                    plan->stream->name, plan->file->path);
}

static uint32_t
replicas_that_matter(const struct plan *plan)
{
    const struct schema *schema = &plan->user_root->schema;

    if (plan->stream->distribute.from_function)
        return plan->replicas;
    /* Carrying rows over joins a short batch with the next one. A single replica in all needs no
     * carrying: its batches stay as they are. */
    if (plan->rule != REBATCH_CARRY ||
        (schema->count > 0 && schema->columns[0].rank > 0 && schema->columns[0].shape[0] >= 0))
        return 0;
    return plan->rebatched ? 2 : 1;
}

/* With one worker, or in lanes under DATA, all workers together deal one order, whatever their
 * number: a step is a global batch. In a queue or a broadcast each worker has whole batches of its
 * own. With from_function each replica takes elements of its own. */
void
place_ready(const struct plan *plan, const struct place_files *files, struct place *ret_place)
{
    bool shared =
        plan->options.worker_count == 1 ||
        (plan->policy == SHARD_DATA && plan->stream->distribute.delivery == DELIVER_LANES);

    *ret_place = (struct place){
        .fingerprint = place_fingerprint(plan),
        .root_seed = plan->options.root_seed,
        .worker_count = shared ? 0 : plan->options.worker_count,
        .replicas = replicas_that_matter(plan),
        .files = files->groups,
        .code = place_code(plan),
    };
}

/* Little-endian, as every machine Tundish runs on. The state follows. */
struct stored_place {
    uint32_t magic, version;
    uint64_t fingerprint, root_seed;
    uint32_t worker_count, replicas;
    struct place_groups files;
    uint32_t state_count;
    uint32_t split_workers, split_replicas;
    uint64_t split_epoch, split_step;
    uint64_t code;
};

enum { UNSPLIT_BYTES = 72, CODELESS_BYTES = 96 };
_Static_assert(sizeof(struct stored_place) == 104, "the place's layout moved");
_Static_assert(PLACE_BYTES_MAX == sizeof(struct stored_place) + PLACE_STATE_MAX * sizeof(uint64_t),
               "the longest place is as long as it says");

static size_t
header_bytes(uint32_t version)
{
    return version == CODE_VERSION    ? sizeof(struct stored_place)
           : version == PLACE_VERSION ? CODELESS_BYTES
                                      : UNSPLIT_BYTES;
}

/* Servers that know of no code read places without any. */
static uint32_t
version_of(const struct place *place)
{
    return place->code != 0 ? CODE_VERSION : PLACE_VERSION;
}

size_t
place_bytes(const struct place *place)
{
    return header_bytes(version_of(place)) + place->state_count * sizeof place->state[0];
}

void
place_write(const struct place *place, uint8_t *bytes)
{
    struct stored_place stored = {
        .magic = TND_PLACE_CONTENTS_MAGIC,
        .version = version_of(place),
        .fingerprint = place->fingerprint,
        .root_seed = place->root_seed,
        .worker_count = place->worker_count,
        .replicas = place->replicas,
        .files = place->files,
        .state_count = place->state_count,
        .split_workers = place->split.workers,
        .split_replicas = place->split.replicas,
        .split_epoch = place->split.epoch,
        .split_step = place->split.step,
        .code = place->code,
    };
    size_t header = header_bytes(stored.version);

    must_in_debug(place->state_count <= PLACE_STATE_MAX);
    memcpy(bytes, &stored, header);
    memcpy(bytes + header, place->state, place->state_count * sizeof place->state[0]);
}

/* The header, of whichever version. */
static tundish_status
read_header(const uint8_t *bytes, size_t byte_count, struct stored_place *ret_stored,
            size_t *ret_header_bytes)
{
    struct stored_place stored = { 0 };

    if (byte_count < UNSPLIT_BYTES)
        return tnd_fail(TUNDISH_E_PLACE, "the place is too short");
    memcpy(&stored, bytes, UNSPLIT_BYTES);
    if (stored.magic != TND_PLACE_CONTENTS_MAGIC)
        return tnd_fail(TUNDISH_E_PLACE, "these bytes are not a place");
    if (stored.version != PLACE_VERSION && stored.version != UNSPLIT_VERSION &&
        stored.version != CODE_VERSION)
        return tnd_fail(TUNDISH_E_PLACE,
                        "a server of another version saved this place (its version is %u, here it "
                        "is %u): resume with that version, or start anew",
                        stored.version, CODE_VERSION);
    *ret_header_bytes = header_bytes(stored.version);
    if (byte_count < *ret_header_bytes)
        return tnd_fail(TUNDISH_E_PLACE, "the place is too short");
    memcpy(&stored, bytes, *ret_header_bytes);
    *ret_stored = stored;
    return TUNDISH_OK;
}

tundish_status
place_read(const uint8_t *bytes, size_t byte_count, struct place *ret_place)
{
    struct stored_place stored = { 0 };
    struct place place;
    size_t header = 0;
    tundish_status status = read_header(bytes, byte_count, &stored, &header);

    if (status != TUNDISH_OK)
        return status;
    place = (struct place){
        .fingerprint = stored.fingerprint,
        .root_seed = stored.root_seed,
        .worker_count = stored.worker_count,
        .replicas = stored.replicas,
        .files = stored.files,
        .state_count = stored.state_count,
        .split = { stored.split_workers, stored.split_replicas, stored.split_epoch,
                   stored.split_step },
        .code = stored.code,
    };
    if (stored.version == CODE_VERSION && stored.code == 0)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place has no digest of code where its header says so");
    /* Check the count before any use: the bytes come from a trainer. */
    if (place.state_count > PLACE_STATE_MAX ||
        byte_count != header + place.state_count * sizeof place.state[0])
        return tnd_fail(TUNDISH_E_PLACE, "the place has another length than its header says");
    memcpy(place.state, bytes + header, place.state_count * sizeof place.state[0]);
    *ret_place = place;
    return TUNDISH_OK;
}

static const char *
delivery_words(const struct plan *plan)
{
    enum spec_delivery delivery = plan->stream->distribute.delivery;

    return delivery == DELIVER_QUEUE       ? ", delivery: queue"
           : delivery == DELIVER_BROADCAST ? ", delivery: broadcast"
                                           : "";
}

static tundish_status
check_numbers(const struct place *place, const struct place *here, const struct plan *plan)
{
    if (place->worker_count == 0 && here->worker_count != 0)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place was saved with one worker, or where batches do not depend on "
                        "the number of workers, and with auto_shard %s%s they do: start one worker "
                        "(there are %u now)",
                        plan_policy_name(plan->policy), delivery_words(plan), here->worker_count);
    if (place->worker_count != here->worker_count)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place was saved with %u workers, and the batches depended on their "
                        "number: start %u workers with the delivery of then (there are %u now%s)",
                        place->worker_count, place->worker_count, plan->options.worker_count,
                        delivery_words(plan));
    if (place->replicas != here->replicas && !plan->stream->distribute.from_function)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place was saved with %s in total, and there %s now: rebatch: carry "
                        "moves rows of short batches to the next batch only if there are several "
                        "replicas. Start as before, or use rebatch: split",
                        place->replicas == 1 ? "one replica" : "several replicas",
                        place->replicas == 1 ? "are several" : "is one");
    if (place->replicas != here->replicas)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place was saved with %u replicas on a worker, and with from_function "
                        "each step takes as many elements: start %u replicas (there are %u now)",
                        place->replicas, place->replicas, plan->replicas);
    return TUNDISH_OK;
}

tundish_status
place_check(const struct place *place, const struct plan *plan, const struct place_files *files)
{
    struct place here;
    tundish_status status;

    place_ready(plan, files, &here);
    status = check_stages(place, &here, plan);
    if (status == TUNDISH_OK)
        status = check_numbers(place, &here, plan);
    return status == TUNDISH_OK ? place_files_check(files, &place->files) : status;
}

void
place_own_state(const struct plan *plan, size_t own, const uint64_t **words, size_t *count)
{
    uint32_t workers = plan->options.worker_count;

    if (workers > 1 && own > 0 && *count == own * workers) {
        must_in_debug(plan->options.worker < workers);
        *words += own * plan->options.worker;
        *count = own;
    }
}
