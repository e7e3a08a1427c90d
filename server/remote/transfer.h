/* transfer.h - one request: its attempts, and what an attempt's answer means. The thread of the
 * transfers alone. */
#ifndef REMOTE_TRANSFER_H
#define REMOTE_TRANSFER_H

#include "remote/transfers.h"

enum { TRANSFER_BODY_BYTES = 4096 };

enum transfer_cause {
    CAUSE_NONE,    /* all is well */
    CAUSE_CONNECT, /* no connection, or a lost one */
    CAUSE_STALLED,
    CAUSE_SERVER, /* 5xx, 429, 408 */
    CAUSE_SHORT,  /* a body that ended early */
    CAUSE_WRONG,  /* another range than the one that was asked for */
    CAUSE_ASK,    /* nothing is wrong, but something else has to be asked first */
    CAUSE_FINAL   /* trying again cannot help */
};

struct transfer {
    struct transfer *next;
    struct transfer_want want; /* texts are its own */
    struct credentials credentials;
    const struct curl_library *curl;
    CURL *easy; /* during an attempt */
    struct curl_slist *headers;

    struct answer answer;
    uint64_t got; /* bytes that came and were put */
    uint64_t attempt_got;
    uint64_t reached; /* how far attempts had come that counted as progress */
    size_t head_bytes;
    bool is_accepted;          /* the body of this attempt is the right one */
    bool asks_size;            /* the range was refused: is the object empty? */
    bool lacks_total;          /* ... or came without the object's size */
    bool asks_whole;           /* nothing else tells the object's size */
    bool is_whole;             /* this attempt's body is the object from its begin */
    uint64_t whole_bytes;      /* ... that have come */
    bool has_enough;           /* the rest of it is not waited for */
    enum transfer_cause cause; /* of the attempt's end, if it was found before libcurl's */
    tundish_status status;     /* with CAUSE_FINAL */
    char sentence[1024];
    char body[TRANSFER_BODY_BYTES]; /* of an error */
    size_t body_bytes;
    char problem[CURL_ERROR_SIZE]; /* libcurl's own words, or "" */

    uint32_t failures; /* in a row, without bytes in between */
    uint32_t cuts;     /* attempts that were too slow */
    int64_t begun_ns;  /* of this attempt */
    int64_t due_ns;    /* of the next attempt */
    bool is_over;
};

struct transfer *transfer_open(const struct curl_library *curl, const struct transfer_want *want);
void transfer_close(struct transfer *transfer);

/* Set up transfer->easy for the next attempt. */
void transfer_begin(struct transfer *transfer);

/* The attempt is over. CAUSE_NONE or CAUSE_FINAL: so is the transfer. The handle is gone. */
enum transfer_cause transfer_end(struct transfer *transfer, CURLcode result);

/* The attempt goes on too slowly: give it up. The next one asks for the bytes that have not come.
 */
void transfer_cut(struct transfer *transfer);

#endif
