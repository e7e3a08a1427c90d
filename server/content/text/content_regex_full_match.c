/* content_regex_full_match.c - tf.strings.regex_full_match. */
#include "content/text/texts.h"

struct regex_full_match {
    struct regex *regex;
    struct content_targets targets;
};

static tundish_status
regex_full_match_open(void *state, const struct stage_config *config, struct schema *ret_schema,
                      bool *ret_batch_wide)
{
    struct regex_full_match *stage = state;
    tundish_status status = texts_open_regex(config, &stage->regex);

    *ret_batch_wide = false;
    return status == TUNDISH_OK ? texts_open(config, TUNDISH_BOOL, ret_schema, &stage->targets)
                                : status;
}

static tundish_status
regex_full_match_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct regex_full_match *stage = state;

    for (uint32_t i = 0; i < stage->targets.count; i++) {
        const struct content_target *target = &stage->targets.list[i];
        const struct column *from = &input->columns[target->input];
        const struct byte_view *texts = from->values;
        uint8_t *matches = frame_values(output, target->output, (size_t)from->value_count);

        for (int64_t j = 0; j < from->value_count; j++)
            matches[j] = regex_matches(stage->regex, texts[j].data, (size_t)texts[j].size);
        column_set_like(&output->columns[target->output], from, matches);
    }
    return TUNDISH_OK;
}

static void
regex_full_match_close(void *state)
{
    struct regex_full_match *stage = state;

    regex_close(stage->regex);
    content_targets_close(&stage->targets);
}

const struct content_ops content_regex_full_match = {
    .name = "regex_full_match",
    .takes_missing = true,
    .state_bytes = sizeof(struct regex_full_match),
    .open = regex_full_match_open,
    .apply = regex_full_match_apply,
    .close = regex_full_match_close,
};
