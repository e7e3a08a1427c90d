/* agreement.c - plans that are made only for comparison. */
#include "session/nodes/agreement.h"

#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/memory.h"
#include "session/checkpoint/identity.h"
#include "session/nodes/catalogue_share.h"
#include "session/nodes/index_share.h"

static bool
is_served(const struct agreement_options *options, uint32_t index)
{
    return options->stream == NULL ||
           strcmp(options->stream, options->file->streams[index].name) == 0;
}

static tundish_status
compare_plans(struct link *link, const struct agreement_options *options, struct plan *const *plans)
{
    struct identity identity = { 0 };
    tundish_status status = TUNDISH_OK;

    identity_add(&identity, tnd_hash_farm(TUNDISH_VERSION_TEXT, strlen(TUNDISH_VERSION_TEXT)),
                 "the version of Tundish");
    identity_add(&identity, options->given_seed, "--seed");
    identity_add(&identity, options->keeps_places, "--state");
    for (uint32_t i = 0; status == TUNDISH_OK && i < options->file->stream_count; i++)
        if (plans[i] != NULL)
            status = identity_add_stream(&identity, plans[i]);
    if (status == TUNDISH_OK)
        status = agree(link, identity.parts, identity.count, options->timeout_ns, options->stop);
    identity_close(&identity);
    return status;
}

tundish_status
agreement_reach(struct link *link, const struct agreement_options *options,
                struct spec_errors *errors)
{
    uint32_t count = options->file->stream_count;
    struct plan **plans;
    tundish_status status = TUNDISH_OK;

    if (link_size(link) == 1)
        return TUNDISH_OK;
    plans = tnd_zalloc(count, sizeof(struct plan *));
    for (uint32_t i = 0; status == TUNDISH_OK && i < count; i++)
        if (is_served(options, i))
            status = plan_open(options->file, &options->file->streams[i], options->plan, errors,
                               &plans[i]);
    if (status == TUNDISH_OK)
        /* Before the comparison: the files of a stream with local files are part of its
         * identity. */
        status = catalogue_share(link, plans, count, options->timeout_ns, options->stop,
                                 options->catalogue);
    if (status == TUNDISH_OK)
        status = compare_plans(link, options, plans);
    for (uint32_t i = 0; status == TUNDISH_OK && i < count; i++)
        if (plans[i] != NULL)
            status = index_share(link, plans[i], i, options->timeout_ns, options->stop);
    for (uint32_t i = 0; i < count; i++)
        plan_close(plans[i]);
    free(plans);
    return status;
}
