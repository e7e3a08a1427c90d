/* serve_trainers.h - do the trainers that a launcher starts fit the pipeline file? */
#ifndef COMMANDS_SERVE_TRAINERS_H
#define COMMANDS_SERVE_TRAINERS_H

#include "commands/serve.h"

/* --expect-trainers: refuse another number of trainers than the file has replicas, and find out
 * whether they depend on each other. After the file and the link were opened. */
tundish_status serve_expect_trainers(struct serve *serve);

/* What --ready-fd is told: with --expect-trainers also how the trainers stand to each other. */
const char *serve_ready_line(const struct serve *serve);

#endif
