/* decode_text.c - the loop that the stages from strings to strings share. */
#include "content/records/decode_text.h"

#include "content/text/texts.h"

tundish_status
decode_text_open(const struct stage_config *config, struct schema *ret_schema,
                 struct content_targets *ret_targets)
{
    tundish_status status = content_targets_open(config, ret_schema, ret_targets);

    for (uint32_t i = 0; i < ret_targets->count && status == TUNDISH_OK; i++)
        status = texts_describe(config, &ret_schema->columns[ret_targets->list[i].output],
                                TUNDISH_STRING);
    return status;
}

void
decode_text_apply(const struct content_targets *targets, const struct frame *input,
                  struct frame *output,
                  const char *(*decode)(void *context, struct byte_view from,
                                        struct scratch *scratch, struct byte_view *ret_to),
                  void *context)
{
    for (uint32_t t = 0; t < targets->count; t++) {
        const struct column *texts = &input->columns[targets->list[t].input];
        const struct byte_view *views = texts->values;
        uint32_t index = targets->list[t].output;
        struct byte_view *to = frame_values(output, index, (size_t)texts->value_count * sizeof *to);

        for (int64_t i = 0; i < texts->value_count; i++) {
            const char *problem = decode(context, views[i], output->scratch, &to[i]);

            if (problem == NULL)
                continue;
            to[i] = (struct byte_view){ 0 };
            frame_reject(output, column_element_of(texts, i), "%s", problem);
        }
        column_set_like(&output->columns[index], texts, to);
    }
}
