/* parameter_words.h - the words in which stages.def and sections.c state parameters.
 *
 * Included by those two alone: the words are short and would clash elsewhere.
 */
#ifndef SPEC_PARAMETER_WORDS_H
#define SPEC_PARAMETER_WORDS_H

#include "spec/stages.h"

#define NEEDED(name_, types_, limits_, help_)                                                      \
    {                                                                                              \
        .name = #name_, .types = types_, .required = true, .help = help_, limits_                  \
    }
#define MAY(name_, types_, limits_, help_)                                                         \
    {                                                                                              \
        .name = #name_, .types = types_, .help = help_, limits_                                    \
    }
#define DEFAULT(name_, value_, types_, limits_, help_)                                             \
    {                                                                                              \
        .name = #name_, .types = types_, .default_value = value_, .help = help_, limits_           \
    }

#define ANY_VALUE .minimum = 1, .maximum = 0
#define AT_LEAST(least_) .minimum = (least_), .maximum = INT64_MAX
#define BETWEEN(least_, most_) .minimum = (least_), .maximum = (most_)
#define ONE_OF(choices_) ANY_VALUE, .choices = choices_
#define RULE(limits_, name_) limits_, .rule = rule_##name_

#define BOOL TYPE_BOOL
#define INTEGER TYPE_INTEGER
#define INTEGERS TYPE_INTEGERS
#define NUMBER TYPE_NUMBER
#define NUMBERS TYPE_NUMBERS
#define TEXT TYPE_TEXT
#define TEXTS TYPE_TEXTS
#define LIST TYPE_LIST
#define MAP TYPE_MAP
#define TEXT_MAP TYPE_TEXT_MAP
#define DATASET TYPE_DATASET
#define DATASETS TYPE_DATASETS
#define COLUMNS TYPE_COLUMNS
#define DTYPE TYPE_DTYPE
#define SHAPE TYPE_SHAPE
#define EXPRESSION TYPE_EXPRESSION
#define EXPRESSIONS TYPE_EXPRESSIONS
#define PATHS TYPE_PATHS
#define NOTHING TYPE_UNSET
#define NULL_VALUE TYPE_NULL
#define ANYTHING TYPE_ANY
#define VARYING TYPE_VARYING
#define ENTRIES TYPE_ENTRIES
#define DURATION TYPE_DURATION
#define SIZE TYPE_SIZE
#define AUTOTUNE TYPE_AUTOTUNE
#define FILE_NAME TYPE_FILE_NAME
#define NO_EFFECT TYPE_NO_EFFECT
#define LATER TYPE_LATER
#define PATTERN TYPE_PATTERN

#define NO_PARAMETERS

#endif
