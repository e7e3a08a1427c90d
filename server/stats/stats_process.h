/* stats_process.h - the resources that the whole process uses, sampled now and then. */
#ifndef STATS_STATS_PROCESS_H
#define STATS_STATS_PROCESS_H

#include "stats/stats_writer.h"

/* Processor time, memory, and a sign of life. */
void stats_show_process(struct stats *stats);

#endif
