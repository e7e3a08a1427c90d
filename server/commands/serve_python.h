/* serve_python.h - the figures of interpreters that run the user's own Python, among the metrics.
 */
#ifndef COMMANDS_SERVE_PYTHON_H
#define COMMANDS_SERVE_PYTHON_H

#include "pipeline/pipeline.h"
#include "stats/stats_writer.h"

struct shown_python;

/* Bring up to date; *shown holds those that are shown, and is NULL before the first. */
void serve_show_python(struct stats *stats, struct shown_python **shown);
void serve_forget_python(struct shown_python **shown);

/* Complain of each stage that would run such code where users of a group may attach. */
tundish_status serve_check_python(const struct spec_file *file, const char *group,
                                  struct spec_errors *errors);

#endif
