/* content_regex_replace.c - tf.strings.regex_replace. */
#define PCRE2_CODE_UNIT_WIDTH 8

#include <pcre2.h>
#include <stdlib.h>
#include <string.h>

#include "column/literal.h"
#include "content/text/regex.h"
#include "content/text/texts.h"
#include "core/memory.h"

/* RE2 matches in time linear in the text. PCRE2 backtracks, and could take exponential time on
 * hostile text, so bound its steps. */
enum { EFFORT = 1000000, EFFORT_PER_BYTE = 100 };

struct regex_replace {
    pcre2_code *code;
    struct byte_view pattern; /* for errors */
    struct byte_view rewrite;
    bool all;
    bool leaves_texts; /* the rewrite cannot be made, so nothing is replaced */
    struct content_targets targets;
};

/* Translate the pattern from RE2 to PCRE2, and compile it. NEVER_BACKSLASH_C: a single byte could
 * split a character. */
static tundish_status
compile(const struct stage_config *config, struct regex_replace *stage)
{
    const struct spec_value *pattern = spec_get(config->stage, "pattern");
    const char *fault;
    bool in_bytes;
    char *translated = regex_translate(pattern->text, pattern->text_bytes, &in_bytes, &fault);
    int error = 0;
    PCRE2_SIZE offset;
    PCRE2_UCHAR text[200] = "";

    if (fault == NULL) {
        stage->code =
            pcre2_compile((PCRE2_SPTR)translated, PCRE2_ZERO_TERMINATED,
                          (in_bytes ? 0 : PCRE2_UTF | PCRE2_MATCH_INVALID_UTF) |
                              PCRE2_DOLLAR_ENDONLY | PCRE2_ALT_CIRCUMFLEX | PCRE2_NEVER_BACKSLASH_C,
                          &error, &offset, NULL);
        if (stage->code == NULL)
            pcre2_get_error_message(error, text, sizeof text);
    }
    free(translated);
    if (stage->code == NULL)
        return spec_complain(config->errors, pattern->line, pattern->column,
                             "\"%s\" is not a regular expression of RE2: %s", pattern->text,
                             fault != NULL ? fault : (const char *)text);
    stage->pattern = literal_text(pattern->text, pattern->text_bytes);
    pcre2_jit_compile(stage->code, PCRE2_JIT_COMPLETE); /* without a JIT, the interpreter matches */
    return TUNDISH_OK;
}

/* Check the rewrite as RE2 does. If it names a group that the pattern lacks, RE2 leaves texts
 * alone. After an unknown escape, GlobalReplace drops the rest of the rewrite, and Replace replaces
 * nothing. */
static void
read_rewrite(const struct stage_config *config, struct regex_replace *stage)
{
    const struct spec_value *rewrite = spec_get(config->stage, "rewrite");
    size_t known = SIZE_MAX;
    uint32_t groups = 0;

    pcre2_pattern_info(stage->code, PCRE2_INFO_CAPTURECOUNT, &groups);
    for (size_t i = 0; i < rewrite->text_bytes; i++) {
        char next;

        if (rewrite->text[i] != '\\')
            continue;
        next = rewrite->text[++i];
        if (next >= '0' && next <= '9')
            stage->leaves_texts |= (uint32_t)(next - '0') > groups;
        else if (next != '\\' && known == SIZE_MAX)
            known = i - 1;
    }
    stage->leaves_texts |= known != SIZE_MAX && !stage->all;
    stage->rewrite = literal_text(rewrite->text, known == SIZE_MAX ? rewrite->text_bytes : known);
}

static tundish_status
regex_replace_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                   bool *ret_batch_wide)
{
    struct regex_replace *stage = state;
    tundish_status status = compile(config, stage);

    *ret_batch_wide = false;
    if (status != TUNDISH_OK)
        return status;
    stage->all = spec_bool(config->stage, "replace_global");
    read_rewrite(config, stage);
    return texts_open(config, TUNDISH_STRING, ret_schema, &stage->targets);
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
add_rewrite(struct pieces *pieces, const struct regex_replace *stage, struct byte_view text,
            const PCRE2_SIZE *groups)
{
    const uint8_t *at = stage->rewrite.data, *end = at + stage->rewrite.size;

    while (at < end) {
        const uint8_t *escape = memchr(at, '\\', (size_t)(end - at));
        size_t group;

        add_piece(pieces, at, (size_t)((escape == NULL ? end : escape) - at));
        if (escape == NULL)
            return;
        at = escape + 2;
        if (escape[1] == '\\') {
            add_piece(pieces, escape, 1);
            continue;
        }
        group = (size_t)(escape[1] - '0');
        if (groups[2 * group] != PCRE2_UNSET)
            add_piece(pieces, text.data + groups[2 * group],
                      groups[2 * group + 1] - groups[2 * group]);
    }
}

/* PCRE2's working memory, for one thread. */
struct matcher {
    pcre2_match_data *data;
    pcre2_match_context *context;
};

/* Replace matches as RE2::GlobalReplace does: an empty match directly after the last match does not
 * count, and one character is copied instead. False: the step limit was reached. */
static bool
replace(const struct regex_replace *stage, struct matcher *matcher, struct byte_view text,
        struct pieces *pieces)
{
    PCRE2_SIZE *groups = pcre2_get_ovector_pointer(matcher->data);
    size_t effort = EFFORT + EFFORT_PER_BYTE * text.size;
    size_t at = 0, last_end = SIZE_MAX;

    pcre2_set_match_limit(matcher->context, effort < UINT32_MAX ? (uint32_t)effort : UINT32_MAX);
    while (at <= text.size && !stage->leaves_texts) {
        int found =
            pcre2_match(stage->code, text.data, text.size, at, 0, matcher->data, matcher->context);

        if (found == PCRE2_ERROR_NOMATCH)
            break;
        if (found < 0)
            return false;
        add_piece(pieces, text.data + at, groups[0] - at);
        at = groups[0];
        if (groups[0] == groups[1] && groups[0] == last_end) {
            int64_t letter =
                at < text.size ? text_utf8_letter(text.data + at, text.data + text.size) : 1;
            size_t step = letter < 0 ? 1 : (size_t)letter;

            if (at < text.size)
                add_piece(pieces, text.data + at, step);
            at += step;
            continue;
        }
        add_rewrite(pieces, stage, text, groups);
        at = last_end = groups[1];
        if (!stage->all)
            break;
    }
    if (at < text.size)
        add_piece(pieces, text.data + at, text.size - at);
    return true;
}

static void
apply_column(const struct regex_replace *stage, struct matcher *matcher, const struct column *from,
             struct frame *output, uint32_t index)
{
    struct text_maker maker = { .scratch = output->scratch };
    const struct byte_view *texts = from->values;
    struct byte_view *made = frame_values(output, index, (size_t)from->value_count * sizeof *made);

    for (int64_t i = 0; i < from->value_count; i++) {
        struct pieces pieces = { .maker = &maker };

        if (!replace(stage, matcher, texts[i], &pieces))
            frame_reject(output, column_element_of(from, i),
                         "regex_replace: the pattern \"%.*s\" backtracks too much on a text of "
                         "%llu bytes; rewrite it without nested repetitions",
                         (int)stage->pattern.size, (const char *)stage->pattern.data,
                         (unsigned long long)texts[i].size);
        text_room(&maker, pieces.bytes);
        made[i] = text_take(&maker, pieces.bytes);
    }
    column_set_like(&output->columns[index], from, made);
}

static tundish_status
regex_replace_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct regex_replace *stage = state;
    struct matcher matcher = { pcre2_match_data_create_from_pattern(stage->code, NULL),
                               pcre2_match_context_create(NULL) };

    tnd_must_have(matcher.data != NULL && matcher.context != NULL);
    for (uint32_t i = 0; i < stage->targets.count; i++)
        apply_column(stage, &matcher, &input->columns[stage->targets.list[i].input], output,
                     stage->targets.list[i].output);
    pcre2_match_context_free(matcher.context);
    pcre2_match_data_free(matcher.data);
    return TUNDISH_OK;
}

static void
regex_replace_close(void *state)
{
    struct regex_replace *stage = state;

    pcre2_code_free(stage->code);
    free((void *)(uintptr_t)stage->pattern.data);
    free((void *)(uintptr_t)stage->rewrite.data);
    content_targets_close(&stage->targets);
}

const struct content_ops content_regex_replace = {
    .name = "regex_replace",
    .takes_missing = true,
    .state_bytes = sizeof(struct regex_replace),
    .open = regex_replace_open,
    .apply = regex_replace_apply,
    .close = regex_replace_close,
};
