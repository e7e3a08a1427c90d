/* place.c - what a place carries. */
#include "session/place.h"

#include <string.h>

#include "core/hash_farm.h"

static const uint32_t PLACE_MAGIC = UINT32_C(0x504e4454); /* "TDNP" */
static const uint32_t PLACE_VERSION = 1;
static const uint32_t ORDER_RULES_VERSION = 1;

/* --- the fingerprint ----------------------------------------------------------------------------
 */

static uint64_t
mix(uint64_t hash, const void *bytes, size_t byte_count)
{
    uint64_t parts[2] = { hash, tnd_hash_farm(bytes, byte_count) };

    return tnd_hash_farm(parts, sizeof parts);
}

static uint64_t
mix_number(uint64_t hash, uint64_t number)
{
    return mix(hash, &number, sizeof number);
}

/* Folders may differ between machines: of a path only its last part counts. */
static uint64_t
mix_text(uint64_t hash, const char *text, bool is_path)
{
    const char *last = is_path ? strrchr(text, '/') : NULL;

    if (last != NULL)
        text = last + 1;
    return mix(hash, text, strlen(text));
}

static uint64_t mix_dataset(uint64_t hash, const struct spec_dataset *dataset);

static uint64_t
mix_value(uint64_t hash, const struct spec_value *value, bool is_path)
{
    if (value == NULL)
        return mix_number(hash, UINT64_MAX);
    hash = mix_number(hash, (uint64_t)value->kind);
    if (value->text != NULL)
        hash = mix_text(hash, value->text, is_path);
    for (uint32_t i = 0; i < value->count; i++) {
        if (value->kind == SPEC_MAP)
            hash = mix_text(hash, value->keys[i].text, false);
        hash = mix_value(hash, &value->items[i], is_path);
    }
    return value->dataset != NULL ? mix_dataset(hash, value->dataset) : hash;
}

static uint64_t
mix_dataset(uint64_t hash, const struct spec_dataset *dataset)
{
    for (uint32_t i = 0; i < dataset->stage_count; i++) {
        const struct spec_stage *stage = &dataset->stages[i];

        hash = mix_text(hash, stage->info->name, false);
        for (uint32_t k = 0; k < stage->info->parameter_count; k++) {
            const struct parameter_info *parameter = &stage->info->parameters[k];

            if (strcmp(parameter->name, "num_parallel_calls") == 0 ||
                strcmp(parameter->name, "deterministic") == 0)
                continue;
            hash = mix_value(hash, stage->arguments[k], (parameter->types & TYPE_PATHS) != 0);
        }
    }
    return hash;
}

uint64_t
place_fingerprint(const struct plan *plan)
{
    uint64_t hash = mix_number(0, ORDER_RULES_VERSION);

    hash = mix_number(hash, plan->file->has_seed ? (uint64_t)plan->file->seed : UINT64_MAX);
    hash = mix_number(hash, (uint64_t)plan->policy);
    return mix_dataset(hash, &plan->stream->dataset);
}

uint32_t
place_worker_count(const struct plan *plan)
{
    if (plan->options.worker_count > 1 && plan->policy != SHARD_DATA)
        return plan->options.worker_count;
    return 0;
}

/* --- bytes --------------------------------------------------------------------------------------
 */

enum { HEAD_BYTES = 32 };

size_t
place_bytes(const struct place *place)
{
    return HEAD_BYTES + place->state_count * sizeof place->state[0];
}

void
place_write(const struct place *place, uint8_t *bytes)
{
    memcpy(bytes, &PLACE_MAGIC, 4);
    memcpy(bytes + 4, &PLACE_VERSION, 4);
    memcpy(bytes + 8, &place->fingerprint, 8);
    memcpy(bytes + 16, &place->root_seed, 8);
    memcpy(bytes + 24, &place->worker_count, 4);
    memcpy(bytes + 28, &place->state_count, 4);
    memcpy(bytes + HEAD_BYTES, place->state, place->state_count * sizeof place->state[0]);
}

tundish_status
place_read(const uint8_t *bytes, size_t byte_count, struct place *ret_place)
{
    struct place place = { 0 };
    uint32_t magic, version;

    if (byte_count < HEAD_BYTES)
        return tnd_fail(TUNDISH_E_PLACE, "the place is too short to be one");
    memcpy(&magic, bytes, 4);
    memcpy(&version, bytes + 4, 4);
    if (magic != PLACE_MAGIC || version != PLACE_VERSION)
        return tnd_fail(TUNDISH_E_PLACE, "the place is not one, or of another version of Tundish");
    memcpy(&place.fingerprint, bytes + 8, 8);
    memcpy(&place.root_seed, bytes + 16, 8);
    memcpy(&place.worker_count, bytes + 24, 4);
    memcpy(&place.state_count, bytes + 28, 4);
    if (place.state_count > PLACE_STATE_MAX || byte_count != place_bytes(&place))
        return tnd_fail(TUNDISH_E_PLACE, "the place does not have the length it says");
    memcpy(place.state, bytes + HEAD_BYTES, place.state_count * sizeof place.state[0]);
    *ret_place = place;
    return TUNDISH_OK;
}

tundish_status
place_check(const struct place *place, const struct plan *plan)
{
    uint32_t workers = place_worker_count(plan);

    if (place->worker_count != workers)
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place was taken with %u workers, and batches depend on how many there "
                        "are: start %u again (there are %u now)",
                        place->worker_count, place->worker_count, plan->options.worker_count);
    if (place->fingerprint != place_fingerprint(plan))
        return tnd_fail(TUNDISH_E_PLACE,
                        "the place is of another pipeline: its stages, parameters or seeds differ "
                        "from those of stream '%s' in %s",
                        plan->stream->name, plan->file->path);
    return TUNDISH_OK;
}
