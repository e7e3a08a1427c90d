/* expression_help.c - the language of map and filter, for people: expressions.def as text. */
#include "spec/expression_help.h"

#include <string.h>

#include "spec/help_text.h"

static const char operators[] = "Operators, those that bind most tightly first";

const struct expression_entry expression_entries[] = {
#define OPERATOR(form, takes, gives, help, example, result)                                        \
    { operators, NULL, form, takes, gives, help, example, result },
#define SIGN(rank, sign, kind, form, takes, gives, help, example, result)                          \
    { operators, NULL, form, takes, gives, help, example, result },
#define GROUP(title) { title, NULL, NULL, NULL, NULL, NULL, NULL, NULL },
#define FUNCTION(name, form, least, most, takes, gives, help, example, result, ...)                \
    { NULL, #name, form, takes, gives, help, example, result },
#include "spec/expressions.def"
};
const uint32_t expression_entry_count = sizeof expression_entries / sizeof *expression_entries;

const char expression_row[] = "n: {values: 7, dtype: int32}\n"
                              "x: {values: [-1.5, 0.25, 4.0], dtype: float32}\n"
                              "m: {values: [[1, 2, 3], [4, 5, 6]], dtype: int32}\n"
                              "flag: {values: [true, false, true], dtype: bool}\n"
                              "word: {values: tundish, dtype: string}\n"
                              "words: {values: [to, be], dtype: string}\n";

const struct expression_rule expression_rules[] = {
    { "Where", "map, filter, values, and key and window_size_func of group_by_window take "
               "expressions. They are "
               "written as in Python, and have TensorFlow's dtypes and results. In one map, all "
               "expressions see "
               "the old row." },
    { "Names", "A name is a column. A name that is a word of the language (and, or, not, if, "
               "else), or has other "
               "characters than letters, digits and _, is written in backquotes: `my column`. "
               "Inside interleave "
               "and flat_map, $name is a column of the outer element. {column} is the name of the "
               "column that is "
               "computed." },
    { "Literals", "Numbers are 7, 0x1F, 2.5 and 1e-3. Texts stand in single or double quotes and "
                  "may contain \\n \\t "
                  "\\r \\0 \\xHH \\\\ \\' \\\". A vector is [1, n, 3]. There are no words for "
                  "true, false and NaN. A "
                  "literal takes the dtype of the column that it meets, and is rejected if it does "
                  "not fit; alone it "
                  "is int32 (int64 if it is too large) or float32." },
    { "Dtypes",
      "Dtypes are never mixed: a sum of int32 and int64, or of int32 and 0.5, is an error; write "
      "cast(n, float32) + 0.5. Integers wrap around. Functions of floats do not take integers. "
      "Conditions "
      "are bool: write n != 0." },
    { "Shapes", "Shapes broadcast as in NumPy: m * [1, 10, 100] multiplies each row of m." },
    { "Missing values and NaN", "There is no null: where a field is missing, the source or the "
                                "parse stage puts its default in its "
                                "place (record_defaults, default_value) or rejects the row. The "
                                "usual default of a float is NaN, .nan "
                                "in YAML. NaN equals nothing, not even itself: find it by isnan, "
                                "and replace it by where(isnan(x), 0, "
                                "x). Arithmetic, min, max, clip, sum and mean pass it on." },
    { "Texts", "Texts are compared by == and != only, joined by +, and counted by length. "
               "Everything else is a stage: "
               "substr, string_split, string_lower, regex_replace, string_to_number and so on." },
    { "Indexing", "As in Python: a negative index counts from the end, a slice is clipped, ... "
                  "stands for all other "
                  "dimensions. A single index outside is an error, in the plan or of its row." },
    { "Ragged and sparse columns", "Functions of each value work on the values and keep the "
                                   "structure. Indexing, reductions, and "
                                   "combining two such columns are rejected." },
    { "Rows and batches", "Before batch an expression sees one row, after it the whole global "
                          "batch, whose rows are dimension "
                          "0. There mean(x) is one number for all replicas, mean(x, axis=1) one "
                          "for each row, and x[0] the first "
                          "row." },
};
const uint32_t expression_rule_count = sizeof expression_rules / sizeof *expression_rules;

static void
print_entry(const struct expression_entry *entry, FILE *out)
{
    fprintf(out, "\n  %s: %s; gives %s\n", entry->form, entry->takes, entry->gives);
    help_print_wrapped(entry->help, 6, out);
    fprintf(out, "      %s is %s\n", entry->example, entry->result);
}

/* Print the row as it is written in a pipeline file. */
static void
print_row(FILE *out)
{
    fputs("\nThe row of the examples\n\n  - from_tensors:\n", out);
    for (const char *line = expression_row; *line != '\0'; line += strcspn(line, "\n") + 1)
        fprintf(out, "      %.*s\n", (int)strcspn(line, "\n"), line);
}

void
expression_print_help(FILE *out)
{
    const char *group = NULL;

    fputs("expressions\n", out);
    for (uint32_t i = 0; i < expression_rule_count; i++) {
        fprintf(out, "\n%s\n", expression_rules[i].title);
        help_print_wrapped(expression_rules[i].text, 2, out);
    }
    for (uint32_t i = 0; i < expression_entry_count; i++) {
        const struct expression_entry *entry = &expression_entries[i];

        if (entry->group != NULL && entry->group != group)
            fprintf(out, "\n%s\n", group = entry->group);
        if (entry->form != NULL)
            print_entry(entry, out);
    }
    print_row(out);
}

bool
expression_print_function(const char *name, FILE *out)
{
    for (uint32_t i = 0; i < expression_entry_count; i++)
        if (expression_entries[i].name != NULL && strcmp(expression_entries[i].name, name) == 0) {
            fprintf(out, "\n%s, a function of expressions (tundish help expressions)\n", name);
            print_entry(&expression_entries[i], out);
            print_row(out);
            return true;
        }
    return false;
}

static void
print_entry_man(const struct expression_entry *entry, FILE *out)
{
    fputs(".TP\n.B \"", out);
    help_print_roff(entry->form, out);
    fputs("\"\n", out);
    help_print_roff(entry->help, out);
    fprintf(out, "\n(%s; gives %s)\n.br\n", entry->takes, entry->gives);
    help_print_roff(entry->example, out);
    fputs(" is ", out);
    help_print_roff(entry->result, out);
    fputc('\n', out);
}

void
expression_print_man(FILE *out)
{
    const char *group = NULL;

    fputs(".SH EXPRESSIONS\n", out);
    for (uint32_t i = 0; i < expression_rule_count; i++) {
        fprintf(out, ".SS %s\n", expression_rules[i].title);
        help_print_roff(expression_rules[i].text, out);
        fputc('\n', out);
    }
    for (uint32_t i = 0; i < expression_entry_count; i++) {
        const struct expression_entry *entry = &expression_entries[i];

        if (entry->group != NULL && entry->group != group)
            fprintf(out, ".SS %s\n", group = entry->group);
        if (entry->form != NULL)
            print_entry_man(entry, out);
    }
    fputs(".SS The row of the examples\n.nf\n", out);
    help_print_roff(expression_row, out);
    fputs(".fi\n", out);
}
