/* failure.c - see failure.h. */
#include "order/failure.h"

#include <string.h>

#include "core/memory.h"
#include "core/status.h"

tundish_status
order_status(enum order_result result)
{
    tundish_status status = tnd_status_last();

    if (result != ORDER_FAILED)
        return TUNDISH_OK;
    return status == TUNDISH_E_SYSTEM || status == TUNDISH_E_MEMORY ? status : TUNDISH_E_DATA;
}

struct order_failure *
order_failure_keep(void)
{
    const char *text = tnd_error_text();
    size_t bytes = strlen(text) + 1;
    struct order_failure *failure = tnd_alloc(sizeof *failure + bytes);

    failure->status = tnd_status_last();
    memcpy(failure->text, text, bytes);
    return failure;
}

void
order_failure_tell(const struct order_failure *failure)
{
    (void)tnd_fail(failure->status, "%s", failure->text);
}
