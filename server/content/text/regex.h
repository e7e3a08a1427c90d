/* regex.h - RE2's regular expressions, as tf.strings has them: texts are UTF-8, the leftmost match
 * and the first alternative are preferred, and a search takes time linear in the text, whatever the
 * pattern.
 */
#ifndef CONTENT_TEXT_REGEX_H
#define CONTENT_TEXT_REGEX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { REGEX_GROUPS_MAX = 10 }; /* the match, and the groups that \1 to \9 name */

struct regex;

/* A group's part of the text. */
struct regex_group {
    const uint8_t *data; /* NULL: the group is not part of the match */
    size_t size;
};

/* Compile a pattern. If RE2 refuses it, NULL, and *ret_fault is its reason, which the caller frees.
 */
struct regex *regex_open(const char *pattern, size_t bytes, char **ret_fault);
void regex_close(struct regex *regex); /* accepts NULL */

/* How many groups the pattern has. */
uint32_t regex_group_count(const struct regex *regex);

/* Find the first match from byte `from` on. Fills in the first `group_count` groups, at least 1;
 * the fewer, the faster. Any number of threads may call this. */
bool regex_search(const struct regex *regex, const uint8_t *text, size_t bytes, size_t from,
                  struct regex_group *ret_groups, uint32_t group_count);

/* Is the whole text a match? */
bool regex_matches(const struct regex *regex, const uint8_t *text, size_t bytes);

#ifdef __cplusplus
}
#endif

#endif
