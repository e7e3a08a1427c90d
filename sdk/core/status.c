/* status.c - the thread's last explanation. */
#include "core/status.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "core/clock.h"
#include "core/redact.h"

static _Atomic uint64_t disk_full_count;
static _Atomic int64_t disk_full_ns;

static _Thread_local char explanation[2048];
static _Thread_local tundish_status last_status;

/* Bytes of the UTF-8 character at `at`, or 1 if it is not one. The NUL at the end of the text stops
 * the look ahead. */
static int
letter_bytes(const unsigned char *at, bool *ret_is_good)
{
    int more = at[0] >= 0xF0 ? 3 : at[0] >= 0xE0 ? 2 : 1;

    *ret_is_good = at[0] < 0x80;
    if (at[0] < 0xC2 || at[0] > 0xF4)
        return 1;
    for (int i = 1; i <= more; i++)
        if ((at[i] & 0xC0) != 0x80)
            return 1;
    if ((at[0] == 0xE0 && at[1] < 0xA0) || (at[0] == 0xED && at[1] > 0x9F) ||
        (at[0] == 0xF0 && at[1] < 0x90) || (at[0] == 0xF4 && at[1] > 0x8F))
        return 1;
    *ret_is_good = true;
    return more + 1;
}

/* Replace bytes that are not UTF-8. Sentences quote bytes of files, and may be cut within a
 * character; their readers, terminals and JSON parsers, need text. */
static void
make_readable(char *text)
{
    bool is_good;

    for (unsigned char *at = (unsigned char *)text; *at != '\0';) {
        int bytes = letter_bytes(at, &is_good);

        if (!is_good)
            *at = '?';
        at += bytes;
    }
}

static void
explain(const char *format, va_list arguments)
{
    char text[sizeof explanation];

    vsnprintf(text, sizeof text, format, arguments);
    tnd_redact(text);
    make_readable(text);
    memcpy(explanation, text, sizeof text);
}

tundish_status
tnd_fail(tundish_status status, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    explain(format, arguments);
    va_end(arguments);
    last_status = status;
    return status;
}

/* The explanation without the name that it begins with, where what was being done names it, too: at
 * its end, or first ("FILE, row group 2"). */
static const char *
without_name(const char *before)
{
    const char *colon = strstr(explanation, ": ");
    size_t name = colon != NULL ? (size_t)(colon - explanation) : 0;
    size_t all = strlen(before);
    const char *last;

    if (name == 0 || name > all)
        return explanation;
    last = before + all - name;
    if (memcmp(last, explanation, name) == 0 && (last == before || last[-1] == ' '))
        return colon + 2;
    return memcmp(before, explanation, name) == 0 && before[name] == ',' ? colon + 2 : explanation;
}

tundish_status
tnd_fail_while(tundish_status status, const char *format, ...)
{
    char before[sizeof explanation];
    char text[sizeof explanation];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(before, sizeof before, format, arguments);
    va_end(arguments);
    tnd_redact(before);
    snprintf(text, sizeof text, "%.900s: %.1100s", before, without_name(before));
    make_readable(text);
    memcpy(explanation, text, sizeof text);
    last_status = status;
    return status;
}

tundish_status
tnd_fail_errno(int error, const char *format, ...)
{
    char what[sizeof explanation];
    char reason[128];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(what, sizeof what, format, arguments);
    va_end(arguments);
    tnd_redact(what);
    if (error == ENOSPC || error == EDQUOT) {
        atomic_store_explicit(&disk_full_ns, tnd_clock_ns(), memory_order_relaxed);
        atomic_fetch_add_explicit(&disk_full_count, 1, memory_order_relaxed);
    }
    return tnd_fail(TUNDISH_E_SYSTEM, "%.1900s: %s", what,
                    strerror_r(error, reason, sizeof reason));
}

uint64_t
tnd_status_disk_full_count(void)
{
    return atomic_load_explicit(&disk_full_count, memory_order_relaxed);
}

int64_t
tnd_status_disk_full_ns(void)
{
    return atomic_load_explicit(&disk_full_ns, memory_order_relaxed);
}

const char *
tnd_error_text(void)
{
    return explanation;
}

tundish_status
tnd_status_last(void)
{
    return last_status;
}
