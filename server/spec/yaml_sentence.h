/* yaml_sentence.h - advice for a user when libyaml finds an error. */
#ifndef SPEC_YAML_SENTENCE_H
#define SPEC_YAML_SENTENCE_H

#include <stdbool.h>
#include <yaml.h>

#include "spec/errors.h"

/* The text, and how far into it marks (counted in characters) have been followed. */
struct yaml_source {
    const char *text;
    size_t text_bytes;
    size_t index;  /* characters */
    size_t offset; /* bytes */
};

/* Does `c` stand between two marks? */
bool yaml_source_has(struct yaml_source *source, yaml_mark_t from, yaml_mark_t to, char c);

/* Add the parser's error, in words of our own where a remedy is known. Returns E_PIPELINE. */
tundish_status yaml_complain(const yaml_parser_t *parser, struct yaml_source *source,
                             struct spec_errors *errors);

#endif
