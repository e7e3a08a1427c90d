/* report.h - a server's state as one JSON object. `tundish status --json` prints it, and
 * tundish-admin serves it as /api/v1/status.
 *
 *   {"window_seconds": 10.0, "server": {...}, "verdict": {...},
 *    "streams": [{"stream": "train", ..., "threads": [...], "helpers": [...], "stages": [...],
 * "vocabularies": [...], "columns": [...], "lanes": [...], "compression": [...], "encodings":
 * [...], "readers":
 * [...], "devices": [...], "groups": [...]}], "links": [...], "notes": [...]}
 *
 * Sets are written by what the file says of their fields: NAME, NAME_seconds or NAME_bytes, and for
 * counters NAME_rate, their growth a second between the two snapshots (of a time: its share). How
 * far apart these are is window_seconds; diagnoses and quantiles are of that time, too.
 */
#ifndef TND_WATCH_REPORT_H
#define TND_WATCH_REPORT_H

#include "core/json.h"
#include "watch/diagnosis.h"

/* `before` may be `now` itself: then rates are 0. `verdict` is that of the server:
 * watch_diagnose's, or as its siblings have changed it. */
void watch_report(const struct watch_snapshot *before, const struct watch_snapshot *now,
                  const struct watch_diagnosis *verdict, struct json *json);
const char *watch_state_name(const struct watch_snapshot *snapshot); /* "serving" ... */

/* Its key, "verdict", and the object. */
void watch_report_verdict(const struct watch_diagnosis *verdict, struct json *json);

#endif
