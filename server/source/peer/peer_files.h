/* peer_files.h - whole files of other nodes, for stages that read files which rows name. */
#ifndef SOURCE_PEER_PEER_FILES_H
#define SOURCE_PEER_PEER_FILES_H

#include "content/records/other_files.h"

struct peers;

struct other_files peer_other_files(struct peers *peers);

#endif
