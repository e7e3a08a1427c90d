/* step.c - one step: room in the lanes, parts, publishing. */
#include "session/step.h"

#include <stdio.h>

#include "core/must.h"
#include "session/session_private.h"

void
step_fail(struct step *step, tundish_status status)
{
    must_in_debug(status != TUNDISH_OK);
    if (step->status != TUNDISH_OK)
        return;
    step->status = status;
    snprintf(step->text, sizeof step->text, "epoch %llu, step %llu: %.900s",
             (unsigned long long)step->epoch, (unsigned long long)step->number, tnd_error_text());
}

void
step_name_slot(const struct step *step, struct share *share)
{
    bool is_batch = step->kind == TND_SLOT_BATCH;

    share->slot.position = step->position;
    share->slot.epoch = step->epoch;
    share->slot.step = step->number;
    share->slot.kind = step->kind;
    share->slot.shard = is_batch ? step->shard : -1;
    share->slot.flags = is_batch ? step->flags : 0;
    /* A batch that fails becomes an ERROR first. Until then another thread may set its status. */
    share->slot.status = is_batch ? TUNDISH_OK : step->status;
    share->slot.text = is_batch ? NULL : step->text;
}

/* Find room for a share. True: there is room, or *failure says why there never will be. For a batch
 * this touches only the share and the lane, which has a lock of its own. So the ring's lock need
 * not be held. */
static bool
open_share(struct session *session, struct step *step, uint32_t replica, tundish_status *failure)
{
    const struct deal_slice *slice;
    struct share *share = &step->shares[replica];
    struct lane *lane = feed_lane(session->feed, replica);
    tundish_status status;

    must_in_debug(replica < session->plan->replicas);
    must_in_debug(step->kind != TND_SLOT_BATCH || share->fill != NULL);
    if (share->reserved)
        return true;
    if (step->kind == STEP_PASSED) {
        status = lane_pass(lane, step->position, step->passed_kind, step->epoch, step->number);
        share->reserved = status == TUNDISH_OK;
        return share->reserved;
    }
    if (step->kind != TND_SLOT_BATCH) {
        step_name_slot(step, share);
        status = lane_reserve(lane, &share->slot);
        share->reserved = status == TUNDISH_OK;
        return share->reserved;
    }
    if (!share->fill->in_place)
        /* The sizes are not known before the content is made: make_whole reserves. */
        return lane_has_slot(lane, step->position);
    slice = &step->round.slices[replica];
    if (share->rows_of_part == 0) {
        step_name_slot(step, share);
        share->rows = fill_rows(share->fill, slice);
        share->rows_of_part = fill_describe(share->fill, slice, &share->slot);
        must_in_debug(share->rows >= 0 && share->rows_of_part > 0 && share->next_row == 0);
    }
    status = feed_reserve(session->feed, replica, &share->slot);
    if (status == TUNDISH_E_TIMEOUT) {
        fill_bring_near(slice);
        return false;
    }
    if (status != TUNDISH_OK)
        *failure = status;
    else
        fill_begin(share->fill, slice, &share->slot);
    share->reserved = status == TUNDISH_OK;
    return true;
}

/* Choose how each share is stored, once: all threads that make it must agree. Lanes differ by their
 * trainers, and a lane's trainers come and go. */
static void
choose_fills(struct session *session, struct step *step)
{
    must_in_debug(step->state == STEP_OPENING);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        if (step->shares[r].fill == NULL)
            step->shares[r].fill =
                session->packed.columns != NULL && lane_is_for_device(feed_lane(session->feed, r))
                    ? &session->packed
                    : &session->fill;
}

/* Each lane is looked at, and laying texts out takes time in proportion to the rows. */
bool
step_find_room(struct session *session, struct step *step, tundish_status *failure)
{
    bool all = true;

    must_in_debug(step->state == STEP_OPENING);
    if (step->kind == TND_SLOT_BATCH)
        choose_fills(session, step);
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        step->shares[r].has_room = open_share(session, step, r, failure);
        all &= step->shares[r].has_room;
    }
    return all;
}

/* Rows of a batch in its slot, as its first column says. */
static uint64_t
rows_of(const struct slot *slot)
{
    return slot->column_count > 0 && slot->columns[0].shape[0] > 0
               ? (uint64_t)slot->columns[0].shape[0]
               : 0;
}

/* Sealed in every lane before one shows it: if the server dies between two lanes, a trainer that
 * was shown the stream's end may leave, and the next server can still give it to the others
 * (lane.h). */
static void
publish_shares(struct session *session, struct step *step)
{
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        must_in_debug(step->shares[r].reserved);
    if (session->plan->replicas == 1) {
        lane_seal_and_publish(feed_lane(session->feed, 0), &step->shares[0].slot);
        return;
    }
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        lane_seal(feed_lane(session->feed, r), &step->shares[r].slot);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        lane_publish(feed_lane(session->feed, r), &step->shares[r].slot);
}

uint64_t
step_publish(struct session *session, struct step *step)
{
    uint64_t rows = 0;

    must_in_debug(step->state == (step->kind == TND_SLOT_BATCH ? STEP_PUBLISHING : STEP_OPEN));
    if (step->kind == TND_SLOT_BATCH)
        for (uint32_t r = 0; r < session->plan->replicas; r++)
            rows += rows_of(&step->shares[r].slot);
    publish_shares(session, step);
    if (step->kind == TND_SLOT_BATCH)
        dealer_forget_round(&step->round);
    return rows;
}

void
step_cancel(struct session *session, struct step *step)
{
    for (uint32_t r = 0; r < session->plan->replicas; r++) {
        struct share *share = &step->shares[r];

        /* A step that a queue has passed over is published. */
        must_in_debug(step->kind != STEP_PASSED || !share->reserved);
        if (share->reserved)
            lane_cancel(feed_lane(session->feed, r), &share->slot);
        share->reserved = false;
    }
}
