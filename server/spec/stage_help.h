/* stage_help.h - the table of stages, for people: `tundish help`, the manual page, completion. */
#ifndef SPEC_STAGE_HELP_H
#define SPEC_STAGE_HELP_H

#include <stdint.h>
#include <stdio.h>

#include "core/json.h"
#include "core/status.h"
#include "spec/stages.h"

/* `tundish help`: every stage by group, with its first sentence. */
void stage_print_list(FILE *out);

/* `tundish help --list`: every word stage_help_for knows, one a line, for completion. */
void stage_print_names(FILE *out);

/* `tundish help STAGE`: its purpose, its forms, all parameters. */
void stage_print_help(const struct stage_info *stage, FILE *out);

/* `tundish help pipeline`, columns, streams, features: what the manual page says of these. */
void help_print_pipeline(FILE *out);
void help_print_columns(FILE *out);
void help_print_streams(FILE *out);
void help_print_features(FILE *out);

/* `tundish help --man`: tundish-pipeline(5), in roff. */
void stage_print_man(FILE *out);

/* "- csv: {record_defaults: ..., column_names: ..., ...}": how it is written, all that is needed
 * and its short form. Nothing for sections and features. */
void stage_print_written(const struct stage_info *stage, FILE *out);

/* Lines of YAML: of a stage or a feature, a whole list of stages; of a section, a part of a file.
 */
const char *stage_example(const struct stage_info *stage);

/* Everything that has a page of help: the stages, then sections and features. */
uint32_t stage_topic_count(void);
const struct stage_info *stage_topic(uint32_t index);

/* A stage, `distribute`, `deliver`, `stream`, `widen`, or a kind of feature (FixedLen ...), by
 * name. E_ARGUMENT: there is none; the explanation names the nearest. */
tundish_status stage_help_for(const char *name, const struct stage_info **ret_stage);

/* help_json.c: The tables of the pipeline language for programs: `tundish help --json`. Into an
 * object that is open: the keys stages (with sections and features) and expressions. */
void help_json(struct json *json);

#endif
