/* print_lists.c - lists by levels, values by dtype. */
#include "print_lists.h"

#include <inttypes.h>

#include "core/bytes.h"

static void
print_number(FILE *out, tundish_dtype dtype, const void *values, int64_t i)
{
    switch (dtype) {
    case TUNDISH_BOOL:
        fprintf(out, ((const uint8_t *)values)[i] ? "true" : "false");
        break;
    case TUNDISH_INT64:
        fprintf(out, "%" PRId64, ((const int64_t *)values)[i]);
        break;
    case TUNDISH_INT32:
        fprintf(out, "%d", ((const int32_t *)values)[i]);
        break;
    case TUNDISH_INT16:
        fprintf(out, "%d", ((const int16_t *)values)[i]);
        break;
    case TUNDISH_INT8:
        fprintf(out, "%d", ((const int8_t *)values)[i]);
        break;
    case TUNDISH_UINT8:
        fprintf(out, "%d", ((const uint8_t *)values)[i]);
        break;
    case TUNDISH_FLOAT32:
        fprintf(out, "%.9g", (double)((const float *)values)[i]);
        break;
    case TUNDISH_FLOAT64:
        fprintf(out, "%.17g", ((const double *)values)[i]);
        break;
    default:
        fprintf(out, "?");
        break;
    }
}

static void
print_level(FILE *out, const struct column *column, tundish_dtype dtype, uint32_t level,
            int64_t begin, int64_t end)
{
    for (int64_t i = begin; i < end; i++) {
        if (i > begin)
            fprintf(out, " ");
        if (level < column->level_count) {
            fprintf(out, "[");
            print_level(out, column, dtype, level + 1, level_begin(&column->levels[level], i),
                        level_begin(&column->levels[level], i + 1));
            fprintf(out, "]");
        } else if (dtype == TUNDISH_STRING) {
            struct byte_view text = ((const struct byte_view *)column->values)[i];

            fprintf(out, "\"%.*s\"", (int)text.size, (const char *)text.data);
        } else {
            print_number(out, dtype, column->values, i);
        }
    }
}

void
print_lists(FILE *out, const struct column *column, tundish_dtype dtype, int64_t begin, int64_t end)
{
    print_level(out, column, dtype, 0, begin, end);
}
