/* stage_fixture.h - one content stage, written as in a pipeline file, run over columns made by
 * hand; what comes out is compared as text.
 *
 * Columns are printed as print_lists.h has it.
 */
#ifndef TESTS_CONTENT_STAGE_FIXTURE_H
#define TESTS_CONTENT_STAGE_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "content/content.h"

struct stage_run {
    struct spec_file *file;
    struct spec_errors complaints;
    const struct content_ops *ops;
    void *state;
    struct schema input_schema, schema;
    struct column inputs[16], outputs[96];
    struct frame input, output;
    struct frame_errors errors;
    uint32_t depth;
    bool batch_wide;
    char *text; /* of the last complaint, rejection or column asked for */
};

/* Columns first, then stage_run, as often as one likes. `stage` is YAML, for instance "decode_raw:
 * int16". */
struct stage_run *stage_run_open(int64_t count, uint32_t depth);
void stage_run_close(struct stage_run *run);

/* A dense column; dims end with -1 and may be NULL for scalars. Values are not copied. */
void stage_run_add(struct stage_run *run, const char *name, tundish_dtype dtype, const void *values,
                   const int64_t *dims);

/* A column of vectors cut by splits (count + 1 of them). */
void stage_run_add_lists(struct stage_run *run, const char *name, tundish_dtype dtype,
                         const void *values, const int64_t *splits);

/* Open and apply. The status of what went wrong first; its sentence is in run->text. */
tundish_status stage_run(struct stage_run *run, const char *stage);

/* A column that came out. */
const char *stage_run_column(struct stage_run *run, const char *name);

/* "int64[-1,3]". */
const char *stage_run_spec(struct stage_run *run, const char *name);

/* A string with 64 readable bytes behind it, kept until the process ends. */
struct byte_view text_view(const char *text);
struct byte_view bytes_view(const void *bytes, size_t size);

#endif
