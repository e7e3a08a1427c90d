/* fuzz_json.c - hostile JSON objects: whatever is read stays within the record. */
#include <stdlib.h>
#include <string.h>

#include "content/records/json_parse.h"
#include "core/memory.h"
#include "core/must.h"

static struct example_parser *
make_parser(void)
{
    static const char *const names[] = { "a", "o.s", "o.v", "x" };
    static const tundish_dtype dtypes[] = { TUNDISH_INT64, TUNDISH_STRING, TUNDISH_INT64,
                                            TUNDISH_FLOAT32 };
    struct example_feature *features = tnd_zalloc(4, sizeof *features);

    for (int i = 0; i < 4; i++) {
        features[i] = (struct example_feature){ .name = tnd_strdup(names[i]),
                                                .name_bytes = strlen(names[i]),
                                                .dtype = dtypes[i],
                                                .is_list = i == 2,
                                                .value_count = i == 3 ? 2 : 1,
                                                .features_shape_text = tnd_strdup("[]") };
        if (i == 3) {
            features[i].rank = 1;
            features[i].shape = tnd_zalloc(1, sizeof *features[i].shape);
            features[i].shape[0] = 2;
        }
        if (i == 1 || i == 3)
            features[i].fallback = tnd_zalloc(2, sizeof(struct byte_view));
    }
    return example_parser_open(features, 4);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static struct example_parser *parser;
    struct frame_errors errors = { 0 };
    struct frame frame = { .count = 1, .scratch = scratch_open(), .errors = &errors };
    struct example_values values[4] = { { 0 } };
    struct byte_view record;
    uint8_t *copy = malloc(bytes + 64);

    if (parser == NULL)
        parser = make_parser();
    memcpy(copy, data, bytes);
    memset(copy + bytes, '1', 64);
    record = (struct byte_view){ copy, bytes };
    for (int f = 0; f < 4; f++)
        if (f != 2)
            values[f].values = scratch_array(frame.scratch, 2, sizeof(struct byte_view));
    json_parse(parser, &(struct example_input){ &record, 1, NULL, false }, &frame, values);
    if (errors.status == TUNDISH_OK) {
        struct byte_view text = *(struct byte_view *)values[1].values;

        must(text.size <= bytes);
        must(values[2].splits[1] >= 0 && values[2].splits[1] <= (int64_t)bytes);
    }
    scratch_close(frame.scratch);
    free(copy);
    return 0;
}
