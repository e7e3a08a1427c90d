/* content_regex_replace.c - tf.strings.regex_replace. */
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/text/regex_letters.h"
#include "content/text/texts.h"

struct regex_replace {
    struct column_wise wise;
    struct regex *regex;
    struct byte_view rewrite;
    uint32_t group_count; /* those that the rewrite needs, the whole match among them */
    bool of_letters;      /* and these are the letters */
    struct regex_letters letters;
    bool all;
    bool leaves_texts; /* the rewrite cannot be made, so nothing is replaced */
};

/* Check the rewrite as RE2 does. If it names a group that the pattern lacks, RE2 leaves texts
 * alone. After an unknown escape, GlobalReplace drops the rest of the rewrite, and Replace replaces
 * nothing. */
static void
read_rewrite(const struct stage_config *config, struct regex_replace *stage)
{
    const struct spec_value *rewrite = spec_get(config->stage, "rewrite");
    size_t known = SIZE_MAX;

    stage->group_count = 1;
    for (size_t i = 0; i < rewrite->text_bytes; i++) {
        char next;

        if (rewrite->text[i] != '\\')
            continue;
        next = rewrite->text[++i];
        if (next >= '0' && next <= '9') {
            if ((uint32_t)(next - '0') >= stage->group_count)
                stage->group_count = (uint32_t)(next - '0') + 1;
        } else if (next != '\\' && known == SIZE_MAX)
            known = i - 1;
    }
    stage->leaves_texts = (known != SIZE_MAX && !stage->all) ||
                          stage->group_count > 1 + regex_group_count(stage->regex);
    stage->rewrite = literal_text(rewrite->text, known == SIZE_MAX ? rewrite->text_bytes : known);
}

static tundish_status
read_parameters(void *state, const struct stage_config *config)
{
    const struct spec_value *pattern = spec_get(config->stage, "pattern");
    struct regex_replace *stage = state;
    tundish_status status = texts_open_regex(config, &stage->regex);

    if (status != TUNDISH_OK)
        return status;
    stage->of_letters =
        regex_letters_open(stage->regex, pattern->text, pattern->text_bytes, &stage->letters);
    stage->all = spec_bool(config->stage, "replace_global");
    read_rewrite(config, stage);
    return TUNDISH_OK;
}

/* A text under construction, at the start of the maker's free room. */
struct pieces {
    struct text_maker *maker;
    size_t bytes, room;
};

static void
add_piece(struct pieces *pieces, const uint8_t *data, size_t bytes)
{
    if (pieces->bytes + bytes > pieces->room) {
        const uint8_t *before = pieces->maker->at;
        uint8_t *now;

        /* Doubling keeps the copies linear in the result. New room may lie elsewhere: move what was
         * written. */
        pieces->room = 2 * (pieces->bytes + bytes) + 64;
        now = text_room(pieces->maker, pieces->room);
        if (pieces->bytes > 0 && now != before)
            memcpy(now, before, pieces->bytes);
    }
    if (bytes > 0)
        memcpy(pieces->maker->at + pieces->bytes, data, bytes);
    pieces->bytes += bytes;
}

/* Append the rewrite with its groups filled in. read_rewrite made sure that every escape has a
 * character after it, and every group exists. */
static void
add_rewrite(struct pieces *pieces, const struct regex_replace *stage,
            const struct regex_group *groups)
{
    const uint8_t *at = stage->rewrite.data, *end = at + stage->rewrite.size;

    while (at < end) {
        const uint8_t *escape = memchr(at, '\\', (size_t)(end - at));
        const struct regex_group *group;

        add_piece(pieces, at, (size_t)((escape == NULL ? end : escape) - at));
        if (escape == NULL)
            return;
        at = escape + 2;
        if (escape[1] == '\\') {
            add_piece(pieces, escape, 1);
            continue;
        }
        group = &groups[escape[1] - '0'];
        add_piece(pieces, group->data, group->size);
    }
}

/* Replace matches as RE2::GlobalReplace does, from the first one on: an empty match directly after
 * the last match does not count, and one character is copied instead. */
static void
replace_from(const struct regex_replace *stage, struct regex_group *groups, struct byte_view text,
             struct pieces *pieces)
{
    const uint8_t *at = text.data, *end = at + text.size, *last_end = NULL;
    bool found = true;

    while (found) {
        add_piece(pieces, at, (size_t)(groups->data - at));
        at = groups->data;
        if (groups->size == 0 && at == last_end) {
            int64_t letter = at < end ? text_utf8_letter(at, end) : 1;
            size_t step = letter < 0 ? 1 : (size_t)letter;

            if (at == end)
                break;
            add_piece(pieces, at, step);
            at += step;
        } else {
            add_rewrite(pieces, stage, groups);
            at += groups->size;
            last_end = at;
            if (!stage->all)
                break;
        }
        found = regex_search(stage->regex, text.data, text.size, (size_t)(at - text.data), groups,
                             stage->group_count);
    }
    add_piece(pieces, at, (size_t)(end - at));
}

/* Is the character at `at` one of the letters? LETTER_UNSURE: it is ill-formed. */
static enum regex_letter
judge(const struct regex_replace *stage, const uint8_t *at, const uint8_t *end, size_t *ret_bytes)
{
    enum regex_letter kind = stage->letters.kind[*at];
    int64_t bytes;

    *ret_bytes = 1;
    if (kind != LETTER_UNSURE)
        return kind;
    bytes = text_utf8_letter(at, end);
    if (bytes < 0)
        return LETTER_UNSURE;
    *ret_bytes = (size_t)bytes;
    return regex_matches(stage->regex, at, (size_t)bytes) ? LETTER_IN : LETTER_OUT;
}

/* The same for a pattern of letters. False: the text has something for the automaton. */
static bool
replace_letters(const struct regex_replace *stage, struct byte_view text, struct pieces *pieces)
{
    const uint8_t *at = text.data, *end = at + text.size;

    while (at < end) {
        const uint8_t *from = at;
        struct regex_group match;
        enum regex_letter kind = LETTER_OUT;
        size_t bytes;

        while (at < end && (kind = judge(stage, at, end, &bytes)) == LETTER_OUT)
            at += bytes;
        add_piece(pieces, from, (size_t)(at - from));
        match.data = at;
        while (at < end && kind == LETTER_IN) {
            at += bytes;
            if (!stage->letters.in_runs || at == end)
                break;
            kind = judge(stage, at, end, &bytes);
        }
        if (kind == LETTER_UNSURE)
            return false;
        match.size = (size_t)(at - match.data);
        if (match.size > 0)
            add_rewrite(pieces, stage, &match);
        if (match.size > 0 && !stage->all)
            break;
    }
    add_piece(pieces, at, (size_t)(end - at));
    return true;
}

static bool
has_letter(const struct regex_letters *letters, struct byte_view text)
{
    for (size_t i = 0; i < text.size; i++)
        if (letters->kind[text.data[i]] != LETTER_OUT)
            return true;
    return false;
}

static struct byte_view
replace(const struct regex_replace *stage, struct byte_view text, struct text_maker *maker)
{
    struct regex_group groups[REGEX_GROUPS_MAX];
    struct pieces pieces = { .maker = maker };
    const uint8_t empty[1] = { 0 };

    if (stage->of_letters && !has_letter(&stage->letters, text))
        return text;
    if (stage->of_letters && !stage->leaves_texts && replace_letters(stage, text, &pieces)) {
        text_room(maker, pieces.bytes);
        return text_take(maker, pieces.bytes);
    }
    pieces.bytes = 0;
    if (text.data == NULL) /* RE2 tells an empty group from none by its address */
        text.data = empty;
    if (stage->leaves_texts ||
        !regex_search(stage->regex, text.data, text.size, 0, groups, stage->group_count))
        return text.size > 0 ? text : (struct byte_view){ 0 };
    replace_from(stage, groups, text, &pieces);
    text_room(maker, pieces.bytes);
    return text_take(maker, pieces.bytes);
}

static void
map_column(const void *state, const struct column_map *map)
{
    struct text_maker maker = { .scratch = map->output->scratch };
    const struct byte_view *texts = map->from->values;
    struct byte_view *made =
        frame_values(map->output, map->at, (size_t)map->from->value_count * sizeof *made);

    for (int64_t i = 0; i < map->from->value_count; i++)
        made[i] = replace(state, texts[i], &maker);
    column_set_like(map->to, map->from, made);
}

static void
close_parameters(void *state)
{
    struct regex_replace *stage = state;

    regex_close(stage->regex);
    free((void *)(uintptr_t)stage->rewrite.data);
}

static const struct column_wise_ops columns = {
    .read = read_parameters,
    .describe = texts_describe_texts,
    .map = map_column,
    .close = close_parameters,
};

const struct content_ops content_regex_replace = {
    .name = "regex_replace",
    .takes_missing = true,
    .state_bytes = sizeof(struct regex_replace),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
