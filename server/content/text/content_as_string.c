/* content_as_string.c - tf.strings.as_string, which formats numbers with printf. */
#include <stdio.h>
#include <string.h>

#include "column/convert.h"
#include "column/flush.h"
#include "content/column_wise.h"
#include "content/text/texts.h"
#include "core/decimal.h"

struct as_string {
    struct column_wise wise;
    bool is_plain; /* integers without width */
    bool is_left;  /* texts: blanks go after them */
    size_t width;  /* texts: bytes at least */
    char integers[32],
        floats[32]; /* formats for long long, unsigned long long by its 'u', double */
};

/* Build printf formats from checked parts only: nothing of the user's text but one flag character
 * enters a format. */
static tundish_status
make_formats(void *state, const struct stage_config *config)
{
    struct as_string *stage = state;
    const struct spec_value *fill = spec_get(config->stage, "fill");
    bool scientific = spec_bool(config->stage, "scientific");
    bool shortest = spec_bool(config->stage, "shortest");
    int64_t width = spec_int(config->stage, "width");
    int64_t precision = spec_int(config->stage, "precision");
    char flag[2] = "", size[24] = "", digits[24] = "";

    if (scientific && shortest)
        return stage_complain(config, "as_string: scientific and shortest exclude each other");
    if (fill->text_bytes > 1 || (fill->text_bytes == 1 && strchr(" +-0#", fill->text[0]) == NULL))
        return spec_complain(config->errors, fill->line, fill->column,
                             "fill must be one of ' ', '+', '-', '0' and '#', not \"%s\"",
                             fill->text);
    if (width > 1000 || precision > 1000)
        return stage_complain(config, "as_string: width and precision go up to 1000");
    if (fill->text_bytes == 1)
        flag[0] = fill->text[0];
    if (width >= 0)
        snprintf(size, sizeof size, "%lld", (long long)width);
    if (precision >= 0)
        snprintf(digits, sizeof digits, ".%lld", (long long)precision);
    stage->is_plain = flag[0] == '\0' && width < 0;
    stage->is_left = flag[0] == '-';
    stage->width = width < 0 ? 0 : (size_t)width;
    snprintf(stage->integers, sizeof stage->integers, "%%%s%s", flag, size);
    snprintf(stage->floats, sizeof stage->floats, "%%%s%s%s%c", flag, size, digits,
             scientific ? 'e'
             : shortest ? 'g'
                        : 'f');
    return TUNDISH_OK;
}

static tundish_status
describe(void *state, const struct stage_config *config, void *own, struct column_spec *column,
         bool *batch_wide)
{
    bool floats = spec_bool(config->stage, "scientific") || spec_bool(config->stage, "shortest") ||
                  spec_int(config->stage, "precision") >= 0;

    (void)state;
    (void)own;
    (void)batch_wide;
    if (floats && column->dtype != TUNDISH_STRING && !tnd_dtype_is_float(column->dtype))
        return stage_complain(config,
                              "as_string: precision, scientific and shortest are for "
                              "floats, and '%s' is %s",
                              column->name, tnd_dtype_name(column->dtype));
    column->dtype = TUNDISH_STRING;
    column->has_range = false;
    return texts_refuse_sparse(config, column);
}

enum { TEXT_MAX = 1500 }; /* 309 digits, a point, 1000 more, or 1000 wide */

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" /* made by make_formats, from checked parts   \
                                                      */

static struct byte_view
print_double(const struct as_string *stage, struct text_maker *maker, double number)
{
    char *room = (char *)text_room(maker, TEXT_MAX);

    return text_take(maker, (size_t)snprintf(room, TEXT_MAX, stage->floats, flush_double(number)));
}

static struct byte_view
print_integer(const struct as_string *stage, struct text_maker *maker, int64_t number,
              bool is_unsigned)
{
    char *room = (char *)text_room(maker, TEXT_MAX), format[40];

    if (stage->is_plain && (!is_unsigned || number >= 0))
        return text_take(maker, tnd_decimal(number, room));
    snprintf(format, sizeof format, "%s%s", stage->integers, is_unsigned ? "llu" : "lld");
    return text_take(maker, (size_t)snprintf(room, TEXT_MAX, format, (long long)number));
}

#pragma GCC diagnostic pop

/* Texts are padded to the width, and ignore the other parameters, as in TensorFlow. */
static struct byte_view
print_text(const struct as_string *stage, struct text_maker *maker, struct byte_view text)
{
    size_t blanks = text.size < stage->width ? stage->width - text.size : 0;
    uint8_t *room;

    if (blanks == 0)
        return text;
    room = text_room(maker, stage->width);
    memset(room, ' ', stage->width);
    if (text.size > 0)
        memcpy(room + (stage->is_left ? 0 : blanks), text.data, text.size);
    return text_take(maker, stage->width);
}

static void
print_column(const struct as_string *stage, tundish_dtype dtype, const struct column *from,
             struct scratch *scratch, struct byte_view *texts)
{
    struct text_maker maker = { .scratch = scratch };

    if (dtype == TUNDISH_STRING) {
        for (int64_t i = 0; i < from->value_count; i++)
            texts[i] = print_text(stage, &maker, ((const struct byte_view *)from->values)[i]);
    } else if (tnd_dtype_is_float(dtype)) {
        /* TensorFlow promotes floats to double for %f, too. */
        const double *numbers = convert_column(TUNDISH_FLOAT64, dtype, from, scratch);

        for (int64_t i = 0; i < from->value_count; i++)
            texts[i] = print_double(stage, &maker, numbers[i]);
    } else if (dtype == TUNDISH_BOOL) {
        for (int64_t i = 0; i < from->value_count; i++)
            texts[i] = ((const uint8_t *)from->values)[i] ? text_copy(&maker, "true", 4)
                                                          : text_copy(&maker, "false", 5);
    } else {
        bool is_unsigned = dtype == TUNDISH_UINT8 || dtype == TUNDISH_UINT16 ||
                           dtype == TUNDISH_UINT32 || dtype == TUNDISH_UINT64;
        const int64_t *numbers =
            convert_column(is_unsigned ? TUNDISH_UINT64 : TUNDISH_INT64, dtype, from, scratch);

        for (int64_t i = 0; i < from->value_count; i++)
            texts[i] = print_integer(stage, &maker, numbers[i], is_unsigned);
    }
}

static void
map_column(const void *state, const struct column_map *map)
{
    const struct as_string *stage = state;
    struct byte_view *texts =
        frame_values(map->output, map->at, (size_t)map->from->value_count * sizeof *texts);

    print_column(stage, map->spec->dtype, map->from, map->output->scratch, texts);
    column_set_like(map->to, map->from, texts);
}

static const struct column_wise_ops columns = {
    .read = make_formats,
    .describe = describe,
    .map = map_column,
};

const struct content_ops content_as_string = {
    .name = "as_string",
    .takes_missing = true,
    .state_bytes = sizeof(struct as_string),
    .columns = &columns,
    .open = column_wise_open,
    .apply = column_wise_apply,
    .close = column_wise_close,
};
