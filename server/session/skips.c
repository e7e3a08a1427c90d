/* skips.c - bad rows, told about once a second. */
#include "session/skips.h"

#include <inttypes.h>
#include <stdio.h>

#include "core/clock.h"
#include "core/log.h"
#include "core/must.h"
#include "core/plural.h"

static const int64_t TELL_NS = 1000000000;

void
skips_tell_rest(struct skips *skips)
{
    uint64_t fresh = skips->count - skips->told_count;

    must_in_debug(skips->count >= skips->told_count);
    if (fresh == 0)
        return;
    tnd_log(TND_LOG_WARNING, "skip",
            "stream %s: %" PRIu64 " bad row%s left out, %" PRIu64 " so far; the last: %s",
            skips->stream, fresh, TND_PLURAL(fresh), skips->count, skips->text);
    skips->told_count = skips->count;
    skips->told_ns = tnd_clock_ns();
}

void
skips_tell(struct skips *skips)
{
    /* The first bad row is told at once: the user needs to see it. */
    if (skips->told_count == 0 || tnd_clock_ns() - skips->told_ns >= TELL_NS)
        skips_tell_rest(skips);
}

tundish_status
skips_add(struct skips *skips, uint64_t count, const char *text)
{
    if (count == 0)
        return TUNDISH_OK;
    skips->count += count;
    snprintf(skips->text, sizeof skips->text, "%s", text);
    skips_tell(skips);
    if (skips->count - skips->count_before > skips->limit)
        return tnd_fail(TUNDISH_E_DATA,
                        "%" PRIu64 " bad rows, more than on_error: skip:%" PRIu64 " allows: %s",
                        skips->count - skips->count_before, skips->limit, text);
    return TUNDISH_OK;
}
