/* channel.h - the messages between trainer and server over the Unix socket.
 *
 * SOCK_SEQPACKET: one message is one packet of at most TND_MESSAGE_MAX bytes, a head and what
 * belongs to its type. Longer things (places) travel as several messages with `offset` and `total`.
 * Descriptors go from server to trainer only.
 *
 *     trainer                                    server
 *     HELLO (PLACE ...)                   ->
 *                                         <-     WELCOME with descriptors, or REFUSED
 *                                         <-     SEGMENT, RETIRE, EPOCH, LOST, DETACHED: any time
 *     RESTART, ASK_QUEUE, ASK_STANDING    ->
 *     BYE                                 ->
 *                                         <-     QUEUE, STANDING, after these
 *
 * The messages that a trainer needs for a slot (SEGMENT, EPOCH) are sent before the slot is
 * published. The server then raises `notice` in the lane's header, and the trainer reads its socket
 * only when that has changed. If the socket is full, the server keeps the message for later and
 * waits for no trainer: a trainer takes a batch only when the messages that belong to it are here.
 */
#ifndef TND_SHM_CHANNEL_H
#define TND_SHM_CHANNEL_H

#include <stddef.h>
#include <stdint.h>

#include "shm/layout.h"
#include "tundish/tundish.h"

#define TND_PROTOCOL_MIN 1 /* the protocols that this build speaks */
#define TND_PROTOCOL_MAX 1
#define TND_MESSAGE_MAX 16384
#define TND_DESCRIPTORS_MAX 4
#define TND_NAME_BYTES 128

enum tnd_message_type {
    TND_HELLO = 1,   /* struct tnd_hello */
    TND_PLACE = 2,   /* bytes of the place, see tnd_hello.place_bytes */
    TND_RESTART = 3, /* id: the epoch that is over for this trainer */
    TND_ASK_QUEUE = 4,
    TND_BYE = 5,
    TND_KEPT = 6, /* id, offset: no trainer of the server before lacks what is before this epoch and
                   * step; only to a server that told BEGIN */
    TND_ASK_STANDING = 7, /* id: 0, or what the answer to the same question had; only to a server
                           * that told WELCOME_STANDING */
    TND_CONTROL = 32,     /* id: enum tnd_control; instead of HELLO */
    TND_WELCOME = 64,     /* struct tnd_welcome; batches, returns, wakeup, event */
    TND_REFUSED = 65,     /* status, text */
    TND_SEGMENT = 66,     /* id, total: its bytes; one descriptor */
    TND_RETIRE = 67,      /* id: unmap it once its batches are released */
    TND_EPOCH = 68,       /* id: the epoch; bytes for its places */
    TND_LOST = 69,        /* status: OK, or why nothing more comes; text: the lost trainer */
    TND_DETACHED = 70,    /* text */
    TND_QUEUE = 71,       /* struct tnd_queue; status E_TIMEOUT: nothing was published yet */
    TND_ANSWER = 72,      /* status, text: what became of CONTROL */
    TND_BEGIN = 73,       /* id, offset: epoch and step that the lane begins with */
    TND_FROM = 75,        /* id: the epoch to begin with, UINT64_MAX: where the predecessor stood;
                           * offset: the position of that */
    TND_STANDING = 76 /* id: of the question; status E_TIMEOUT: not all nodes have answered it; else
                       * struct tnd_standing */
};

/* The requests of an operator to a server. */
enum tnd_control {
    TND_CONTROL_PAUSE = 1, /* make no more batches until RESUME; trainers wait */
    TND_CONTROL_RESUME = 2,
    TND_CONTROL_DRAIN = 3,      /* as SIGTERM */
    TND_CONTROL_CHECKPOINT = 4, /* tell where each stream stands, as places' tokens */
    TND_CONTROL_LOG_ERROR = 5,
    TND_CONTROL_LOG_WARNING = 6,
    TND_CONTROL_LOG_NOTICE = 7,
    TND_CONTROL_LOG_DEBUG = 8
};

struct tnd_message_head {
    uint32_t magic;
    uint16_t type;
    uint16_t reserved;
    int32_t status;
    uint32_t bytes; /* after the head */
    uint64_t id;
    uint64_t offset; /* of these bytes in what is sent in parts */
    uint64_t total;  /* bytes of that */
};

struct tnd_message {
    struct tnd_message_head head;
    _Alignas(8) uint8_t bytes[TND_MESSAGE_MAX - sizeof(struct tnd_message_head)];
};

#define TND_HELLO_SURVIVOR 1u /* it outlived a server */
#define TND_HELLO_PLACE 2u    /* place_bytes of place follow, which says what it wants next */
#define TND_HELLO_KEPT 4u     /* and tells of it: kept_*, groups_* */
#define TND_HELLO_FROM 16u    /* it understands FROM */
#define TND_HELLO_KEPT_END                                                                         \
    8u /* kept_* is an epoch's end, and kept_step the number of its steps                          \
        */

/* Names end with a NUL; an empty one is the default. */
struct tnd_hello {
    uint16_t protocol_min, protocol_max;
    uint16_t layout_major, layout_minor;
    uint32_t replica;
    uint32_t flags;
    uint64_t kept_epoch, kept_step; /* the first that its server kept, of what is still to be read
                                     * by some trainer; the place's header is true there as well */
    uint64_t place_bytes;
    char stream[TND_NAME_BYTES];
    char session[TND_NAME_BYTES];
    char group[TND_NAME_BYTES];
    uint32_t groups_present, groups_gone; /* as tnd_batches had them; an older library's hello ends
                                           * before these */
    uint64_t kept_generation; /* of the server that kept_* is true of; 0: an older library's */
};

#define TND_WELCOME_BEGIN 1u /* the lanes have begun: BEGIN follows */
/* To a trainer without a place. */
#define TND_WELCOME_AFTER_END 2u /* an epoch's end, where it begins, is not for it */
#define TND_WELCOME_FROM 4u      /* FROM will say where it begins: until then it takes nothing */
#define TND_WELCOME_CLAIMS 8u    /* it claims each position before it looks there (layout.h) */
#define TND_WELCOME_STANDING 16u /* it may ask where its group stands */

struct tnd_welcome {
    uint16_t protocol;
    uint16_t flags;
    uint32_t line; /* the consumer's, in the lane */
    uint64_t batches_bytes;
    uint64_t returns_bytes;
    uint64_t position; /* the first that it gets */
    uint32_t replica, replica_count;
    uint32_t first_replica, total_replica_count;
    uint64_t first_epoch, first_step; /* of that position; UINT64_MAX: not known yet */
    char stream[TND_NAME_BYTES];
    int64_t epoch_steps;  /* of a whole epoch; -1: not known */
    uint64_t begin_epoch; /* it begins with this epoch; UINT64_MAX: that is not known, or it goes
                           * on. An older server's WELCOME ends before this */
};

/* Where a queue stands: all before (epoch, step) is given back, and what has a bit from there on.
 */
struct tnd_queue {
    uint64_t epoch, step;
    uint64_t bit_count; /* at most TND_SLOTS_MAX */
    uint8_t bits[TND_SLOTS_MAX / 8];
};

/* The first and the last of the batches that the replicas of a trainer's group want next. */
struct tnd_standing {
    uint64_t is_known; /* 0: a replica has no trainer, or one that takes batches ahead */
    uint64_t lowest_epoch, lowest_step;
    uint64_t highest_epoch, highest_step;
};

/* Send one message; never blocks, never raises SIGPIPE. E_TIMEOUT: the other side does not read;
 * E_SERVER_GONE: the other side has hung up. */
tundish_status tnd_channel_send(int socket, struct tnd_message_head head, const void *bytes,
                                const int *descriptors, unsigned descriptor_count);

/* The descriptors that came with a message; -1 where there is none. */
struct tnd_descriptors {
    int at[TND_DESCRIPTORS_MAX];
};
/* They accept -1, and leave it. */
void tnd_channel_close_descriptor(int *descriptor);
void tnd_channel_close_descriptors(struct tnd_descriptors *descriptors);

/* Take one message, if there is one. E_TIMEOUT: there is none. E_SERVER_GONE: hang-up. E_CORRUPT:
 * not a message of ours. With `ret_descriptors` NULL descriptors are refused: the kernel drops
 * them. On any other result than OK none are returned. */
tundish_status tnd_channel_receive(int socket, struct tnd_message *message,
                                   struct tnd_descriptors *ret_descriptors);

/* Wait until there is something to receive, or the time is up (E_TIMEOUT). */
tundish_status tnd_channel_wait(int socket, int64_t timeout_ns);

/* The socket's path: `wanted`, else TUNDISH_SERVER, else $XDG_RUNTIME_DIR/tundish/server, else
 * /tmp/tundish-UID/server. E_ARGUMENT if that is longer than a socket's path may be. */
#define TND_SOCKET_PATH_BYTES 108
tundish_status tnd_channel_path(const char *wanted, char path[TND_SOCKET_PATH_BYTES]);

/* Other users can foresee the default socket's path. E_SYSTEM if `path` is the default and its
 * folder exists and is not this user's alone (trust.h). */
tundish_status tnd_channel_check_folder(const char *path);

/* Connect to a server's socket. E_SERVER_GONE: no server listens there. E_ARGUMENT: the listener is
 * not trusted (trust.h). */
tundish_status tnd_channel_connect(const char *path, int *ret_socket);

#endif
