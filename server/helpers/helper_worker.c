/* helper_worker.c - a thread that takes parts as workers do, and has them made elsewhere. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/clock.h"
#include "helpers/helpers_private.h"

/* Compare the first part of each connection, then one in COMPARED_EVERY at random; one in
 * COMPARED_OF_SAME_FILES once both sides have the same sums of all files, when only the machines'
 * arithmetic can differ. */
enum { COMPARED_EVERY = 16, COMPARED_OF_SAME_FILES = 512 };

/* Comparing takes no more than this of the processors' time that the workers have. */
enum { COMPARED_PERCENT = 3 };

/* Send about SENT_NS of work per request, but at most SENT_PARTS_MAX parts, because each part has a
 * fixed transfer cost. */
static const int64_t SENT_NS = 4000000;
enum { SENT_PARTS_MAX = 32 };

/* How often one thread looks whether help is wanted while the workers are busy. */
static const int64_t LOOK_NS = 2000000;

/* A thread that has waited OVERTAKEN_TIMES the time of a part looks every AGAIN_NS whether a
 * trainer waits for its part. */
enum { OVERTAKEN_TIMES = 4 };
static const int64_t AGAIN_NS = 5000000;

/* Does a trainer wait for a batch, with none ready in its lane? */
static bool
a_trainer_waits(const struct session *session)
{
    must_hold(&session->ring.lock);
    for (uint32_t r = 0; r < session->plan->replicas; r++)
        if (lane_is_awaited(feed_lane(session->feed, r)))
            return true;
    return false;
}

static bool
take_if_wanted(struct line *line, struct part *ret_part)
{
    struct session *session = line->worker.session;
    int64_t part_ns = session->workers[0].part_ns;
    int64_t times = part_ns > 0 ? SENT_NS / part_ns : 1;

    /* Local work first: a part is sent away only if no worker is free to make it. */
    if (!ring_has_more_work(session) || !a_trainer_waits(session) ||
        !ring_take_part(&line->worker, ret_part))
        return false;
    ring_take_more(ret_part, times < SENT_PARTS_MAX ? times : SENT_PARTS_MAX);
    return true;
}

/* One thread looks again soon, all others wait for it, or for a worker that takes a part. */
static void
wait_for_wish(struct helpers *helpers)
{
    bool watches = !helpers->is_watched && ring_has_more_work(helpers->session);

    if (watches)
        helpers->is_watched = true;
    ring_wait(helpers->session, &helpers->wanted, watches ? LOOK_NS : HELPERS_SLEEP_NS);
    if (watches)
        helpers->is_watched = false;
}

/* The whole slice that came, into its slot. */
static tundish_status
take_whole(struct line *line, struct step *step, uint32_t replica, const struct slot *came)
{
    struct share *share = &step->shares[replica];
    const struct schema *schema = &line->worker.session->plan->element_spec;
    tundish_status status;

    step_name_slot(step, share);
    for (uint32_t i = 0; i < came->column_count; i++)
        memcpy(share->slot.columns[i].shape, came->columns[i].shape,
               (size_t)schema->columns[i].rank * sizeof *came->columns[i].shape);
    for (uint32_t i = 0; i < came->buffer_count; i++) {
        struct slot_buffer *buffer = &share->slot.buffers[i];

        buffer->stored_bytes = came->buffers[i].stored_bytes;
        buffer->decoded_bytes = came->buffers[i].decoded_bytes;
        buffer->codec = came->buffers[i].codec;
    }
    status = session_reserve_whole(&line->worker, share, replica);
    if (status != TUNDISH_OK)
        return status;
    share->reserved = true;
    for (uint32_t i = 0; i < came->buffer_count; i++)
        if (came->buffers[i].stored_bytes > 0)
            memcpy(share->slot.buffers[i].data, came->buffers[i].data,
                   came->buffers[i].stored_bytes);
    return TUNDISH_OK;
}

/* All slices of the part, or none. */
static tundish_status
take_slices(struct line *line, const struct part *part)
{
    tundish_status status = TUNDISH_OK;
    uint32_t i = 0;

    for (; i <= part->more && status == TUNDISH_OK; i++)
        status = take_whole(line, part->step, part->replica + i, &line->wire.slots[i]);
    while (status != TUNDISH_OK && i-- > 0) {
        struct share *share = &part->step->shares[part->replica + i];

        if (share->reserved)
            lane_cancel(feed_lane(line->worker.session->feed, part->replica + i), &share->slot);
        share->reserved = false;
    }
    return status;
}

static void
take_skips(struct worker *worker, const struct helper_made *made)
{
    if (made->skipped == 0)
        return;
    worker->evaluation.skipped += made->skipped;
    snprintf(worker->evaluation.skipped_text, sizeof worker->evaluation.skipped_text, "%s",
             made->skipped_text);
}

static tundish_status
make_here(struct line *line, const struct part *part)
{
    struct worker *worker = &line->worker;
    tundish_status status = session_make_part(worker, part);

    scratch_reset(worker->evaluation.scratch);
    return status;
}

/* Is there content, that one could send for? */
static bool
is_worth_sending(const struct line *line, const struct part *part)
{
    const struct deal_slice *slice = &part->step->round.slices[part->replica];

    return line->wire.wire.socket >= 0 && slice->present &&
           (!part->step->shares[part->replica].fill->in_place || part->end > part->begin);
}

/* The time that a thread here takes for as many rows. */
static int64_t
own_time(const struct line *line, const struct part *part)
{
    const struct share *share = &part->step->shares[part->replica];

    if (!share->fill->in_place)
        return line->worker.part_ns;
    return line->worker.part_ns * (part->end - part->begin) / share->rows_of_part;
}

/* Does a trainer wait for this part, as far as one can tell, with threads that have nothing to do?
 */
static bool
is_missed(const struct line *line, const struct part *part)
{
    struct session *session = line->worker.session;
    bool is_first;

    ring_lock(session);
    is_first = ring_has_idle_workers(session) && ring_is_first(session, part->step) &&
               a_trainer_waits(session);
    ring_unlock(session);
    return is_first;
}

/* Wait until the answer begins to come. A trainer that waits for the part does not have to wait
 * until it is late: if there is nothing else to do here, this thread gives the answer up, of which
 * nothing has come, and makes the part. So the part's place has one writer all the time, and what
 * comes later is dropped. */
static tundish_status
await_answer(struct line *line, const struct part *part, int64_t patience_ns, int64_t deadline_ns)
{
    int64_t until_ns = tnd_clock_deadline_ns(patience_ns);

    for (;;) {
        tundish_status status =
            helper_line_await(&line->wire, until_ns < deadline_ns ? until_ns : deadline_ns);
        int64_t now_ns = tnd_clock_ns();

        if (status != TUNDISH_E_TIMEOUT || now_ns >= deadline_ns ||
            helpers_stop(line->worker.session))
            return status;
        if (is_missed(line, part)) {
            line->owed_until_ns = deadline_ns;
            return status;
        }
        until_ns = now_ns + AGAIN_NS;
    }
}

/* The nearer its time is to the limit, the fewer: they are spread out. */
static bool
is_to_be_compared(const struct line *line)
{
    const struct helpers *helpers = line->helpers;
    int64_t limit_ns = (tnd_clock_ns() - helpers->opened_ns) / 100 * COMPARED_PERCENT *
                       helpers->session->worker_count;
    int64_t left_ns = limit_ns - atomic_load_explicit(&helpers->compared_ns, memory_order_relaxed);
    uint32_t times = line->has_same_files ? COMPARED_OF_SAME_FILES : COMPARED_EVERY;

    if (line->is_new)
        return true;
    if (left_ns <= 0 || helper_draw_below(times) != 0)
        return false;
    return left_ns >= limit_ns / 2 ||
           (int64_t)helper_draw_below(1000) * (limit_ns / 2000) < left_ns;
}

/* The part has come, beside its slot: make it here, and look whether it is the same. */
static tundish_status
compare(struct line *line, const struct part *part)
{
    int64_t began_ns = tnd_clock_ns();
    tundish_status status = make_here(line, part);

    atomic_fetch_add_explicit(&line->helpers->compared_ns, tnd_clock_ns() - began_ns,
                              memory_order_relaxed);
    if (status != TUNDISH_OK)
        return status;
    line->is_new = false;
    if (!helper_line_is_same(&line->wire, part)) {
        (void)tnd_fail(TUNDISH_E_CORRUPT, "it made other bytes than this server of the same rows");
        helper_bar(line);
    }
    return TUNDISH_OK;
}

/* It is in its slot, or beside it. */
static tundish_status
take(struct line *line, const struct part *part, const struct helper_made *made)
{
    tundish_status status = helper_count(line, part, made, line->took_ns);

    if (status == TUNDISH_OK && !part->step->shares[part->replica].fill->in_place)
        status = take_slices(line, part);
    if (status != TUNDISH_OK)
        return status;
    line->refusals = 0;
    take_skips(&line->worker, made);
    return TUNDISH_OK;
}

/* Rows that were left out are so here, too, or the helper reads other files. */
static bool
leaves_out_rows(const struct helper_made *made)
{
    return made->skipped > 0 && (made->flags & HELPER_HAS_SAME_FILES) == 0;
}

/* The part has come: of the same files as here, as far as the rows name some? A helper that has
 * others is barred. */
static tundish_status
check_files(struct line *line)
{
    bool differs = false;
    tundish_status status = helper_line_compare_reads(&line->wire, &differs);

    if (differs)
        helper_bar(line);
    else if (status != TUNDISH_OK)
        helper_note_failure(line, status);
    return status;
}

static tundish_status
make_by_helper(struct line *line, const struct part *part)
{
    bool compares = is_to_be_compared(line);
    struct helper_made made = { 0 };
    int64_t began_ns = tnd_clock_ns(), usual_ns, deadline_ns;
    tundish_status status;

    if (!is_worth_sending(line, part))
        return make_here(line, part);
    usual_ns = helper_usual_time(line, own_time(line, part));
    deadline_ns = helper_deadline(usual_ns);
    status = helper_line_ask(&line->wire, part, deadline_ns);
    if (status == TUNDISH_OK)
        status = await_answer(line, part, OVERTAKEN_TIMES * usual_ns, deadline_ns);
    if (status == TUNDISH_OK)
        status = helper_line_take(&line->wire, part, compares, deadline_ns, &made);
    line->took_ns = tnd_clock_ns() - began_ns;
    if (line->owed_until_ns != 0) {
        helper_note_overtaken(line);
        return make_here(line, part);
    }
    if ((made.flags & HELPER_HAS_OTHER_FILE) != 0) {
        helper_bar(line);
        return make_here(line, part);
    }
    if (status != TUNDISH_OK) {
        helper_note_failure(line, status);
        return make_here(line, part);
    }
    if (check_files(line) != TUNDISH_OK)
        return make_here(line, part);
    line->has_same_files = (made.flags & HELPER_HAS_SAME_FILES) != 0;
    if (compares || leaves_out_rows(&made))
        return compare(line, part);
    status = take(line, part, &made);
    if (status == TUNDISH_OK || status == TUNDISH_STOPPED)
        return status;
    helper_note_failure(line, status); /* it may have made more than there is */
    return make_here(line, part);
}

/* The ring's lock is held, but not while the part is made. */
static void
make_one(struct line *line, const struct part *part)
{
    struct session *session = line->worker.session;
    tundish_status status;

    budget_begin(&line->worker.memory);
    line->worker.part_ns = session->workers[0].part_ns;
    line->worker.part_waited_ns = line->took_ns = 0;
    /* There may be more to take. */
    pthread_cond_signal(&line->helpers->wanted);
    ring_unlock_due(session);
    status = make_by_helper(line, part);
    budget_end(&line->worker.memory);
    ring_lock(session);
    if (line->took_ns > 0)
        helper_note_time(line, line->took_ns, own_time(line, part),
                         line->owed_until_ns != 0 ||
                             (ring_has_idle_workers(session) && a_trainer_waits(session)));
    ring_finish(&line->worker, part, status);
}

static void
call(struct line *line)
{
    uint32_t threads = 0;

    line->is_new = true;
    line->has_same_files = false;
    if (helper_line_call(&line->wire, line->helper->address, &threads) == TUNDISH_OK)
        helper_note_up(line, threads);
    else
        helper_note_lost(line, false);
}

/* The connection can be used again once the answer has come that nobody waits for. */
static void
drop_answer(struct line *line)
{
    if (helper_line_drop(&line->wire, line->owed_until_ns) != TUNDISH_OK)
        helper_note_lost(line, true);
    line->owed_until_ns = 0;
}

/* A helper that is lost while it has nothing to do is to be seen as well, and called again. */
static void
look_after(struct line *line)
{
    struct session *session = line->worker.session;
    int64_t now_ns = tnd_clock_ns();
    tundish_status status;

    if (now_ns - line->looked_ns < HELPERS_SLEEP_NS)
        return;
    line->looked_ns = now_ns;
    ring_unlock_due(session);
    status = helper_wire_check(&line->wire.wire);
    if (status != TUNDISH_OK)
        helper_note_lost(line, true);
    ring_lock(session);
}

void *
helper_work(void *argument)
{
    struct line *line = argument;
    struct helpers *helpers = line->helpers;
    struct session *session = helpers->session;

    ring_lock(session);
    while (!helpers_stop(session)) {
        bool is_there = line->wire.wire.socket >= 0;
        int64_t wait_ns = is_there ? helper_until_ask(line) : helper_until_call(line);
        struct part part;

        if (line->owed_until_ns != 0) {
            ring_unlock_due(session);
            drop_answer(line);
            ring_lock(session);
        } else if (wait_ns > 0) {
            ring_wait(session, &helpers->later,
                      wait_ns < HELPERS_SLEEP_NS ? wait_ns : HELPERS_SLEEP_NS);
            if (is_there)
                look_after(line);
        } else if (!is_there) {
            ring_unlock_due(session);
            call(line);
            ring_lock(session);
        } else if (!helpers->is_over && take_if_wanted(line, &part)) {
            make_one(line, &part);
        } else {
            wait_for_wish(helpers);
            look_after(line);
        }
    }
    ring_unlock_due(session);
    return NULL;
}
