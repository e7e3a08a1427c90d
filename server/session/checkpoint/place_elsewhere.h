/* place_elsewhere.h - files that lay elsewhere when a place was saved: on a disk, and now at a
 * store, or the other way round.
 *
 * What is known of an object without reading it is its ETag, of a file the samples of its bytes
 * (place_files.h): neither tells the other. Only when a place is not of the files as they are known
 * is more done: samples of the objects are fetched, or the files are read and the ETags made that
 * stores give them: the MD5 of the bytes, or of those of parts of 8 MiB, as clients send large
 * ones.
 */
#ifndef SESSION_PLACE_ELSEWHERE_H
#define SESSION_PLACE_ELSEWHERE_H

#include "session/checkpoint/place_files.h"

/* Are these the files of the groups? Also false where they cannot be had, or are very many. */
bool place_elsewhere_is_same(const struct place_files *files, const struct place_groups *groups);

#endif
