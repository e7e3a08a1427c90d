/* serve_crew.h - launchers of several nodes, whose trainers are one group and are started again
 * together.
 *
 * A launcher writes lines to its server (--crew-fd), and reads others. `failed N` and `done N` are
 * handed on to the launchers of all other nodes, as they are: the trainers are to end for the Nth
 * time, or all have ended well after N failures. `ended N` is for the server: this node's trainers
 * are gone; it answers `begin N` once those of all nodes are and all begin at one step
 * (session_level.h), or `never` and a sentence.
 */
#ifndef COMMANDS_SERVE_CREW_H
#define COMMANDS_SERVE_CREW_H

#include "commands/serve.h"

/* After the sessions run. Nothing without --crew-fd. */
tundish_status serve_crew_open(struct serve *serve);

/* Before anything of the server is closed. */
void serve_crew_close(struct serve *serve);

/* Another node's launcher has said something; the link's thread. */
void serve_crew_hear(const struct serve *serve, const struct link_key *key);

#endif
