/* expression_help.h - the language of map and filter, for people. */
#ifndef SPEC_EXPRESSION_HELP_H
#define SPEC_EXPRESSION_HELP_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* An operator or a function: how it is written, its operands, and its result. */
struct expression_entry {
    const char *group;
    const char *name; /* of a function; NULL: an operator */
    const char *form;
    const char *takes, *gives; /* dtypes */
    const char *help;
    const char *example, *result; /* over the columns of expression_row */
};

extern const struct expression_entry expression_entries[];
extern const uint32_t expression_entry_count;

/* The row of the examples: the entries of from_tensors, a line each. */
extern const char expression_row[];

/* Rules for all of them, as paragraphs with a title each. */
struct expression_rule {
    const char *title, *text;
};

extern const struct expression_rule expression_rules[];
extern const uint32_t expression_rule_count;

/* `tundish help expressions`. */
void expression_print_help(FILE *out);

/* `tundish help FUNCTION`: false if there is none of that name. */
bool expression_print_function(const char *name, FILE *out);

/* The section EXPRESSIONS of tundish-pipeline(5), as roff. */
void expression_print_man(FILE *out);

#endif
