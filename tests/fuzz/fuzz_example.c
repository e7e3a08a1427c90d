/* fuzz_example.c - hostile tf.train.Examples: the guessing parser finds what the plain one finds.
 *
 * The input is records one behind the other, each with its length in one byte in front, so that
 * what is learned from one record meets the next. They are parsed again after many copies of the
 * first, from which runs of entries are learned, and once more when these are known.
 */
#include <stdlib.h>
#include <string.h>

#include "content/records/example.h"
#include "core/memory.h"
#include "core/must.h"

enum { FIXED = 9, FEATURES = 13, COPIES = 70, RECORDS_MAX = 64 };

static struct example_parser *
make_parser(void)
{
    static const struct {
        const char *name;
        tundish_dtype dtype;
        bool is_list, is_padded, is_required;
        int64_t value_count;
    } wanted[FEATURES] = {
        { "a", TUNDISH_INT64, false, false, true, 1 },
        { "b", TUNDISH_FLOAT32, false, false, false, 1 },
        { "s", TUNDISH_STRING, false, false, false, 1 },
        { "m", TUNDISH_INT64, false, false, false, 2 },
        { "n", TUNDISH_INT64, false, false, false, 1 },
        { "t", TUNDISH_STRING, false, false, false, 1 },
        { "u", TUNDISH_STRING, false, false, false, 1 },
        { "c", TUNDISH_FLOAT32, false, false, false, 1 },
        { "d", TUNDISH_FLOAT32, false, false, false, 1 },
        { "v", TUNDISH_INT64, true, false, false, 1 },
        { "w", TUNDISH_STRING, true, false, false, 1 },
        { "q", TUNDISH_FLOAT32, true, true, false, 2 },
        { "a", TUNDISH_INT64, true, false, false, 1 },
    };
    struct example_feature *features = tnd_zalloc(FEATURES, sizeof *features);

    for (int i = 0; i < FEATURES; i++) {
        features[i] = (struct example_feature){
            .name = tnd_strdup(wanted[i].name),
            .name_bytes = strlen(wanted[i].name),
            .dtype = wanted[i].dtype,
            .is_list = wanted[i].is_list,
            .is_padded = wanted[i].is_padded,
            .value_count = wanted[i].value_count,
            .features_shape_text = tnd_strdup("[]"),
        };
        if (!wanted[i].is_list && !wanted[i].is_required)
            features[i].fallback =
                tnd_zalloc((size_t)wanted[i].value_count, sizeof(struct byte_view));
    }
    return example_parser_open(features, FEATURES);
}

static size_t
size_of(int f)
{
    static const size_t sizes[FEATURES] = {
        8, 4, sizeof(struct byte_view), 8, 8, sizeof(struct byte_view), sizeof(struct byte_view), 4,
        4, 8, sizeof(struct byte_view), 4, 8
    };

    return sizes[f];
}

/* One parse of all records, by either parser. */
struct outcome {
    struct scratch *scratch;
    struct frame_errors errors;
    struct example_values values[FEATURES];
};

static void
parse(struct outcome *outcome, const struct example_parser *parser,
      const struct example_input *input,
      void (*how)(const struct example_parser *, const struct example_input *, struct frame *,
                  struct example_values *))
{
    static const size_t counts[FEATURES] = { 1, 1, 1, 2, 1, 1, 1, 1, 1 };
    struct frame frame = { .count = input->count };

    outcome->scratch = scratch_open();
    frame.scratch = outcome->scratch;
    frame.errors = &outcome->errors;
    for (int f = 0; f < FIXED; f++)
        outcome->values[f].values =
            scratch_array(frame.scratch, (size_t)input->count * counts[f], size_of(f));
    how(parser, input, &frame, outcome->values);
}

static void
compare_strings(const struct byte_view *a, const struct byte_view *b, int64_t count)
{
    for (int64_t i = 0; i < count; i++)
        must(bytes_are_equal(a[i], b[i]));
}

static void
compare(const struct outcome *a, const struct outcome *b, int64_t records)
{
    static const int64_t counts[FEATURES] = { 1, 1, 1, 2, 1, 1, 1, 1, 1 };

    must(a->errors.bad_count == b->errors.bad_count && a->errors.first_bad == b->errors.first_bad);
    must(strcmp(a->errors.text, b->errors.text) == 0);
    for (int f = 0; f < FEATURES; f++) {
        int64_t count = records * counts[f];

        if (f >= FIXED) {
            must(memcmp(a->values[f].splits, b->values[f].splits,
                        (size_t)(records + 1) * sizeof(int64_t)) == 0);
            count = a->values[f].splits[records];
        }
        if (f == 2 || f == 5 || f == 6 || f == 10)
            compare_strings(a->values[f].values, b->values[f].values, count);
        else if (count > 0)
            must(memcmp(a->values[f].values, b->values[f].values, (size_t)count * size_of(f)) == 0);
    }
}

static void
check(const struct byte_view *records, int64_t count, bool is_batch)
{
    const struct example_input input = { .records = records, .count = count, .is_batch = is_batch };
    struct example_parser *parser = make_parser(); /* each input is met by one that knows nothing */
    struct outcome guessed = { 0 }, plain = { 0 };

    parse(&guessed, parser, &input, example_parse);
    parse(&plain, parser, &input, example_parse_plainly);
    compare(&guessed, &plain, count);
    scratch_close(guessed.scratch);
    guessed = (struct outcome){ 0 };
    parse(&guessed, parser, &input, example_parse); /* now it knows runs */
    compare(&guessed, &plain, count);
    scratch_close(guessed.scratch);
    scratch_close(plain.scratch);
    example_parser_close(parser);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct byte_view records[COPIES + RECORDS_MAX], *own = records + COPIES;
    int64_t count = 0;
    uint8_t *copy;

    if (bytes == 0)
        return 0;
    /* 64 readable bytes behind the last record and not one more, for the sanitizer to guard. */
    copy = malloc(bytes + 64);
    memcpy(copy, data, bytes);
    memset(copy + bytes, 0xa5, 64);
    for (size_t at = 1; at < bytes && count < RECORDS_MAX;) {
        size_t size = copy[at++];

        if (size > bytes - at)
            size = bytes - at;
        own[count++] = (struct byte_view){ copy + at, size };
        at += size;
    }
    check(own, count, copy[0] & 1);
    for (int i = 0; i < COPIES && count > 0; i++)
        records[i] = own[0];
    if (count > 0)
        check(records, COPIES + count, copy[0] & 1);
    free(copy);
    return 0;
}
