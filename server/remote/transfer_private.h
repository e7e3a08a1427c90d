/* transfer_private.h - shared by the files of a transfer. */
#ifndef REMOTE_TRANSFER_PRIVATE_H
#define REMOTE_TRANSFER_PRIVATE_H

#include "remote/transfer.h"

void transfer_end_attempt(struct transfer *transfer);

/* Trying again cannot help; tnd_error_text() says why. False. */
bool transfer_refuse(struct transfer *transfer, tundish_status status);

/* E_DATA: the object is another one than at first. */
tundish_status transfer_changed(const struct transfer *transfer);

/* For libcurl. */
size_t transfer_take_header(char *line, size_t size, size_t count, void *transfer);
size_t transfer_take_body(char *data, size_t size, size_t count, void *transfer);

bool transfer_is_success(int code);

/* Is the answer's body what was asked for? Otherwise transfer->cause says why not. */
bool transfer_accept_body(struct transfer *transfer);

/* How many bytes the whole answer has. */
uint64_t transfer_wanted_bytes(const struct transfer *transfer);

#endif
