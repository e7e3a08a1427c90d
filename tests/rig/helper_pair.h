/* helper_pair.h - a server's end of the wire to a helper, and a helper's, of one stream in one
 * thread: what one end has said is bytes until a test hands them to the other, as they are or
 * damaged. Tests see and make messages without their seals (helper_seal.h). */
#ifndef RIG_HELPER_PAIR_H
#define RIG_HELPER_PAIR_H

#include "helpers/helper_line.h"
#include "helpers/helper_serve_private.h"

struct helper_pair {
    struct spec_file *file;

    /* The server's end: a session without threads and lanes, and the part that was dealt last. */
    struct session session;
    struct step step;
    struct share share;
    struct part part;
    struct helper_sums *sums;
    struct helper_line line;

    /* If not 0, this byte of what is handed over, counted from 1, is changed on the way. */
    size_t changed;

    /* The helper's. */
    _Atomic int stop;
    struct helper_server server;
    struct helper_connection connection;
};

/* A stream of these stages, in flow style, whose files are in the folder. */
void helper_pair_open(struct helper_pair *pair, const char *folder, const char *stages,
                      const char *deliver);
void helper_pair_open_for(struct helper_pair *pair, uint32_t replicas, const char *folder,
                          const char *stages, const char *deliver);
void helper_pair_close(struct helper_pair *pair);

/* Deal the next slice, as a part. Its words are pair->step.round's. False: there is none. */
bool helper_pair_deal(struct helper_pair *pair);

/* The head of an ask of the part, for elements that a test makes up. */
struct helper_ask helper_pair_head(const struct helper_pair *pair);

/* What the line asks for the part. */
void helper_pair_ask(struct helper_pair *pair, struct portable_bytes *ret_ask);

/* Hand an ask to the helper, and take its answer. Not OK: it ends the connection. */
tundish_status helper_pair_answer(struct helper_pair *pair, struct byte_view ask,
                                  struct portable_bytes *ret_answer);

/* Let the line ask, and hand it this answer, which is made to be of the last question. */
tundish_status helper_pair_take(struct helper_pair *pair, struct byte_view answer, bool apart,
                                struct helper_made *ret_made);

/* Let the line ask, want no answer, and drop this one. */
tundish_status helper_pair_drop(struct helper_pair *pair, struct byte_view answer);

/* The helper's end begins anew, as with another connection. */
void helper_pair_reconnect(struct helper_pair *pair);

#endif
