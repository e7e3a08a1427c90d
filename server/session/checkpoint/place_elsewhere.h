/* place_elsewhere.h - files that lay elsewhere when a place was saved: on a disk or at a store, and
 * now at another.
 *
 * An object is known by its ETag, a file by samples of its bytes (place_files.h). Neither tells the
 * other, and two stores give one file two ETags if they received it in parts of other sizes. Only a
 * place that does not match the known files needs more. Samples of the objects are fetched, in case
 * they lay on a disk. Files, and then objects, are read whole, and the ETags made that stores give
 * them: the MD5 of the bytes, or of those of parts, of the sizes that clients send. An ETag that is
 * not an MD5, such as a web server's own, says nothing about the bytes: a place that was saved
 * there is good only where the ETags are the same.
 */
#ifndef SESSION_CHECKPOINT_PLACE_ELSEWHERE_H
#define SESSION_CHECKPOINT_PLACE_ELSEWHERE_H

#include "session/checkpoint/place_files.h"

/* Are these the files of the groups? Also false where they cannot be had, or are very many. */
bool place_elsewhere_is_same(const struct place_files *files, const struct place_groups *groups);

#endif
