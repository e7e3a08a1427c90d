/* encoding.c - the names of the modes; the encodings themselves are not in this build yet. */
#include "content/encoding.h"

#include <string.h>

#include "core/must.h"

bool
encoding_mode_of(const char *name, enum encoding_mode *ret_mode)
{
    static const struct {
        const char *name;
        enum encoding_mode mode;
    } modes[] = {
        { "int", ENCODE_INT },        { "one_hot", ENCODE_ONE_HOT },
        { "count", ENCODE_COUNT },    { "multi_hot", ENCODE_MULTI_HOT },
        { "tf_idf", ENCODE_TF_IDF },  { "binary", ENCODE_MULTI_HOT },
        { "tf-idf", ENCODE_TF_IDF },
    };

    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        if (strcmp(modes[i].name, name) == 0) {
            *ret_mode = modes[i].mode;
            return true;
        }
    return false;
}

tundish_status
encoding_open(const struct encoding *encoding, const struct content_config *config,
              struct column_spec *column, bool *ret_batch_wide)
{
    (void)encoding;
    (void)ret_batch_wide;
    return content_complain(config, "output_mode %s of column '%s' is not in this build yet",
                            spec_text(config->stage, "output_mode"), column->name);
}

void
encoding_apply(const struct encoding *encoding, const struct column_spec *input_spec,
               const struct column *indices, const float *weights, struct frame *output,
               uint32_t index)
{
    (void)encoding;
    (void)input_spec;
    (void)indices;
    (void)weights;
    (void)output;
    must(index != index); /* encoding_open refuses every mode */
}
