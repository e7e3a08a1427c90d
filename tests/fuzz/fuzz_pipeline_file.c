/* fuzz_pipeline_file.c - any bytes as a pipeline file: an answer, never a crash, and no error
 * without a complaint. */
#include <stdint.h>
#include <stdlib.h>

#include "core/must.h"
#include "spec/column_list.h"
#include "spec/spec.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes);

/* What a plan does with every list of columns. */
static void
expand_lists(const struct spec_value *value)
{
    static const char *const known[] = { "value", "label", "C1", "C2" };
    struct spec_errors errors = { 0 };
    struct spec_names list = { 0 };

    if (value->kind != SPEC_LIST && value->kind != SPEC_TEXT)
        return;
    spec_expand_columns(value, known, 4, &errors, &list);
    spec_names_close(&list);
    spec_expand_columns(value, NULL, 0, &errors, &list);
    spec_names_close(&list);
    spec_errors_close(&errors);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t data_bytes)
{
    struct spec_errors errors = { 0 };
    struct spec_file *file = NULL;
    tundish_status status =
        spec_open_text((const char *)data, data_bytes, "fuzz", ".", &errors, &file);

    must((status == TUNDISH_OK) == (errors.count == 0));
    must((status == TUNDISH_OK) == (file != NULL));
    free(spec_errors_text(&errors));
    for (uint32_t i = 0; file != NULL && i < file->stream_count; i++) {
        const struct spec_dataset *dataset = &file->streams[i].dataset;

        for (uint32_t j = 0; j < dataset->stage_count; j++)
            for (uint32_t k = 0; k < dataset->stages[j].info->parameter_count; k++)
                if (dataset->stages[j].arguments[k] != NULL)
                    expand_lists(dataset->stages[j].arguments[k]);
    }
    spec_errors_close(&errors);
    spec_close(file);
    return 0;
}
