/* session_state.h - places that the server keeps itself (serve --state DIR).
 *
 * DIR/STREAM.place is the first step that some group has not given back, or of a queue what was
 * visited, as of a moment ago. A new file is written and renamed, so it is always whole. It exists
 * before the first batch does. A server that starts finds the stream's seed and place there.
 * Trainers that outlived the server know their place better, and skip what they had. Trainers that
 * are restarted, and queues, get some batches again: those given back since the last write, or by
 * only some of their group.
 *
 * DIR/STREAM.server is the generation of the last server that let a trainer in. Its survivors know
 * its memory, which is newer than the place. Survivors of servers before it may know of more
 * batches given back, but trainers that were restarted without a place got these again, so the
 * place counts.
 *
 * The folder is session_options.state, which each session keeps its own file in. Where each of
 * several nodes stood is known for that number of nodes: another would split a step's rows
 * otherwise, and lose or repeat those of steps that only some have given back.
 */
#ifndef SESSION_CHECKPOINT_SESSION_STATE_H
#define SESSION_CHECKPOINT_SESSION_STATE_H

#include "session/session.h"

/* Can places be kept there? The folder is not made. */
tundish_status session_state_check(const char *folder);

/* The folder of a node, which the caller frees: `folder` itself if `node_count` is 1, else a folder
 * in it, which is made. E_PLACE: a job of one node has kept places there, and this one has several,
 * or the reverse. */
tundish_status session_state_folder(const char *folder, uint32_t node, uint32_t node_count,
                                    char **ret_folder);

/* Refuse the folder to other servers: two would replace each other's places, and rows would be
 * lost. The caller closes the descriptor, with which the claim ends. */
tundish_status session_state_claim(const char *folder, int *ret_claim);

/* Before session_start; waits for the other nodes of the job. E_PLACE: the kept place is of another
 * pipeline, another number of nodes, or another run than theirs. */
tundish_status session_state_restore(struct session *session);

/* Close the barrier with its start at this place, for trainers with and without places. `control`
 * is held, or the session is not started. */
tundish_status session_state_start(struct session *session, const uint8_t *bytes, size_t count);

/* A trainer is about to be let in: it may outlive this server. */
void session_state_note_server(struct session *session);

/* The session begins there: the seed and the state of the epoch are on disk when this returns. The
 * dealing thread, before the first step. */
void session_state_begin(struct session *session, uint64_t epoch, uint64_t step);

/* Where the stream stands as a place's bytes, which the caller frees; NULL: nothing was published
 * yet. Any thread. */
uint8_t *session_state_place(struct session *session, size_t *ret_count);

/* Where the stream stands as a place's token, which the caller frees; NULL: nothing was published
 * yet. Any thread. */
char *session_state_token(struct session *session);

/* Write where it stands, if that has changed, and return whether it was written. Any thread; may
 * wait for the disk. Like session_state_begin it logs the first failure, and does not stop the
 * stream. */
bool session_state_keep(struct session *session);

/* After session_stop. Will what is kept still change, as trainers that are attached give back what
 * was made for them? */
bool session_state_changes(struct session *session);

#endif
