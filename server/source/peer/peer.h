/* peer.h - records of files that other nodes have: asked of their owners, as references name them.
 *
 * Each server has one, which asks for its sessions and answers others. An owner finds a file's
 * records and reads their bytes as it does for itself; an error there is the same error wherever
 * the row is wanted. Rows are asked for ahead of need (peer_ahead.h), and many at a time. Their
 * bytes come packed where packing and unpacking takes less than the bytes it saves take on the
 * wire.
 *
 * The session bounds how much it asks for ahead; an owner bounds how much it has read for a node
 * and not sent.
 */
#ifndef SOURCE_PEER_PEER_H
#define SOURCE_PEER_PEER_H

#include "source/files/catalogue.h"
#include "source/peer/peer_transport.h"
#include "source/scan/scan_work.h"

struct peers;
struct peer_rows;

struct peers_options {
    struct peer_transport transport;
    const struct catalogue *catalogue; /* stays */
    const char *root, *cache_folder;
    const struct spec_remote *remote; /* how URLs are read; NULL: the defaults */
};

/* Serves other nodes until it is closed, which must be after the transport's last message. */
tundish_status peers_open(const struct peers_options *options, struct peers **ret_peers);
void peers_close(struct peers *peers); /* accepts NULL */

const struct catalogue *peers_catalogue(const struct peers *peers);

/* Bytes of files that were read here and sent to other nodes, before packing. */
uint64_t peers_passed_on(const struct peers *peers); /* accepts NULL */

/* Can records of that format come from another node? */
bool peer_reads(const struct record_format *format);

/* A row of a file that another node has. */
struct peer_row {
    const struct source_file *file;
    uint64_t offset;
    uint32_t bytes;
};

/* Ask for rows; returns at once. They are sorted here, and asked for once each. */
struct peer_rows *peer_ask(struct peers *peers, struct peer_row *rows, size_t count);
uint64_t peer_rows_bytes(const struct peer_rows *rows);
bool peer_rows_has(const struct peer_rows *rows, const struct peer_row *row);

/* Wait until all are there: an owner answers, or is found to be lost, also while it is stopping.
 * Fails as reading them failed, or E_PEER_LOST. Any thread. */
tundish_status peer_rows_wait(struct peer_rows *rows);

/* The bytes of one that was asked for, after peer_rows_wait. */
const uint8_t *peer_rows_find(const struct peer_rows *rows, const struct peer_row *row);
void peer_rows_close(struct peer_rows *rows); /* wanted no more, come or not; accepts NULL */

/* Ask for a range of a file that another node has; returns at once. peer_take_range waits for it,
 * as peer_rows_wait does. */
struct peer_rows *peer_ask_range(struct source_file *file, size_t bytes, uint64_t offset);
tundish_status peer_take_range(struct peer_rows *rows, const struct source_file *file, void *to,
                               size_t bytes, uint64_t offset);

/* Both, and wait. */
tundish_status peer_read_range(struct source_file *file, void *to, size_t bytes, uint64_t offset);

/* Learn the size of a file of which ranges will be read; waits. */
tundish_status peer_identify(struct source_file *file);

/* The records of a file as its owner finds them; waits. */
extern const struct scan_input_ops peer_scan_input;

#endif
