/* session_shards.h - an evaluation's reader: shard after shard, as the tracker gives them. */
#ifndef SESSION_EVALUATION_SESSION_SHARDS_H
#define SESSION_EVALUATION_SESSION_SHARDS_H

#include "core/status.h"

struct session;

/* Join the tracker, and start. */
tundish_status session_shards_start(struct session *session);

/* The dealing thread's work. */
void session_deal_shards(struct session *session);

/* Tell the tracker which shards are done. The dealing thread, or when it has ended. */
void session_shards_settle(struct session *session);

#endif
