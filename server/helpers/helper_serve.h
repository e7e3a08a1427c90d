/* helper_serve.h - the helper's side: opens the streams that servers name, and makes parts of them.
 * It has no lanes, decides no order and keeps nothing of a part: it may be killed at any time. */
#ifndef HELPERS_HELPER_SERVE_H
#define HELPERS_HELPER_SERVE_H

#include <stdatomic.h>

#include "plan/plan.h"

struct helper_server;

struct helper_server_options {
    const char *listen; /* HOST:PORT; port 0: a free one */
    const struct spec_file *file;
    const struct learned *learned;
    const char *cache_folder;
    uint32_t thread_count;   /* parts made at a time */
    const _Atomic int *stop; /* not 0: it is to end */
};

/* Listens, and answers from now on. E_ARGUMENT: there is no key. */
tundish_status helper_server_open(const struct helper_server_options *options,
                                  struct helper_server **ret_server);
uint32_t helper_server_port(const struct helper_server *server);

/* Once *stop is not 0. Accepts NULL. */
void helper_server_close(struct helper_server *server);

#endif
