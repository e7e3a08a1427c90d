/* request.h - requests for objects: addressed and signed, with or without waiting. */
#ifndef REMOTE_REQUEST_H
#define REMOTE_REQUEST_H

#include "remote/remote_private.h"

/* The size and version of an object, known since it was first asked for. */
struct object_identity {
    bool is_known;
    uint64_t bytes;
    char tag[ANSWER_TAG_BYTES];
    char modified[ANSWER_WORD_BYTES];
};

/* Complete `want` (name, address, credentials, conditions) and add it. Fails where credentials
 * cannot be found; `want` is not added then. `identity`: the object must still be that; NULL: any.
 */
tundish_status request_object(struct remote *remote, const struct remote_url *url,
                              const struct object_identity *identity, struct transfer_want *want);

/* How many bytes a request asks for. */
uint32_t remote_part_bytes(const struct remote *remote);

/* The identity that an answer tells. */
struct object_identity request_identity(const struct answer *answer);

/* Bytes that come into memory, and one thread that waits for them. The URL stays until then. */
struct reply;

/* All of `address` (with its query), at most `bytes_max` of it; the scheme is the URL's. */
tundish_status request_ask_all(struct remote *remote, const struct remote_url *url,
                               const char *address, uint64_t bytes_max, struct reply **ret_reply);

/* Its size and identity, and no bytes. */
tundish_status request_ask_look(struct remote *remote, const struct remote_url *url,
                                struct reply **ret_reply);

/* A range of an object; `identity` as above. */
struct reply_range {
    const struct object_identity *identity;
    uint64_t first, bytes;
    bool is_urgent; /* somebody waits */
};
tundish_status request_ask(struct remote *remote, const struct remote_url *url,
                           const struct reply_range *range, struct reply **ret_reply);

/* All of it into the file, if the cache on disk may hold it. The reply owns the file. */
tundish_status request_ask_into(struct remote *remote, const struct remote_url *url,
                                const struct object_identity *identity, int file,
                                struct reply **ret_reply);

/* Its last `bytes` bytes, or all of a small object whose server sends no ranges. The answer's total
 * says where they are. */
tundish_status request_ask_tail(struct remote *remote, const struct remote_url *url, uint64_t bytes,
                                struct reply **ret_reply);

/* Wait. The bytes and the answer live as long as the reply. */
tundish_status request_wait(struct reply *reply, const uint8_t **ret_bytes, size_t *ret_count,
                            const struct answer **ret_answer);

/* It failed since the object came whole, and is too large for that. Once it was waited for. The
 * identity is known if the server has told the size. */
bool request_is_too_large(struct reply *reply, struct object_identity *ret_identity);

/* At any time: what is under way ends by itself. Accepts NULL. */
void request_close(struct reply *reply);

/* Ask for its size and identity, and wait. */
tundish_status remote_look(struct remote *remote, const struct remote_url *url,
                           struct object_identity *ret_identity);

#endif
