/* json_hint.c - go through the members of the outermost object for the nearest name. Only records
 * that are bad come here. */
#include "content/records/json_reading.h"

#include <stdio.h>

#include "content/records/json_scan.h"
#include "content/records/json_string.h"
#include "core/printable.h"
#include "spec/errors.h"

enum { NAMES_MAX = 256, NAME_BYTES = 64 };

static bool
take(const uint8_t **at, const uint8_t *end, char byte)
{
    json_scan_blanks(at, end);
    if (*at >= end || **at != (uint8_t)byte)
        return false;
    ++*at;
    return true;
}

/* The next member's name, as it is written, and past its value. */
static bool
next_name(const uint8_t **at, const uint8_t *end, char name[NAME_BYTES])
{
    const uint8_t *begin;
    bool has_escapes;
    size_t bytes;

    if (!take(at, end, '"'))
        return false;
    begin = *at;
    if (json_string_scan(at, end, &has_escapes) != NULL)
        return false;
    bytes = (size_t)(*at - begin);
    bytes = bytes < NAME_BYTES ? bytes : NAME_BYTES - 1;
    memcpy(name, begin, bytes);
    name[bytes] = '\0';
    ++*at;
    return take(at, end, ':') && json_scan_value(at, end) == NULL;
}

void
json_hint(struct byte_view record, const char *name, char *ret_text, size_t room)
{
    char names[NAMES_MAX][NAME_BYTES], shown[4 * NAME_BYTES];
    const char *list[NAMES_MAX], *nearest;
    const uint8_t *at = record.data, *end = record.data + record.size;
    size_t count = 0;

    ret_text[0] = '\0';
    if (!take(&at, end, '{'))
        return;
    while (count < NAMES_MAX && next_name(&at, end, names[count])) {
        list[count] = names[count];
        count++;
        if (!take(&at, end, ','))
            break;
    }
    nearest = spec_nearest(name, list, count);
    if (nearest == NULL)
        return;
    (void)tnd_printable(nearest, shown, sizeof shown);
    snprintf(ret_text, room, "; the record has '%s'", shown);
}
