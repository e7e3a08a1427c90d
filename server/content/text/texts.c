/* texts.c - build texts in scratch memory. */
#include "content/text/texts.h"

#include <stdlib.h>
#include <string.h>

/* Small texts share chunks, so that not each asks scratch for memory. */
enum { CHUNK_BYTES = 64 << 10, FIRST_PARTS = 256 };

uint8_t *
text_room(struct text_maker *maker, size_t bytes)
{
    if (maker->left < bytes || maker->at == NULL) {
        maker->left = bytes > CHUNK_BYTES ? bytes : CHUNK_BYTES;
        maker->at = scratch_alloc(maker->scratch, maker->left);
    }
    return maker->at;
}

struct byte_view
text_take(struct text_maker *maker, size_t bytes)
{
    struct byte_view text = { maker->at, bytes };

    maker->at += bytes;
    maker->left -= bytes;
    return text;
}

struct byte_view
text_copy(struct text_maker *maker, const void *data, size_t bytes)
{
    uint8_t *room = text_room(maker, bytes);

    if (bytes > 0)
        memcpy(room, data, bytes);
    return text_take(maker, bytes);
}

size_t
text_utf8(uint32_t c, uint8_t *to)
{
    if (c < 0x80) {
        to[0] = (uint8_t)c;
        return 1;
    }
    if (c < 0x800) {
        to[0] = (uint8_t)(0xC0 | c >> 6);
        to[1] = (uint8_t)(0x80 | (c & 0x3F));
        return 2;
    }
    if (c < 0x10000) {
        to[0] = (uint8_t)(0xE0 | c >> 12);
        to[1] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
        to[2] = (uint8_t)(0x80 | (c & 0x3F));
        return 3;
    }
    to[0] = (uint8_t)(0xF0 | c >> 18);
    to[1] = (uint8_t)(0x80 | (c >> 12 & 0x3F));
    to[2] = (uint8_t)(0x80 | (c >> 6 & 0x3F));
    to[3] = (uint8_t)(0x80 | (c & 0x3F));
    return 4;
}

int64_t
text_utf8_letter(const uint8_t *at, const uint8_t *end)
{
    uint8_t low = 0x80, high = 0xBF, first = *at;
    int64_t more, bytes = 1;

    if (first < 0x80)
        return 1;
    /* 0xC0 and 0xC1 could only start overlong forms; from 0xF5 on lie no characters. */
    if (first < 0xC2 || first > 0xF4)
        return -1;
    more = first < 0xE0 ? 1 : first < 0xF0 ? 2 : 3;
    /* The second byte's range excludes overlong forms, surrogates, and numbers above U+10FFFF. */
    if (first == 0xE0)
        low = 0xA0;
    else if (first == 0xED)
        high = 0x9F;
    else if (first == 0xF0)
        low = 0x90;
    else if (first == 0xF4)
        high = 0x8F;
    for (; bytes <= more; bytes++) {
        if (at + bytes == end || at[bytes] < low || at[bytes] > high)
            return -bytes;
        low = 0x80;
        high = 0xBF;
    }
    return bytes;
}

tundish_status
texts_describe_any(const struct stage_config *config, struct column_spec *column,
                   tundish_dtype result)
{
    if (column->dtype != TUNDISH_STRING)
        return stage_complain(config, "%s: '%s' has dtype %s; expected strings",
                              config->stage->info->name, column->name,
                              tnd_dtype_name(column->dtype));
    column->dtype = result;
    column->has_range = false;
    return TUNDISH_OK;
}

tundish_status
texts_describe(const struct stage_config *config, struct column_spec *column, tundish_dtype result)
{
    tundish_status status = texts_describe_any(config, column, result);

    return status == TUNDISH_OK ? texts_refuse_sparse(config, column) : status;
}

tundish_status
texts_describe_texts(void *state, const struct stage_config *config, void *own,
                     struct column_spec *column, bool *batch_wide)
{
    (void)state;
    (void)own;
    (void)batch_wide;
    return texts_describe(config, column, TUNDISH_STRING);
}

tundish_status
texts_open_regex(const struct stage_config *config, struct regex **ret_regex)
{
    const struct spec_value *pattern = spec_get(config->stage, "pattern");
    char *fault;
    struct regex *regex = regex_open(pattern->text, pattern->text_bytes, &fault);

    if (regex == NULL) {
        spec_complain(config->errors, pattern->line, pattern->column,
                      "\"%s\" is not a regular expression of RE2: %s", pattern->text, fault);
        free(fault);
        return TUNDISH_E_PIPELINE;
    }
    *ret_regex = regex;
    return TUNDISH_OK;
}

tundish_status
texts_refuse_sparse(const struct stage_config *config, const struct column_spec *column)
{
    return column->kind != TUNDISH_SPARSE
               ? TUNDISH_OK
               : stage_complain(config, "%s: '%s' is sparse; use to_ragged",
                                config->stage->info->name, column->name);
}

tundish_status
texts_need_lists(const struct stage_config *config, const struct column_spec *column)
{
    if (column->kind != TUNDISH_SPARSE && column->rank == RANK_UNKNOWN)
        return stage_complain(config, "%s: the number of dimensions of '%s' is not known",
                              config->stage->info->name, column->name);
    return texts_refuse_sparse(config, column);
}

void
texts_change(const struct column_map *map, const void *parameters,
             struct byte_view (*change)(const void *parameters, struct text_maker *maker,
                                        struct byte_view text))
{
    struct text_maker maker = { .scratch = map->output->scratch };
    const struct byte_view *texts = map->from->values;
    struct byte_view *made =
        frame_values(map->output, map->at, (size_t)map->from->value_count * sizeof *made);

    for (int64_t i = 0; i < map->from->value_count; i++)
        made[i] = change(parameters, &maker, texts[i]);
    column_set_like(map->to, map->from, made);
}

void
text_parts_add(struct text_parts *parts, struct byte_view part)
{
    /* Doubling keeps the copies linear. Scratch has no realloc. */
    if (parts->count == parts->capacity) {
        int64_t capacity = parts->capacity == 0 ? FIRST_PARTS : parts->capacity * 2;
        struct byte_view *list = scratch_array(parts->scratch, (size_t)capacity, sizeof *list);

        if (parts->count > 0)
            memcpy(list, parts->list, (size_t)parts->count * sizeof *list);
        parts->list = list;
        parts->capacity = capacity;
    }
    parts->list[parts->count++] = part;
}

tundish_status
texts_open_lists(const struct stage_config *config, struct column_spec *column)
{
    tundish_status status = texts_need_lists(config, column);

    if (status != TUNDISH_OK)
        return status;
    if (column->rank == RANK_MAX)
        return stage_complain(config, "%s: '%s' has %d dimensions already",
                              config->stage->info->name, column->name, RANK_MAX);
    if (column->rank > 0) {
        column->kind = TUNDISH_RAGGED;
        column->ragged_rank = column->rank;
        column->splits_int32 = false;
    }
    column->shape[column->rank++] = -1;
    return TUNDISH_OK;
}

void
texts_cut(const struct column *from, struct frame *output, uint32_t index, const void *parameters,
          bool (*cut)(const void *parameters, struct text_maker *maker, struct byte_view text,
                      struct text_parts *parts),
          const char *fault)
{
    struct text_maker maker = { .scratch = output->scratch };
    struct text_parts parts = { .scratch = output->scratch };
    const struct byte_view *texts = from->values;
    struct column *column = &output->columns[index];
    int64_t *splits = scratch_array(output->scratch, (size_t)from->value_count + 1, sizeof *splits);

    splits[0] = 0;
    for (int64_t i = 0; i < from->value_count; i++) {
        if (!cut(parameters, &maker, texts[i], &parts))
            frame_reject(output, column_element_of(from, i), "%s", fault);
        splits[i + 1] = parts.count;
    }
    *column = *from;
    column->levels[column->level_count++] = (struct level){ .uniform = -1, .splits = splits };
    column->value_count = parts.count;
    column->values = parts.list != NULL ? parts.list : scratch_alloc(output->scratch, 0);
}
