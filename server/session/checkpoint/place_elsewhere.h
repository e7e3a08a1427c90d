/* place_elsewhere.h - files that lay elsewhere when a place was saved: on a disk or at a store, and
 * now at another.
 *
 * What is known of an object without reading it is its ETag, of a file the samples of its bytes
 * (place_files.h): neither tells the other, and two stores have two ETags of one file that was sent
 * to them in parts of other sizes. Only when a place is not of the files as they are known is more
 * done. Samples of the objects are fetched, in case they lay on a disk. Files, and then objects,
 * are read whole, and the ETags made that stores give them: the MD5 of the bytes, or of those of
 * parts, of the sizes that clients send. An ETag that is no MD5, as of a web server's own making,
 * tells nothing of the bytes: a place that was saved there is good only where the ETags are the
 * same.
 */
#ifndef SESSION_CHECKPOINT_PLACE_ELSEWHERE_H
#define SESSION_CHECKPOINT_PLACE_ELSEWHERE_H

#include "session/checkpoint/place_files.h"

/* Are these the files of the groups? Also false where they cannot be had, or are very many. */
bool place_elsewhere_is_same(const struct place_files *files, const struct place_groups *groups);

#endif
