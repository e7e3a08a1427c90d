/* redact.h - takes secrets out of a text that people will see.
 *
 * Addresses carry them: a user's name and password before the host, tokens, keys and signatures
 * among the parameters. Every sentence, log line and name that is shown goes through here.
 */
#ifndef TND_CORE_REDACT_H
#define TND_CORE_REDACT_H

#include <stddef.h>

/* In the addresses of the text, in place: put *** for what stands before a host's @, and for the
 * value of each parameter that is not known to be harmless. The text never grows. Any thread. */
void tnd_redact(char *text);

/* The same of a text that is an address, or is meant to be one: blanks and quotes, which would end
 * it, are put as _. */
void tnd_redact_address(char *text);

/* How many bytes of a web address stay the same when it is signed again: those before its
 * parameters, if one of them is a secret; else all. Any other text: all. */
size_t tnd_redact_unsigned_bytes(const char *text);

#endif
