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

/* Is the answer's object another one than at first? */
bool transfer_has_changed(const struct transfer *transfer);

/* All that is asked for from now on must be of the version that the answer tells. */
void transfer_hold_version(struct transfer *transfer);

/* The attempt ends here; the next one asks again. False. */
bool transfer_try_again(struct transfer *transfer, enum transfer_cause cause);

/* transfer_whole.c: a range was asked for, and the whole object comes. Is it small enough? */
bool whole_accept(struct transfer *transfer);

/* As transfer_take_body. */
size_t whole_take(struct transfer *transfer, const char *data, size_t bytes);

/* It has come. */
enum transfer_cause whole_judge(struct transfer *transfer);

/* How many bytes the whole answer has. */
uint64_t transfer_wanted_bytes(const struct transfer *transfer);

#endif
