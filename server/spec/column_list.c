/* column_list.c - names, globs and ranges of columns. */
#include "spec/column_list.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "spec/name_pattern.h"

enum { NAMES_MAX = 16384, DIGITS_MAX = 9 };

void
spec_names_close(struct spec_names *list)
{
    if (list == NULL)
        return;
    for (size_t i = 0; i < list->count; i++)
        free(list->names[i]);
    free(list->names);
    *list = (struct spec_names){ 0 };
}

bool
spec_names_hold(const struct spec_names *list, const char *name)
{
    for (size_t i = 0; i < list->count; i++)
        if (strcmp(list->names[i], name) == 0)
            return true;
    return false;
}

bool
spec_name_matches(const char *pattern, const char *name)
{
    return strcmp(pattern, name) == 0 ||
           (name_pattern_is(pattern) && name_pattern_matches(pattern, name));
}

/* C01..C10: a prefix and the numbers from first to last, with at least `width` digits. */
struct range {
    const char *prefix;
    size_t prefix_bytes;
    unsigned long first, last;
    int width;
};

enum range_form { RANGE_NONE, RANGE_OK, RANGE_BAD };

/* The number of digits at the end of text[0, bytes). */
static size_t
digits_at_end(const char *text, size_t bytes)
{
    size_t count = 0;

    while (count < bytes && text[bytes - 1 - count] >= '0' && text[bytes - 1 - count] <= '9')
        count++;
    return count;
}

static enum range_form
read_range(const char *text, struct range *ret_range)
{
    const char *dots = strstr(text, "..");
    const char *right = dots != NULL ? dots + 2 : NULL;
    size_t left_bytes, right_bytes, left_digits, right_digits;
    bool has_zeros;

    if (dots == NULL)
        return RANGE_NONE;
    left_bytes = (size_t)(dots - text);
    right_bytes = strlen(right);
    left_digits = digits_at_end(text, left_bytes);
    right_digits = digits_at_end(right, right_bytes);
    /* A name such as "a..b" without numbers is a name. */
    if (left_digits == 0 || right_digits == 0)
        return RANGE_NONE;
    /* "C1..D5" is a range that was mistyped, not a name. */
    if (left_bytes - left_digits != right_bytes - right_digits ||
        memcmp(text, right, left_bytes - left_digits) != 0 || left_digits > DIGITS_MAX ||
        right_digits > DIGITS_MAX)
        return RANGE_BAD;
    *ret_range = (struct range){
        .prefix = text,
        .prefix_bytes = left_bytes - left_digits,
        .first = strtoul(dots - left_digits, NULL, 10),
        .last = strtoul(right + right_bytes - right_digits, NULL, 10),
    };
    /* C01..C10 keeps its zeros, as users number files and columns. */
    has_zeros = left_digits > 1 && dots[-(ptrdiff_t)left_digits] == '0';
    if (has_zeros)
        ret_range->width = (int)left_digits;
    /* C001..C10 does not say how wide its numbers are. */
    if (ret_range->first > ret_range->last || (has_zeros && right_digits < left_digits))
        return RANGE_BAD;
    return RANGE_OK;
}

static char *
range_name(const struct range *range, unsigned long number)
{
    return tnd_sprintf("%.*s%0*lu", (int)range->prefix_bytes, range->prefix, range->width, number);
}

/* The name is printed and compared, so that C1 does not belong to C01..C10. */
static bool
range_holds(const char *text, const char *name)
{
    struct range range;
    size_t name_bytes = strlen(name);
    unsigned long number;
    char *same;
    bool holds;

    if (read_range(text, &range) != RANGE_OK || name_bytes <= range.prefix_bytes ||
        name_bytes - range.prefix_bytes > DIGITS_MAX ||
        memcmp(name, range.prefix, range.prefix_bytes) != 0 ||
        digits_at_end(name, name_bytes) < name_bytes - range.prefix_bytes)
        return false;
    number = strtoul(name + range.prefix_bytes, NULL, 10);
    if (number < range.first || number > range.last)
        return false;
    same = range_name(&range, number);
    holds = strcmp(same, name) == 0;
    free(same);
    return holds;
}

const struct spec_value *
spec_entry_for(const struct spec_value *map, const char *name)
{
    const struct spec_value *exact = spec_map_get(map, name);

    if (exact != NULL)
        /* An exact name wins over patterns, and among patterns the first in the file. */
        return exact;
    for (uint32_t i = 0; i < map->count; i++) {
        const struct spec_value *key = &map->keys[i];

        if (key->kind == SPEC_TEXT &&
            (spec_name_matches(key->text, name) || range_holds(key->text, name)))
            return &map->items[i];
    }
    return NULL;
}

static const char placeholder[] = "{column}";

char *
spec_for_column(const char *text, const char *column)
{
    char *result;
    size_t result_bytes;
    FILE *out = open_memstream(&result, &result_bytes);
    const char *found;

    tnd_must_have(out != NULL);
    while ((found = strstr(text, placeholder)) != NULL) {
        bool is_escaped = found > text && found[-1] == '{';

        fwrite(text, 1, (size_t)(found - text) - is_escaped, out);
        fputs(is_escaped ? placeholder : column, out);
        text = found + sizeof placeholder - 1;
    }
    fputs(text, out);
    tnd_must_have(fclose(out) == 0);
    return result;
}

/* A list while it is expanded. */
struct expansion {
    const char *const *known; /* NULL: the list gives names to new columns */
    size_t known_count;
    struct spec_errors *errors;
    struct spec_names list;
    const struct spec_value **sources; /* the value that each name comes from, for complaints */
};

static void
add_name(struct expansion *expansion, const struct spec_value *source, char *name)
{
    struct spec_names *list = &expansion->list;

    list->names = tnd_grow(list->names, list->count, sizeof *list->names);
    expansion->sources = tnd_grow(expansion->sources, list->count, sizeof *expansion->sources);
    expansion->sources[list->count] = source;
    list->names[list->count++] = name;
}

static bool
is_known(const struct expansion *expansion, const char *name)
{
    for (size_t i = 0; i < expansion->known_count; i++)
        if (strcmp(expansion->known[i], name) == 0)
            return true;
    return false;
}

static tundish_status
expand_name(struct expansion *expansion, const struct spec_value *source, char *name)
{
    tundish_status status;
    const char *nearest;

    if (expansion->known == NULL || is_known(expansion, name)) {
        add_name(expansion, source, name);
        return TUNDISH_OK;
    }
    nearest = spec_nearest(name, expansion->known, expansion->known_count);
    status =
        spec_complain(expansion->errors, source->line, source->column,
                      "there is no column \"%.200s\" here%s", name, spec_hint(nearest, "").text);
    free(name);
    return status;
}

static tundish_status
expand_glob(struct expansion *expansion, const struct spec_value *source)
{
    size_t before = expansion->list.count;

    /* A pattern can only select from columns that exist. */
    if (expansion->known == NULL)
        return spec_complain(expansion->errors, source->line, source->column,
                             "\"%.200s\" is a pattern for existing columns, but these are names of "
                             "new columns: use names or a range such as C1..C26",
                             source->text);
    for (size_t i = 0; i < expansion->known_count; i++)
        if (spec_name_matches(source->text, expansion->known[i]))
            add_name(expansion, source, tnd_strdup(expansion->known[i]));
    if (expansion->list.count == before)
        return spec_complain(expansion->errors, source->line, source->column,
                             "no column matches \"%.200s\"", source->text);
    return TUNDISH_OK;
}

static tundish_status
expand_range(struct expansion *expansion, const struct spec_value *source,
             const struct range *range)
{
    tundish_status status = TUNDISH_OK;

    /* Checked before the loop: a range of nine digits would make a billion names. */
    if (range->last - range->first >= NAMES_MAX)
        return spec_complain(expansion->errors, source->line, source->column,
                             "\"%.200s\" means more than %d columns", source->text, NAMES_MAX);
    for (unsigned long number = range->first; number <= range->last; number++)
        if (expand_name(expansion, source, range_name(range, number)) != TUNDISH_OK)
            status = TUNDISH_E_PIPELINE;
    return status;
}

static tundish_status
expand_item(struct expansion *expansion, const struct spec_value *item)
{
    struct range range;
    enum range_form form;

    if (item->kind != SPEC_TEXT)
        return spec_complain(expansion->errors, item->line, item->column,
                             "expected the name of a column; quote it if it looks like something "
                             "else");
    /* A column may have a name that looks like a pattern or a range; CSV headers contain
     * anything. */
    if (expansion->known != NULL && is_known(expansion, item->text)) {
        add_name(expansion, item, tnd_strdup(item->text));
        return TUNDISH_OK;
    }
    form = read_range(item->text, &range);
    if (form == RANGE_BAD)
        return spec_complain(expansion->errors, item->line, item->column,
                             "\"%.200s\" is not a range: write one name with two ascending "
                             "numbers, as C1..C26 or C01..C26",
                             item->text);
    if (form == RANGE_OK)
        return expand_range(expansion, item, &range);
    if (name_pattern_is(item->text))
        return expand_glob(expansion, item);
    return expand_name(expansion, item, tnd_strdup(item->text));
}

struct placed_name {
    const char *name;
    size_t index;
};

static int
by_name(const void *left_, const void *right_)
{
    const struct placed_name *left = left_, *right = right_;
    int order = strcmp(left->name, right->name);

    if (order != 0)
        return order;
    return left->index < right->index ? -1 : left->index > right->index;
}

/* Sorted, since a list of 16384 names is too long to compare each with each. */
static tundish_status
refuse_doubles(const struct expansion *expansion)
{
    const struct spec_names *list = &expansion->list;
    struct placed_name *sorted = tnd_zalloc(list->count + 1, sizeof *sorted);
    tundish_status status = TUNDISH_OK;

    for (size_t i = 0; i < list->count; i++)
        sorted[i] = (struct placed_name){ list->names[i], i };
    qsort(sorted, list->count, sizeof sorted[0], by_name);
    for (size_t i = 1; i < list->count; i++) {
        const struct spec_value *source = expansion->sources[sorted[i].index];

        if (strcmp(sorted[i - 1].name, sorted[i].name) == 0)
            status = spec_complain(expansion->errors, source->line, source->column,
                                   "the column \"%.200s\" occurs twice", sorted[i].name);
    }
    free(sorted);
    return status;
}

tundish_status
spec_expand_columns(const struct spec_value *value, const char *const *known, size_t known_count,
                    struct spec_errors *errors, struct spec_names *ret_list)
{
    struct expansion expansion = { .known = known, .known_count = known_count, .errors = errors };
    const struct spec_value *items = value->kind == SPEC_LIST ? value->items : value;
    uint32_t count = value->kind == SPEC_LIST ? value->count : 1;
    tundish_status status = TUNDISH_OK;

    for (uint32_t i = 0; i < count; i++) {
        if (expand_item(&expansion, &items[i]) != TUNDISH_OK)
            /* All items are looked at, so that one run reports all errors. */
            status = TUNDISH_E_PIPELINE;
        if (expansion.list.count > NAMES_MAX) {
            status = spec_complain(errors, value->line, value->column,
                                   "more than %d columns in one list", NAMES_MAX);
            break;
        }
    }
    if (status == TUNDISH_OK)
        status = refuse_doubles(&expansion);
    free(expansion.sources);
    if (status != TUNDISH_OK) {
        spec_names_close(&expansion.list);
        return status;
    }
    *ret_list = expansion.list;
    return TUNDISH_OK;
}

static bool
names_each_column(const struct spec_value *output)
{
    return output->kind == SPEC_TEXT && strstr(output->text, placeholder) != NULL;
}

tundish_status
spec_output_names(const struct spec_value *output, const struct spec_names *columns,
                  struct spec_errors *errors, struct spec_names *ret_list)
{
    struct spec_names list = { 0 };
    tundish_status status;

    if (names_each_column(output)) {
        list.names = tnd_zalloc(columns->count + 1, sizeof *list.names);
        for (; list.count < columns->count; list.count++)
            list.names[list.count] = spec_for_column(output->text, columns->names[list.count]);
        *ret_list = list;
        return TUNDISH_OK;
    }
    /* Output names are new names, so neither patterns nor the known columns apply. */
    status = spec_expand_columns(output, NULL, 0, errors, &list);
    if (status != TUNDISH_OK)
        return status;
    if (list.count != columns->count) {
        status = spec_complain(errors, output->line, output->column,
                               "output names %zu columns, but columns has %zu", list.count,
                               columns->count);
        spec_names_close(&list);
        return status;
    }
    *ret_list = list;
    return TUNDISH_OK;
}
