/* transfer_whole.c - the whole object where a range was asked for.
 *
 * A server that sends no ranges answers with all of it, and may not say how long it is. The range
 * of a small object is cut from the answer. Each range of a larger one would cost all bytes before
 * it, so the object is read into the cache on disk, if there is one (whole.h). */
#include "remote/transfer_private.h"

static uint64_t
most_bytes(const struct transfer_want *want)
{
    return want->first == 0 && want->bytes > want->whole_max ? want->bytes : want->whole_max;
}

static bool
refuse_size(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;

    transfer->answer.is_too_large = true;
    return transfer_refuse(
        transfer,
        tnd_fail(TUNDISH_E_DATA,
                 "%s: the server does not send parts of files (Range), and this one is larger than "
                 "%s, or serve it from a store, or from a server that does",
                 want->name,
                 want->has_disk ? "the cache; raise remote.cache_bytes"
                                : "a part; raise remote.part, or name a folder in remote.cache, "
                                  "where all of it can be kept"));
}

bool
whole_accept(struct transfer *transfer)
{
    struct transfer_want *want = &transfer->want;
    struct answer *answer = &transfer->answer;

    if (answer->has_bad_length && !answer->is_chunked)
        return transfer_try_again(transfer, CAUSE_WRONG);
    answer->has_total = answer->has_length && !answer->is_chunked;
    answer->total = answer->length;
    if (transfer_has_changed(transfer))
        return transfer_refuse(transfer, transfer_changed(transfer));
    if (answer->has_total && answer->total > most_bytes(want) && !want->is_look)
        return refuse_size(transfer);
    /* Where the last bytes begin may be known with the last one only, and all come anyway. */
    if (want->is_tail) {
        want->first = 0;
        want->bytes = most_bytes(want);
        want->is_tail = false;
    }
    transfer->is_whole = true;
    transfer->whole_bytes = 0;
    /* The bytes before are sent once more. */
    transfer->got = 0;
    return true;
}

size_t
whole_take(struct transfer *transfer, const char *data, size_t bytes)
{
    const struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;
    uint64_t begin = transfer->whole_bytes, end = begin + bytes;
    uint64_t first = want->first + transfer->got, last = want->first + want->bytes;

    if (want->is_look && answer->has_total) {
        transfer->has_enough = true;
        return 0;
    }
    if (end > most_bytes(want)) {
        (void)refuse_size(transfer);
        return 0;
    }
    last = last < end ? last : end;
    if (first < last) {
        if (!want->put(want->context, transfer->got, data + (first - begin),
                       (size_t)(last - first))) {
            (void)transfer_refuse(transfer, TUNDISH_E_SYSTEM);
            return 0;
        }
        transfer->got += last - first;
    }
    transfer->whole_bytes = end;
    transfer->attempt_got += bytes;
    return bytes;
}

/* libcurl has held the body to its length or its chunks, if it has either. One that ends with its
 * connection may have been cut, which only a size that is known already tells. */
enum transfer_cause
whole_judge(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    struct answer *answer = &transfer->answer;

    if (answer->has_total)
        return transfer->has_enough || transfer->whole_bytes == answer->total ? CAUSE_NONE
                                                                              : CAUSE_SHORT;
    if (want->total != UINT64_MAX && transfer->whole_bytes < want->total)
        return CAUSE_SHORT;
    answer->has_total = true;
    answer->total = transfer->whole_bytes;
    if (!transfer_has_changed(transfer))
        return CAUSE_NONE;
    (void)transfer_refuse(transfer, transfer_changed(transfer));
    return CAUSE_FINAL;
}
