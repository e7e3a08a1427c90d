/* frame.c - memory for a stage's values, and bad elements. */
#include "column/frame.h"

#include "core/redact.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void *
frame_values(struct frame *output, uint32_t index, size_t bytes)
{
    /* The last stage writes straight into the batch if its size is known; this spares a copy. */
    if (output->destinations != NULL && output->destinations[index] != NULL &&
        output->destination_bytes[index] == bytes)
        return output->destinations[index];
    return scratch_alloc(output->scratch, bytes);
}

void *
frame_texts(const struct frame *output, uint32_t index, size_t bytes)
{
    if (output->destinations == NULL || output->destination_bytes[index] != bytes)
        return NULL;
    return output->destinations[index];
}

void
frame_reject(struct frame *frame, int64_t element, const char *format, ...)
{
    struct frame_errors *errors = frame->errors;
    va_list arguments;

    if (errors->bad == NULL) {
        errors->bad = scratch_alloc(frame->scratch, (size_t)frame->count);
        memset(errors->bad, 0, (size_t)frame->count);
    }
    if (errors->bad[element])
        return;
    errors->bad[element] = 1;
    errors->bad_count++;
    /* Stages reject in any order; the message is that of the first bad element, as tf.data reports
     * it. */
    if (errors->status != TUNDISH_OK && element >= errors->first_bad)
        return;
    errors->status = TUNDISH_E_DATA;
    errors->first_bad = element;
    va_start(arguments, format);
    vsnprintf(errors->text, sizeof errors->text, format, arguments);
    va_end(arguments);
    tnd_redact(errors->text);
}
