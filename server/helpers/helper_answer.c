/* helper_answer.c - one request and its answer. */
#include <stdlib.h>
#include <string.h>

#include "core/clock.h"
#include "core/memory.h"
#include "helpers/helper_serve_private.h"
#include "order/arguments.h"
#include "order/run.h"

/* To say the rest of a request once it has begun, and to take an answer, whose memory others may
 * wait for. */
static const int64_t MESSAGE_NS = 30000000000;

/* Rows of fixed columns: the bytes, or E_CORRUPT if they are more than an answer may have. */
static tundish_status
check_rows(const struct fill *fill, uint64_t rows)
{
    for (uint32_t i = 0; i < fill->plan->element_spec.count; i++) {
        const struct fill_column *column = &fill->columns[i];
        uint64_t bytes = column->value_bytes;

        if (column->row_bytes == NULL &&
            (__builtin_mul_overflow(bytes, (uint64_t)column->row_values, &bytes) ||
             __builtin_mul_overflow(bytes, rows, &bytes) || bytes > HELPER_ANSWER_BYTES))
            return helper_makes_no_sense();
    }
    return TUNDISH_OK;
}

static uint64_t
place_buffers(struct helper_connection *connection)
{
    uint64_t all = 0;

    for (uint32_t i = 0; i < connection->slot.buffer_count; i++) {
        struct slot_buffer *buffer = &connection->slot.buffers[i];

        all += buffer->stored_bytes;
        if (all > HELPER_ANSWER_BYTES)
            return all;
        buffer->data = scratch_alloc(connection->evaluation.scratch, buffer->stored_bytes);
    }
    return all;
}

static tundish_status
make_rows(struct helper_connection *connection, const struct helper_ask *ask,
          const struct fill *fill, const struct deal_slice *slice, uint64_t *ret_bytes)
{
    int64_t rows = fill_rows(fill, slice);
    tundish_status status = (uint64_t)rows == ask->rows && rows > 0 ? check_rows(fill, ask->rows)
                                                                    : helper_makes_no_sense();

    if (status != TUNDISH_OK)
        return status;
    (void)fill_describe(fill, slice, &connection->slot);
    if (place_buffers(connection) > HELPER_ANSWER_BYTES)
        return tnd_fail(TUNDISH_E_DATA, "the rows take too many bytes");
    fill_begin(fill, slice, &connection->slot);
    status = fill_part(fill, &connection->evaluation, slice, 0, rows, &connection->slot);
    *ret_bytes = fill_places(fill, 0, rows, &connection->slot, connection->places);
    return status;
}

/* The slice's buffers become pieces of the answer, and its head is written. */
static tundish_status
make_slice(struct helper_connection *connection, const struct fill *fill,
           const struct deal_slice *slice, struct iovec *ret_places)
{
    struct filled filled = { .reserved = NULL };
    struct slot *slot = &connection->slot;
    tundish_status status =
        fill_make(fill, &connection->evaluation, connection->context, slice, slot, &filled);

    if (status != TUNDISH_OK)
        return status;
    if (place_buffers(connection) > HELPER_ANSWER_BYTES)
        return tnd_fail(TUNDISH_E_DATA, "the slice takes too many bytes");
    fill_copy(fill, &filled, slot);
    helper_write_head(slot, &connection->answer);
    for (uint32_t i = 0; i < slot->buffer_count; i++)
        ret_places[i] = (struct iovec){ slot->buffers[i].data, slot->buffers[i].stored_bytes };
    return TUNDISH_OK;
}

/* Has the batch as many slices, from the one that is asked for on? */
static bool
has_slices(const struct plan *plan, const uint64_t *words, uint32_t more)
{
    const struct plan_node *root = plan->graph->root;
    const struct slices_arguments *arguments = root->arguments;
    uint64_t first;

    if (!plan->cuts_batches)
        return more == 0;
    first = words[root->width - 1];
    return first < (uint64_t)arguments->slices && more < (uint64_t)arguments->slices - first;
}

/* The slice and `ask->more` after it, which are cut from one batch, that is made once. */
static tundish_status
make_slices(struct helper_connection *connection, const struct helper_ask *ask,
            struct byte_view packed, uint64_t *words, uint64_t *ret_bytes)
{
    const struct helped *stream = connection->stream;
    struct deal_slice slice = { .present = true, .words = words };
    struct evaluated_whole whole = { 0 };
    uint32_t each = connection->slot.buffer_count;
    const struct fill *fill = &stream->fills[ask->packed != 0];
    tundish_status status = TUNDISH_OK;

    if (!has_slices(stream->plan, words, ask->more))
        return helper_makes_no_sense();
    connection->places = tnd_realloc(connection->places, (size_t)each * (ask->more + 1) + 3,
                                     sizeof *connection->places);
    connection->answer.used = 0;
    connection->evaluation.whole = &whole;
    for (uint32_t i = 0; i <= ask->more && status == TUNDISH_OK; i++) {
        if (i > 0) {
            fill = &stream->fills[packed.data[i - 1] != 0];
            words[stream->plan->graph->root->width - 1]++;
        }
        status = fill->columns == NULL
                     ? helper_makes_no_sense()
                     : make_slice(connection, fill, &slice, connection->places + 1 + each * i);
    }
    connection->evaluation.whole = NULL;
    connection->places[0] = (struct iovec){ connection->answer.bytes, connection->answer.used };
    *ret_bytes = 0;
    for (uint32_t i = 0; i <= each * (ask->more + 1) && status == TUNDISH_OK; i++)
        *ret_bytes += connection->places[i].iov_len;
    return status;
}

/* Make what is asked for into the slot, whose pieces are then the answer. */
static tundish_status
make_part(struct helper_connection *connection, const struct helper_ask *ask, uint64_t *ret_bytes)
{
    const struct plan_node *root = connection->stream->plan->graph->root;
    const struct fill *fill = &connection->stream->fills[ask->packed != 0];
    struct byte_view from = { connection->asked.bytes, ask->bytes };
    uint64_t words[PLAN_WIDTH_MAX];
    struct deal_slice slice = { .present = true, .words = words };
    struct byte_view packed;
    tundish_status status = TUNDISH_OK;

    connection->is_unsure = false;
    connection->reads.used = 0;
    if (fill->columns == NULL || (ask->in_place != 0) != fill->in_place ||
        ask->more > (fill->in_place ? 0 : from.size))
        return helper_makes_no_sense();
    from.size -= ask->more;
    packed = (struct byte_view){ from.data + from.size, ask->more };
    status = helper_enter_names(connection, ask->name_count, &from);
    if (status == TUNDISH_OK)
        status = helper_read_elements(connection, from, words);
    if (status != TUNDISH_OK)
        return status;
    status = fill->in_place ? make_rows(connection, ask, fill, &slice, ret_bytes)
                            : make_slices(connection, ask, packed, words, ret_bytes);
    run_words_release(words, 1, root->width, root->run_words);
    if (status == TUNDISH_OK && connection->reads.used > HELPER_READS_BYTES)
        status = tnd_fail(TUNDISH_E_DATA, "the names of the rows' files take too many bytes");
    return status;
}

/* A file that is read by its path may be missing here, and there at the server: so the answer must
 * not leave out a row. Files of records are compared when they are named. */
static tundish_status
check_skips(const struct helper_connection *connection, uint64_t skipped)
{
    if (skipped == 0 || !connection->stream->reads_whole_files)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA, "%s", connection->evaluation.skipped_text);
}

/* How many pieces of the answer have been made. */
static int
answer_pieces(const struct helper_connection *connection, const struct helper_ask *ask)
{
    if (ask->in_place)
        return (int)connection->stream->plan->element_spec.count;
    return 1 + (int)(connection->slot.buffer_count * (ask->more + 1));
}

static tundish_status
send_answer(struct helper_connection *connection, const struct helper_ask *ask,
            struct helper_answer *answer)
{
    struct helper_wire *wire = &connection->wire;
    char *skipped = connection->evaluation.skipped_text;
    struct iovec text = { 0 };
    int count = 0;
    tundish_status status;

    if (answer->status != TUNDISH_OK) {
        text.iov_base = (void *)(uintptr_t)tnd_error_text();
        text.iov_len = answer->bytes = strnlen(text.iov_base, HELPER_TEXT_BYTES - 1);
        connection->places[count++] = text;
    } else {
        count = answer_pieces(connection, ask);
        if (answer->skipped > 0)
            answer->skipped_bytes = (uint32_t)strnlen(skipped, HELPER_TEXT_BYTES - 1);
        connection->places[count++] = (struct iovec){ skipped, answer->skipped_bytes };
        answer->reads_bytes = (uint32_t)connection->reads.used;
        connection->places[count++] =
            (struct iovec){ connection->reads.bytes, connection->reads.used };
    }
    wire->deadline_ns = tnd_clock_deadline_ns(MESSAGE_NS);
    status = helper_send(wire, &(struct iovec){ answer, sizeof *answer }, 1);
    return status == TUNDISH_OK ? helper_send(wire, connection->places, count) : status;
}

/* Wait for a request as long as it takes to come, but not for the rest of one. */
static tundish_status
take_ask(struct helper_connection *connection, struct helper_ask *ret_ask)
{
    struct helper_wire *wire = &connection->wire;
    tundish_status status;

    wire->deadline_ns = TND_CLOCK_NEVER;
    status = helper_wire_readable(wire);
    wire->deadline_ns = tnd_clock_deadline_ns(MESSAGE_NS);
    if (status == TUNDISH_OK)
        status = helper_receive(wire, &(struct iovec){ ret_ask, sizeof *ret_ask }, 1);
    if (status == TUNDISH_OK && ret_ask->bytes > HELPER_ASK_BYTES)
        status = helper_makes_no_sense();
    return status == TUNDISH_OK ? helper_receive_stated(wire, ret_ask->bytes, &connection->asked)
                                : status;
}

tundish_status
helper_answer_one(struct helper_connection *connection)
{
    struct helper_ask ask;
    struct helper_answer answer = { 0 };
    uint64_t skipped = connection->evaluation.skipped;
    int64_t began_ns;
    tundish_status status = take_ask(connection, &ask);

    if (status != TUNDISH_OK)
        return status;
    while (sem_wait(&connection->server->turns) != 0)
        continue;
    budget_begin(&connection->memory);
    began_ns = tnd_clock_ns();
    answer.number = ask.number;
    answer.status = make_part(connection, &ask, &answer.bytes);
    answer.busy_ns = (uint64_t)(tnd_clock_ns() - began_ns);
    answer.skipped = connection->evaluation.skipped - skipped;
    if (answer.status == TUNDISH_OK)
        answer.status = check_skips(connection, answer.skipped);
    if (answer.status == TUNDISH_OK && !connection->is_unsure)
        answer.flags |= HELPER_HAS_SAME_FILES;
    if (answer.status != TUNDISH_OK && connection->different != NULL)
        answer.flags |= HELPER_HAS_OTHER_FILE;
    sem_post(&connection->server->turns);
    status = send_answer(connection, &ask, &answer);
    scratch_reset(connection->evaluation.scratch);
    budget_end(&connection->memory);
    return status;
}
