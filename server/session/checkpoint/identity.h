/* identity.h - the properties that a stream's nodes must share, in parts that can be named. */
#ifndef SESSION_CHECKPOINT_IDENTITY_H
#define SESSION_CHECKPOINT_IDENTITY_H

#include "link/agree.h"
#include "plan/plan.h"

struct identity {
    size_t count;
    struct agree_part *parts; /* names are owned */
};

/* Add the stream's stages and seeds, its replicas and how rows are dealt to them, its columns, and
 * every file that it names or that a pattern of its finds: data by its size and samples of its
 * bytes, vocabularies and the like whole. */
tundish_status identity_add_stream(struct identity *identity, const struct plan *plan);

/* The first of these parts, but for stages and files, that two plans of a stream do not share;
 * NULL: they share all. The caller frees. */
char *identity_difference(const struct plan *plan, const struct plan *other);
void identity_add(struct identity *identity, uint64_t hash, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void identity_close(struct identity *identity);

#endif
