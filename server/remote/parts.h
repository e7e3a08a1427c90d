/* parts.h - parts of objects that were fetched, in files, for all readers of this process. A part
 * is fetched once while it is wanted, kept while there is room, and forgotten in the order of last
 * use.
 *
 * A session reads rows again after it has scanned them, perhaps out of order and much later: what
 * has come over the network once should not come twice. The kernel keeps the file in memory while
 * it has some.
 */
#ifndef REMOTE_PARTS_H
#define REMOTE_PARTS_H

#include <sys/uio.h>

#include "remote/request.h"

struct disk;
struct parts;

/* Parts are those of one object as long as it is that: owned by object.c, guarded by the parts. */
struct part_list {
    struct remote *remote;
    const struct remote_url *url;
    struct store *store;
    struct object_identity identity; /* known once the first part has come */
    char *address;                   /* its own */
    uint32_t *slots;                 /* of each part: slot + 1, or 0; or a mark of parts.c */
    uint32_t part_count;             /* 1 while the identity is not known */
    uint32_t come_count;             /* parts that have come */
    bool comes_whole;                /* its server sends no ranges, and it is larger than a part */
    uint64_t expired_look;           /* whose credentials the store first called expired; or 0 */
};

/* At most `bytes` of it, in a file of the folder, which may be closed afterwards; with a disk, each
 * in a file there. */
struct parts_options {
    struct disk *disk;
    int folder;
    uint32_t part_bytes;
    uint64_t bytes;
    uint32_t least_count; /* that must have a place at the same time */
};
tundish_status parts_open(const struct parts_options *options, struct parts **ret_parts);

void parts_begin(struct parts *parts, struct part_list *list);
void parts_end(struct parts *parts, struct part_list *list); /* nobody reads it */

/* Wait until the first part has come, and the identity is known. */
tundish_status parts_identify(struct parts *parts, struct part_list *list);

/* Bytes of one part, all of them there, into two buffers; waits for it. */
tundish_status parts_read(struct parts *parts, struct part_list *list, const struct iovec to[2],
                          uint64_t offset);

/* Can these bytes, as far as the object has them, be read without waiting? True for a part that
 * failed: its reader gets the error at once. */
bool parts_are_here(struct parts *parts, const struct part_list *list, size_t bytes,
                    uint64_t offset);

/* Begin to fetch the parts from `offset` on, up to `count` of them, as far as there is nothing else
 * to do: fewer at an object's begin, so that the first parts of all objects that are read by turns
 * come before the later ones of the first. Returns at once. */
void parts_expect(struct parts *parts, struct part_list *list, uint64_t offset, uint32_t count);

#endif
