/* feed_places.c - the place of each epoch, and the step that the lanes begin with, for trainers. */
#include "deliver/feed.h"

#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/status.h"
#include "deliver/feed_private.h"

tundish_status
feed_set_place(struct feed *feed, uint64_t epoch, const void *bytes, uint64_t byte_count)
{
    struct tnd_message_head head = { .type = TND_EPOCH, .id = epoch };
    struct epoch_place *place;

    if (byte_count == 0)
        return TUNDISH_OK;
    /* The other half is for the bits of a queue and the place's own header. */
    if (byte_count > TND_PLACE_BYTES_MAX / 2)
        return tnd_fail(TUNDISH_E_MEMORY, "a place of %llu bytes is larger than %llu",
                        (unsigned long long)byte_count,
                        (unsigned long long)(TND_PLACE_BYTES_MAX / 2));
    tnd_lock_take(&feed->lock);
    place = &feed->places[feed->place_next];
    feed->place_next = (feed->place_next + 1) % feed->place_count;
    free(place->bytes);
    *place = (struct epoch_place){ epoch, tnd_alloc(byte_count), byte_count };
    memcpy(place->bytes, bytes, byte_count);
    for (uint32_t i = 0; i < feed->lane_count; i++)
        /* Before the epoch's first slot, so that each slot tells the trainer that a place exists
         * and how long it is. */
        lane_set_place_bytes(feed->lanes[i], epoch, byte_count);
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            if (group->members[i].connection != NULL) {
                connection_post_parts(group->members[i].connection, head, place->bytes, byte_count);
                lane_reader_notify(group->members[i].reader);
            }
    tnd_lock_release(&feed->lock);
    return TUNDISH_OK;
}

static void
tell_begin(const struct feed *feed, struct connection *connection)
{
    struct tnd_message_head head = { .type = TND_BEGIN,
                                     .id = feed->begin_epoch,
                                     .offset = feed->begin_step };

    if (feed->has_begin)
        connection_post(connection, head, NULL, NULL, 0);
}

void
feed_send_places(struct feed *feed, struct connection *connection)
{
    must_hold(&feed->lock);
    for (uint32_t i = 0; i < feed->place_count; i++) {
        const struct epoch_place *place = &feed->places[i];
        struct tnd_message_head head = { .type = TND_EPOCH, .id = place->epoch };

        if (place->bytes != NULL)
            connection_post_parts(connection, head, place->bytes, place->byte_count);
    }
    tell_begin(feed, connection);
}

void
feed_tell_begin(struct feed *feed, uint64_t epoch, uint64_t step)
{
    tnd_lock_take(&feed->lock);
    feed->has_begin = true;
    feed->begin_epoch = epoch;
    feed->begin_step = step;
    for (struct group *group = feed->groups; group != NULL; group = group->next)
        for (uint32_t i = 0; i < group->member_count; i++)
            if (group->members[i].connection != NULL) {
                tell_begin(feed, group->members[i].connection);
                lane_reader_notify(group->members[i].reader);
            }
    tnd_lock_release(&feed->lock);
}

bool
feed_place_of(struct feed *feed, uint64_t epoch, uint8_t **ret_bytes, uint64_t *ret_count)
{
    bool found = false;

    tnd_lock_take(&feed->lock);
    for (uint32_t i = 0; i < feed->place_count && !found; i++) {
        const struct epoch_place *place = &feed->places[i];

        if (place->bytes == NULL || place->epoch != epoch)
            continue;
        found = true;
        *ret_bytes = tnd_alloc(place->byte_count);
        memcpy(*ret_bytes, place->bytes, place->byte_count);
        *ret_count = place->byte_count;
    }
    tnd_lock_release(&feed->lock);
    return found;
}
