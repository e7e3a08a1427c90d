/* regex.cc - RE2 behind regex.h, and the one file in C++. RE2 throws nothing of its own. Memory
 * that cannot be had ends the process, as elsewhere, since nobody catches what `new` throws. */
#include "content/text/regex.h"

#include <cstring>
#include <re2/re2.h>

struct regex {
    regex(const re2::StringPiece &pattern, const RE2::Options &options) : compiled(pattern, options)
    {
    }

    RE2 compiled;
};

static re2::StringPiece
piece(const uint8_t *text, size_t bytes)
{
    return re2::StringPiece(reinterpret_cast<const char *>(text), bytes);
}

struct regex *
regex_open(const char *pattern, size_t bytes, char **ret_fault)
{
    RE2::Options options;
    struct regex *made;

    options.set_log_errors(false);
    made = new regex(re2::StringPiece(pattern, bytes), options);
    if (made->compiled.ok())
        return made;
    *ret_fault = strdup(made->compiled.error().c_str());
    delete made;
    return nullptr;
}

void
regex_close(struct regex *regex)
{
    delete regex;
}

uint32_t
regex_group_count(const struct regex *regex)
{
    return static_cast<uint32_t>(regex->compiled.NumberOfCapturingGroups());
}

bool
regex_search(const struct regex *regex, const uint8_t *text, size_t bytes, size_t from,
             struct regex_group *ret_groups, uint32_t group_count)
{
    re2::StringPiece groups[REGEX_GROUPS_MAX];

    if (!regex->compiled.Match(piece(text, bytes), from, bytes, RE2::UNANCHORED, groups,
                               static_cast<int>(group_count)))
        return false;
    for (uint32_t i = 0; i < group_count; i++) {
        ret_groups[i].data = reinterpret_cast<const uint8_t *>(groups[i].data());
        ret_groups[i].size = groups[i].size();
    }
    return true;
}

bool
regex_matches(const struct regex *regex, const uint8_t *text, size_t bytes)
{
    return regex->compiled.Match(piece(text, bytes), 0, bytes, RE2::ANCHOR_BOTH, nullptr, 0);
}
