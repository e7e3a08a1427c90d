/* example_plain.c - read a record step by step as TensorFlow does, and name its error. */
#include <stdio.h>
#include <string.h>

#include "content/records/example_parsing.h"

static const char *
kind_name(tundish_dtype dtype)
{
    return dtype == TUNDISH_FLOAT32 ? "float" : tnd_dtype_name(dtype);
}

static int64_t
element_of(const struct parsing *parsing)
{
    const struct column *column = parsing->input->column;

    return column == NULL ? parsing->row : column_element_of(column, parsing->row);
}

/* "" for a single row, " in row 3 of the batch" in a batch. */
static const char *
position(const struct parsing *parsing, char text[48])
{
    int64_t begin, end;

    text[0] = '\0';
    if (parsing->input->is_batch && parsing->input->column != NULL) {
        column_value_range(parsing->input->column, element_of(parsing), element_of(parsing) + 1,
                           &begin, &end);
        snprintf(text, 48, " in row %lld of the batch", (long long)(parsing->row - begin));
    }
    return text;
}

#define REJECT(parsing, format, ...)                                                               \
    do {                                                                                           \
        char where_[48];                                                                           \
        frame_reject((parsing)->frame, element_of(parsing), format "%s", __VA_ARGS__,              \
                     position((parsing), where_));                                                 \
    } while (0)

static void
collect(void *context, struct example_entry entry)
{
    struct parsing *parsing = context;

    if (parsing->entry_count == parsing->entry_capacity) {
        uint64_t capacity = 2 * parsing->entry_capacity + 64;
        struct example_entry *entries =
            scratch_array(parsing->frame->scratch, capacity, sizeof *entries);

        if (parsing->entry_count > 0)
            memcpy(entries, parsing->entries, parsing->entry_count * sizeof *entries);
        parsing->entries = entries;
        parsing->entry_capacity = capacity;
    }
    parsing->entries[parsing->entry_count++] = entry;
}

static tundish_dtype
dtype_of_tag(uint8_t tag)
{
    return tag == TAG_BYTES_LIST   ? TUNDISH_STRING
           : tag == TAG_FLOAT_LIST ? TUNDISH_FLOAT32
           : tag == TAG_INT64_LIST ? TUNDISH_INT64
                                   : (tundish_dtype)0;
}

/* Check and store the values of a feature of the right kind. */
static bool
plain_values(struct parsing *parsing, uint32_t f, struct byte_view bytes)
{
    const struct example_feature *feature = &parsing->parser->features[f];
    const uint8_t *at = bytes.data + 1;
    const uint8_t *end = bytes.data + bytes.size;
    int64_t count;

    if (!example_read_list(feature->dtype, at, end, NULL, 0, &count)) {
        REJECT(parsing, "could not parse the %s list of feature '%s'", kind_name(feature->dtype),
               feature->name);
        return false;
    }
    if (!feature->is_list && count != feature->value_count) {
        REJECT(parsing, "feature '%s' has %lld %s values, but its shape %s holds %lld",
               feature->name, (long long)count, kind_name(feature->dtype),
               feature->features_shape_text, (long long)feature->value_count);
        return false;
    }
    if (feature->is_list && count % feature->value_count != 0) {
        REJECT(parsing,
               "feature '%s' has %lld %s values, which is not a multiple of the %lld of its shape "
               "%s",
               feature->name, (long long)count, kind_name(feature->dtype),
               (long long)feature->value_count, feature->features_shape_text);
        return false;
    }
    return feature->is_list ? example_take_list(parsing, f, at, end)
                            : example_read_list(feature->dtype, at, end, example_target(parsing, f),
                                                count, &count);
}

/* Handle one feature. Entries are visited from the last to the first, since the last one counts in
 * protobuf maps. TensorFlow's two parsers differ on whether a feature without a kind counts,
 * too. */
static bool
plain_feature(struct parsing *parsing, uint32_t f, struct byte_view bytes)
{
    const struct example_feature *feature = &parsing->parser->features[f];
    uint64_t *seen = &parsing->seen[f / 64];
    uint64_t bit = UINT64_C(1) << f % 64;
    tundish_dtype dtype;

    if (bytes.size == 0) {
        if (parsing->input->is_batch && feature->is_list && !feature->is_padded)
            *seen |= bit;
        return true;
    }
    dtype = dtype_of_tag(bytes.data[0]);
    if (dtype == 0) {
        REJECT(parsing, "could not parse feature '%s': its kind is unknown", feature->name);
        return false;
    }
    if (*seen & bit)
        return true;
    *seen |= bit;
    if (dtype != feature->dtype) {
        REJECT(parsing, "feature '%s' is of data type %s, but %s is expected", feature->name,
               kind_name(dtype), kind_name(feature->dtype));
        return false;
    }
    return plain_values(parsing, f, bytes);
}

static bool
plain_missing(struct parsing *parsing)
{
    const struct example_parser *parser = parsing->parser;

    for (uint32_t f = 0; f < parser->count; f++) {
        const struct example_feature *feature = &parser->features[f];

        if (feature->is_list || (parsing->seen[f / 64] >> f % 64 & 1))
            continue;
        if (feature->fallback == NULL) {
            REJECT(parsing, "feature '%s' (data type %s) is required but could not be found",
                   feature->name, kind_name(feature->dtype));
            return false;
        }
        example_take_fallback(parsing, f);
    }
    return true;
}

static bool
plain_record(struct parsing *parsing, struct byte_view record)
{
    memset(parsing->seen, 0, parsing->parser->seen_words * sizeof *parsing->seen);
    for (uint32_t i = 0; i < parsing->parser->list_count; i++) {
        int64_t *splits = parsing->values[parsing->parser->lists[i]].splits;

        splits[parsing->row + 1] = splits[parsing->row];
    }
    parsing->entry_count = 0;
    if (!wire_entries(record, collect, parsing)) {
        REJECT(parsing, "could not parse the record of %llu bytes as a tf.train.Example",
               (unsigned long long)record.size);
        return false;
    }
    for (uint64_t i = parsing->entry_count; i-- > 0;) {
        const struct example_entry *entry = &parsing->entries[i];

        for (int32_t f = example_parser_find(parsing->parser, entry->key); f != NOBODY;
             f = parsing->parser->same[f])
            if (!plain_feature(parsing, (uint32_t)f, entry->feature))
                return false;
    }
    return plain_missing(parsing);
}

/* Leave zeros for a record that is never delivered. */
static void
blank(struct parsing *parsing)
{
    const struct example_parser *parser = parsing->parser;

    for (uint32_t f = 0; f < parser->count; f++) {
        const struct example_feature *feature = &parser->features[f];

        if (feature->is_list)
            parsing->values[f].splits[parsing->row + 1] = parsing->values[f].splits[parsing->row];
        else
            memset(example_target(parsing, f), 0,
                   (size_t)feature->value_count * example_value_bytes(feature->dtype));
    }
}

void
example_read_plainly(struct parsing *parsing, struct byte_view record)
{
    if (!plain_record(parsing, record))
        blank(parsing);
}
