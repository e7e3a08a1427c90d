/* content_regex_full_match.c - tf.strings.regex_full_match. */
#include "content/text/texts.h"

struct regex_full_match {
    struct column_wise wise;
    struct regex *regex;
};

static tundish_status
read_pattern(void *state, const struct stage_config *config)
{
    struct regex_full_match *stage = state;

    return texts_open_regex(config, &stage->regex);
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    (void)state;
    (void)own;
    (void)batch_wide;
    return texts_describe(config, column, TUNDISH_BOOL);
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct regex_full_match *stage = state;
    const struct byte_view *texts = map->from->values;
    uint8_t *matches = frame_values(map->output, map->at, (size_t)map->from->value_count);

    for (int64_t i = 0; i < map->from->value_count; i++)
        matches[i] = regex_matches(stage->regex, texts[i].data, (size_t)texts[i].size);
    column_set_like(map->to, map->from, matches);
}

static void
close_pattern(void *state)
{
    struct regex_full_match *stage = state;

    regex_close(stage->regex);
}

static const struct column_wise_ops columns = {
    .read = read_pattern,
    .describe = describe,
    .map = map_column,
    .close = close_pattern,
};

const struct content_ops content_regex_full_match = {
    .name = "regex_full_match",
    .takes_missing = true,
    .state_bytes = sizeof(struct regex_full_match),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
