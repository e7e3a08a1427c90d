/* printable.h - text of others as people and programs may read it.
 *
 * Names come from files, sockets and pipeline files, and end in log lines, labels and terminals. A
 * newline in one forges a log line, an escape sequence repaints a terminal, and bytes that are not
 * UTF-8 make a page of metrics unreadable.
 */
#ifndef TND_CORE_PRINTABLE_H
#define TND_CORE_PRINTABLE_H

#include <stddef.h>
#include <stdint.h>

/* Bytes of the UTF-8 character at `text`, of which `left` bytes are there; 0: it is not one. */
unsigned tnd_printable_utf8_length(const uint8_t *text, uint64_t left);

/* Copy `text` with control characters, and bytes that are not UTF-8, as \xNN. Cut between
 * characters where `room` ends; always ends with a NUL. Returns what the whole would take, without
 * its NUL. */
size_t tnd_printable(const char *text, char *ret_text, size_t room);

#endif
