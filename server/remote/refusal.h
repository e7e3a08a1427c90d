/* refusal.h - sentences about requests that failed: the store's own code, the object, a remedy.
 * Each sets tnd_error_text and returns its status. */
#ifndef REMOTE_REFUSAL_H
#define REMOTE_REFUSAL_H

#include "remote/transfer.h"

/* May the same request succeed a little later? */
bool refusal_may_pass(int code, const char *body, size_t bytes);

/* The server said no. */
tundish_status refusal_of_answer(struct transfer *transfer);

/* The head of its answer has no end. */
tundish_status refusal_of_head(const struct transfer *transfer);

/* After libcurl could not begin with TLS: because the server does not speak it? */
bool refusal_is_of_plain_server(const struct transfer *transfer);

/* libcurl did. */
tundish_status refusal_of_library(const struct transfer *transfer, CURLcode result);

/* An attempt that may be made again. */
tundish_status refusal_of_attempt(const struct transfer *transfer, enum transfer_cause cause,
                                  CURLcode result);

#endif
