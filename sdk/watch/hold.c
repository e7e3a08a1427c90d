/* hold.c - a verdict stays for some seconds. */
#include "watch/hold.h"

#include <string.h>

static const int64_t HOLD_NS = INT64_C(3000000000);

static bool
is_usual(const struct watch_diagnosis *diagnosis)
{
    return diagnosis->level == WATCH_FINE || diagnosis->level == WATCH_WARNING ||
           diagnosis->level == WATCH_WAITING;
}

static bool
is_same(const struct watch_diagnosis *one, const struct watch_diagnosis *other)
{
    return one->level == other->level && one->cause == other->cause &&
           strcmp(one->culprit, other->culprit) == 0 && strcmp(one->stream, other->stream) == 0;
}

void
watch_hold(struct watch_held *held, int64_t now_ns, struct watch_diagnosis *diagnosis)
{
    if (is_same(&held->shown, diagnosis)) {
        held->shown = *diagnosis;
        return;
    }
    if (is_usual(&held->shown) && is_usual(diagnosis) && held->since_ns > 0 &&
        now_ns - held->since_ns < HOLD_NS) {
        *diagnosis = held->shown;
        return;
    }
    held->shown = *diagnosis;
    held->since_ns = now_ns;
}
