/* transfer_take.c - what comes of an answer: is it the right one, and whole? */
#include "remote/transfer_private.h"

#include <stdio.h>
#include <string.h>

#include "core/memory.h"
#include "remote/refusal.h"

/* The limit of status lines and headers, with those of redirects. */
enum { HEAD_BYTES_MAX = 256 << 10 };

/* The attempt ends here, and no other may help. */
bool
transfer_refuse(struct transfer *transfer, tundish_status status)
{
    transfer->cause = CAUSE_FINAL;
    transfer->status = status;
    snprintf(transfer->sentence, sizeof transfer->sentence, "%s", tnd_error_text());
    return false;
}

bool
transfer_try_again(struct transfer *transfer, enum transfer_cause cause)
{
    transfer->cause = cause;
    return false;
}

/* ETags are compared here too: weak ones cannot be a condition, and not every server keeps to
 * conditions. */
bool
transfer_has_changed(const struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;

    bool has_tags = want->tag != NULL && answer->tag[0] != '\0';

    if (has_tags && strcmp(want->tag, answer->tag) != 0)
        return true;
    if (!has_tags && want->modified != NULL && answer->modified[0] != '\0' &&
        strcmp(want->modified, answer->modified) != 0)
        return true;
    return want->total != UINT64_MAX && answer->has_total && answer->total != want->total;
}

tundish_status
transfer_changed(const struct transfer *transfer)
{
    return tnd_fail(TUNDISH_E_DATA,
                    "%s: the object was changed or replaced while it was served; restart the "
                    "stream",
                    transfer->want.name);
}

/* Does the address end in `.gz` or the like, so that a server may call the file what it is? */
static bool
is_packed_file(const char *address)
{
    static const char *const ends[] = { ".gz", ".tgz", ".zst", ".br", ".xz", ".bz2", ".Z" };
    size_t bytes = strcspn(address, "?");

    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        size_t end_bytes = strlen(ends[i]);

        if (bytes > end_bytes && memcmp(address + bytes - end_bytes, ends[i], end_bytes) == 0)
            return true;
    }
    return false;
}

/* Bytes that a server has packed on the way are not the file's, and nothing would tell. In a store
 * the encoding is a note that came with the object. */
static bool
accept_encoding(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    const char *encoding = transfer->answer.encoding;

    if (encoding[0] == '\0' || want->is_of_store || is_packed_file(want->address))
        return true;
    return transfer_refuse(
        transfer, tnd_fail(TUNDISH_E_DATA,
                           "%s: the server sends it as %s (Content-Encoding), and not its own "
                           "bytes; turn the server's compression off for such files",
                           want->name, encoding));
}

/* The answer to a request for the last bytes says where they are: from now on those are wanted. */
static bool
accept_tail(struct transfer *transfer)
{
    struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;
    uint64_t bytes;

    if (!answer->has_range || !answer->has_total || answer->last + 1 != answer->total)
        return false;
    bytes = answer->last + 1 - answer->first;
    if (bytes != want->bytes && (answer->first > 0 || bytes > want->bytes))
        return false;
    want->first = answer->first;
    want->bytes = bytes;
    want->is_tail = false;
    return true;
}

/* A range may come without the object's size. Then it is the known one, or has to be asked for: how
 * many bytes come says nothing, since a server may send fewer than it has. */
static bool
have_total(struct transfer *transfer)
{
    struct answer *answer = &transfer->answer;
    uint64_t total = transfer->want.total;

    if (!answer->has_range || answer->has_total)
        return true;
    answer->has_total = total != UINT64_MAX && answer->last < total;
    answer->total = total;
    if (answer->has_total)
        return true;
    if (total != UINT64_MAX)
        return transfer_try_again(transfer, CAUSE_WRONG);
    /* Nothing else told the size of an object that is looked at. */
    transfer->asks_whole = transfer->want.is_look;
    transfer->asks_size = transfer->lacks_total = !transfer->want.is_look;
    return transfer_try_again(transfer, CAUSE_ASK);
}

static bool
accept_part(struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;
    uint64_t first;

    if (transfer->asks_whole)
        return transfer_try_again(transfer, CAUSE_WRONG);
    if (!have_total(transfer))
        return false;
    if (want->is_tail && !accept_tail(transfer))
        return transfer_try_again(transfer, CAUSE_WRONG);
    first = want->first + transfer->got;
    if (!want->is_ranged || !answer->has_range || !answer->has_total || answer->first != first ||
        answer->last - want->first >= want->bytes)
        return transfer_try_again(transfer, CAUSE_WRONG);
    if (transfer_has_changed(transfer))
        return transfer_refuse(transfer, transfer_changed(transfer));
    /* All that there is of it. */
    if (answer->last - want->first + 1 != want->bytes && answer->last + 1 != answer->total)
        return transfer_try_again(transfer, CAUSE_WRONG);
    return true;
}

void
transfer_hold_version(struct transfer *transfer)
{
    struct transfer_want *want = &transfer->want;
    const struct answer *answer = &transfer->answer;

    if (want->tag == NULL && answer->tag[0] != '\0')
        want->tag = tnd_strdup(answer->tag);
    if (want->modified == NULL && answer->modified[0] != '\0')
        want->modified = tnd_strdup(answer->modified);
    if (!answer->has_total)
        return;
    want->total = answer->total;
    if (want->begun != NULL)
        want->begun(want->context, answer);
    want->begun = NULL;
}

bool
transfer_accept_body(struct transfer *transfer)
{
    if (!accept_encoding(transfer))
        return false;
    if (transfer->answer.code == 206)
        return accept_part(transfer);
    return !transfer->want.is_ranged || whole_accept(transfer);
}

size_t
transfer_take_header(char *line, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;

    transfer->head_bytes += size * count;
    if (transfer->head_bytes > HEAD_BYTES_MAX)
        return transfer_refuse(transfer, refusal_of_head(transfer));
    answer_line(&transfer->answer, line, size * count);
    return size * count;
}

bool
transfer_is_success(int code)
{
    return code == 200 || code == 206;
}

/* How many bytes the whole answer has. */
uint64_t
transfer_wanted_bytes(const struct transfer *transfer)
{
    const struct transfer_want *want = &transfer->want;
    uint64_t rest = want->is_ranged ? transfer->answer.total - want->first : want->bytes;

    return rest < want->bytes ? rest : want->bytes;
}

/* More came than the answer's own head says. So none of it is to be trusted. */
static bool
refuse_excess(struct transfer *transfer)
{
    if (!transfer->want.is_ranged)
        return transfer_refuse(transfer, tnd_fail(TUNDISH_E_DATA,
                                                  "%s: the answer is longer than %llu bytes; is it "
                                                  "the right server?",
                                                  transfer->want.name,
                                                  (unsigned long long)transfer->want.bytes));
    transfer->got = 0;
    return transfer_try_again(transfer, CAUSE_WRONG);
}

/* Returning less than what came ends the attempt. */
size_t
transfer_take_body(char *data, size_t size, size_t count, void *context)
{
    struct transfer *transfer = context;
    const struct transfer_want *want = &transfer->want;
    size_t bytes = size * count;

    if (!transfer_is_success(transfer->answer.code)) {
        size_t room = TRANSFER_BODY_BYTES - transfer->body_bytes;

        memcpy(transfer->body + transfer->body_bytes, data, bytes < room ? bytes : room);
        transfer->body_bytes += bytes < room ? bytes : room;
        return bytes;
    }
    if (!transfer->is_accepted) {
        if (!transfer_accept_body(transfer))
            return 0;
        transfer->is_accepted = true;
        if (want->is_ranged)
            transfer_hold_version(transfer);
    }
    if (transfer->is_whole)
        return whole_take(transfer, data, bytes);
    if (bytes > transfer_wanted_bytes(transfer) - transfer->got)
        return refuse_excess(transfer);
    if (!want->put(want->context, transfer->got, data, bytes))
        return transfer_refuse(transfer, TUNDISH_E_SYSTEM);
    transfer->got += bytes;
    transfer->attempt_got += bytes;
    return bytes;
}
