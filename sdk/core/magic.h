/* magic.h - the numbers by which files, messages and pages of shared memory are recognised.
 *
 * All of them in one list, so that no two are the same. Each is its text, read as a little-endian
 * number; a reader that finds another one refuses the rest. */
#ifndef TND_CORE_MAGIC_H
#define TND_CORE_MAGIC_H

#include <stdint.h>

/* Pages that server and trainer share (shm/layout.h). */
#define TND_BATCHES_MAGIC UINT64_C(0x31544142444e5554) /* "TUNDBAT1" */
#define TND_RETURNS_MAGIC UINT64_C(0x31544552444e5554) /* "TUNDRET1" */

/* The file of counters of a running server (shm/stats.h). */
#define TND_STATS_MAGIC UINT64_C(0x3553544154535554) /* "TUSTATS5" */

/* Messages: trainer and server (shm/channel.h), server and server (link/node.c). */
#define TND_CHANNEL_MAGIC UINT32_C(0x43444e54) /* "TNDC" */
#define TND_WIRE_MAGIC UINT32_C(0x4b4c4e54)    /* "TNLK" */

/* Places: the trainer's record (shm/place.h), and the server's part of it
 * (session/checkpoint/place_contents.h). */
#define TND_PLACE_MAGIC UINT32_C(0x50444e54)          /* "TNDP" */
#define TND_PLACE_CONTENTS_MAGIC UINT32_C(0x53504e54) /* "TNPS" */

/* Files of the cache folder: vocabularies and notes on them (content/vocabulary), indexes of
 * records (source/scan/index.h), sums and hashes of files (source/files/content_sum.h,
 * session/checkpoint/place_hashes.h), landmarks of orders (session/checkpoint/place_landmarks.h).
 */
#define TND_VOCABULARY_MAGIC UINT64_C(0x31434f56444e5554) /* "TUNDVOC1" */
#define TND_NOTE_MAGIC UINT64_C(0x31544f4e444e5554)       /* "TUNDNOT1" */
#define TND_INDEX_MAGIC UINT64_C(0x5849434552444e54)      /* "TNDRECIX" */
#define TND_SUM_MAGIC UINT64_C(0x314d5553444e5554)        /* "TUNDSUM1" */
#define TND_HASHES_MAGIC UINT64_C(0x31485348444e5554)     /* "TUNDHSH1" */
#define TND_LANDMARKS_MAGIC UINT64_C(0x314d4e4c444e5554)  /* "TUNDLNM1" */

#endif
