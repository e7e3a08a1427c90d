/* transfer_end.c - what the end of an attempt means. */
#include "remote/transfer_private.h"

#include <stdio.h>

#include "core/log.h"
#include "remote/refusal.h"

/* Fewer bytes than this do not count as progress: a server that sends one at a time and closes must
 * not be asked for ever. */
enum { PROGRESS_BYTES = 64 << 10 };

static enum transfer_cause
end_finally(struct transfer *transfer, tundish_status status)
{
    (void)transfer_refuse(transfer, status);
    return CAUSE_FINAL;
}

/* The server has no bytes at that range. That is right for an empty object; but not every store
 * says the size with it, so it is asked for. */
static enum transfer_cause
judge_unsatisfied(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    struct answer *answer = &transfer->answer;

    if (answer->has_total && answer->total == 0 && want->first == 0 &&
        (want->total == UINT64_MAX || want->total == 0))
        return CAUSE_NONE;
    if (want->total != UINT64_MAX)
        return end_finally(transfer, transfer_changed(transfer));
    if (!answer->has_total && !transfer->asks_size && want->first == 0) {
        transfer->asks_size = true;
        return CAUSE_WRONG;
    }
    return CAUSE_WRONG;
}

static enum transfer_cause
ask_for_first_byte(struct transfer *transfer)
{
    transfer->asks_size = false;
    transfer->want.is_ranged = true;
    transfer->want.first = 0;
    transfer->want.bytes = 1;
    return CAUSE_WRONG;
}

/* HEAD does not tell the size. */
static enum transfer_cause
ask_without_head(struct transfer *transfer)
{
    if (!transfer->want.is_ranged)
        return ask_for_first_byte(transfer);
    transfer->asks_size = false;
    transfer->lacks_total = false;
    transfer->asks_whole = true;
    return CAUSE_ASK;
}

/* The range is asked for once more: of that version, whose size is known now. */
static enum transfer_cause
learn_total(struct transfer *transfer)
{
    struct transfer_want *want = &transfer->want;
    uint64_t total = transfer->answer.length;

    transfer->answer.has_total = true;
    transfer->answer.total = total;
    if (transfer_has_changed(transfer))
        return end_finally(transfer, transfer_changed(transfer));
    transfer->asks_size = false;
    transfer->lacks_total = false;
    if (want->is_tail) {
        want->bytes = want->bytes < total ? want->bytes : total;
        want->first = total - want->bytes;
        want->is_tail = false;
    }
    transfer_hold_version(transfer);
    return CAUSE_ASK;
}

static enum transfer_cause
judge_size(struct transfer *transfer)
{
    struct answer *answer = &transfer->answer;

    if (!answer->has_length || answer->is_chunked || (transfer->lacks_total && answer->length == 0))
        return ask_without_head(transfer);
    if (transfer->lacks_total)
        return learn_total(transfer);
    if (answer->length > 0 && !transfer->want.is_look) {
        transfer->asks_size = false;
        return CAUSE_WRONG;
    }
    answer->has_total = true;
    answer->total = answer->length;
    return CAUSE_NONE;
}

/* An answer that is complete as HTTP goes. */
static enum transfer_cause
judge_body(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;

    /* A body of no bytes was never looked at. */
    if (!transfer->is_accepted && !transfer_accept_body(transfer))
        return transfer->cause;
    if (transfer->is_whole)
        return whole_judge(transfer);
    return !want->is_ranged || transfer->got == transfer_wanted_bytes(transfer) ? CAUSE_NONE
                                                                                : CAUSE_SHORT;
}

/* An object that was replaced is found by its ETag, its date or its size. A server that sends but
 * the size is named once: of a file that keeps it, rows of both versions would be read, and nobody
 * could tell. */
static void
tell_of_versions(const struct transfer *transfer)
{
    const struct answer *answer = &transfer->answer;
    const struct transfer_want *want = &transfer->want;

    if ((!want->is_ranged && !want->is_look) || answer->tag[0] != '\0' ||
        answer->modified[0] != '\0' || atomic_exchange(&want->store->is_told, true))
        return;
    tnd_log(TND_LOG_WARNING, "remote",
            "%s: it sends neither ETag nor Last-Modified: a file that is replaced while it is read "
            "is noticed only if its size changes; do not replace files there while they are served",
            want->store->name);
}

static enum transfer_cause
judge_success(struct transfer *transfer)
{
    enum transfer_cause cause = transfer->asks_size && transfer->answer.code == 200
                                    ? judge_size(transfer)
                                    : judge_body(transfer);

    if (cause == CAUSE_NONE)
        tell_of_versions(transfer);
    return cause;
}

/* A presigned address is signed for GET alone, and some servers know no HEAD: the answer to a
 * request for the first byte says as much. */
static bool
refuses_looks(const struct transfer *transfer)
{
    int code = transfer->answer.code;

    return transfer->asks_size && (transfer->want.is_look || transfer->lacks_total) &&
           !transfer->want.is_of_store && (code == 403 || code == 405 || code == 501);
}

static enum transfer_cause
judge_answer(struct transfer *transfer)
{
    int code = transfer->answer.code;

    if (refuses_looks(transfer))
        return ask_without_head(transfer);
    if (transfer_is_success(code))
        return judge_success(transfer);
    if (code == 416)
        return judge_unsatisfied(transfer);
    if (code == 412)
        return end_finally(transfer, transfer_changed(transfer));
    if (refusal_may_pass(code, transfer->body, transfer->body_bytes))
        return CAUSE_SERVER;
    return end_finally(transfer, refusal_of_answer(transfer));
}

static enum transfer_cause
judge(struct transfer *transfer, CURLcode result)
{
    /* Found while it came: the code of libcurl says only that it was cut. */
    if (transfer->cause != CAUSE_NONE)
        return transfer->cause;
    if (transfer->has_enough)
        return judge_answer(transfer);
    switch (result) {
    case CURLE_OK:
        return judge_answer(transfer);
    case CURLE_OPERATION_TIMEDOUT:
        return CAUSE_STALLED;
    case CURLE_PARTIAL_FILE:
        return CAUSE_SHORT;
    case CURLE_COULDNT_RESOLVE_HOST:
    case CURLE_COULDNT_RESOLVE_PROXY:
    case CURLE_COULDNT_CONNECT:
        return CAUSE_CONNECT;
    case CURLE_SSL_CONNECT_ERROR:
        if (refusal_is_of_plain_server(transfer))
            return end_finally(transfer, refusal_of_library(transfer, result));
        return CAUSE_CONNECT;
    case CURLE_GOT_NOTHING:
    case CURLE_SEND_ERROR:
    case CURLE_RECV_ERROR:
        return CAUSE_CONNECT;
    default:
        return end_finally(transfer, refusal_of_library(transfer, result));
    }
}

/* Bytes that had come before are not progress. */
static void
note_failure(struct transfer *transfer)
{
    bool is_progress = transfer->got >= transfer->reached + PROGRESS_BYTES;

    if (is_progress)
        transfer->reached = transfer->got;
    transfer->failures = is_progress ? 1 : transfer->failures + 1;
}

enum transfer_cause
transfer_end(struct transfer *transfer, CURLcode result)
{
    enum transfer_cause cause = judge(transfer, result);

    /* Said now, in case that this was the last attempt. */
    if (cause != CAUSE_NONE && cause != CAUSE_FINAL) {
        transfer->status = refusal_of_attempt(transfer, cause, result);
        snprintf(transfer->sentence, sizeof transfer->sentence, "%s", tnd_error_text());
    }
    if (cause != CAUSE_ASK)
        note_failure(transfer);
    transfer_end_attempt(transfer);
    return cause;
}

void
transfer_cut(struct transfer *transfer)
{
    transfer->cuts++;
    transfer_end_attempt(transfer);
}
