/* claim.c - of an evaluation: the right to the next entry, before the reader looks at it.
 *
 * The server takes back a shard of which this reader has not begun anything, for readers that wait
 * (layout.h, TND_CLAIM). The entries of such a shard leave a gap: the reader passes over them at
 * once, while it may still hold batches from before it. Their numbers, less the gap, are without
 * a hole again, and count what is done.
 */
#include "client/reader.h"
#include "core/status.h"

void
tnd_claim_begin(struct attachment *attachment)
{
    _Atomic uint64_t *claim = &attachment->returns->claim;

    if ((attachment->welcome.flags & TND_WELCOME_CLAIMS) != 0 && atomic_load(claim) == 0)
        atomic_store(claim, TND_CLAIM(attachment->taken));
}

static tundish_status
pass_gap(tundish_reader *reader)
{
    struct attachment *attachment = reader->attachments;
    struct tnd_returns *returns = attachment->returns;
    uint64_t until = atomic_load(&tnd_own_line(attachment)->back_until);
    bool is_wrong;

    pthread_mutex_lock(&reader->lock);
    is_wrong = until <= attachment->taken || attachment->released < attachment->gap_until;
    if (!is_wrong) {
        attachment->gap_before += attachment->gap_until - attachment->gap_from;
        attachment->gap_from = attachment->taken;
        attachment->gap_until = attachment->taken = until;
        atomic_store(&returns->taken, until);
        tnd_release_advance(attachment);
    }
    pthread_mutex_unlock(&reader->lock);
    if (is_wrong)
        return tnd_fail(TUNDISH_E_CORRUPT, "the server took back a shard in a wrong place");
    atomic_store(&returns->claim, TND_CLAIM(until));
    return TUNDISH_OK;
}

tundish_status
tnd_reader_claim(tundish_reader *reader, bool *ret_is_ours)
{
    const struct attachment *attachment = reader->attachments;
    _Atomic uint64_t *claim = &attachment->returns->claim;
    uint64_t next = TND_CLAIM(attachment->taken), found = next;

    *ret_is_ours = true;
    if ((attachment->welcome.flags & TND_WELCOME_CLAIMS) == 0)
        return TUNDISH_OK;
    /* The entry may be ours already: an earlier call failed after its claim. */
    if (atomic_compare_exchange_strong(claim, &found, TND_CLAIM(attachment->taken + 1)) ||
        found == TND_CLAIM(attachment->taken + 1))
        return TUNDISH_OK;
    *ret_is_ours = false;
    if (found != (next | TND_CLAIM_TAKEN_BACK))
        return tnd_fail(TUNDISH_E_CORRUPT, "the claim to a batch is of another batch");
    return pass_gap(reader);
}
