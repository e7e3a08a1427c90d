/* serve_stores.h - the counts of stores that files at URLs are read from, among the metrics. */
#ifndef COMMANDS_SERVE_STORES_H
#define COMMANDS_SERVE_STORES_H

#include "stats/stats_writer.h"

struct shown_store;

/* Bring up to date; *shown grows with the stores, and is NULL before the first. */
void serve_show_stores(struct stats *stats, struct shown_store **shown);
void serve_forget_stores(struct shown_store **shown);

#endif
