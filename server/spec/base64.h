/* base64.h - bytes out of their base64 text (RFC 4648, the usual alphabet). */
#ifndef SPEC_BASE64_H
#define SPEC_BASE64_H

#include "core/bytes.h"

/* `to` has room for as many bytes as the text, and may be the text itself. Padding may be left
 * out. False: a character does not belong there. */
bool base64_decode(struct byte_view text, uint8_t *to, uint64_t *ret_size);

#endif
