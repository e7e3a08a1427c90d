/* driven_curl.h - libcurl on a clock that the test's requests drive.
 *
 * Real time has no effect: pauses between attempts pass at once, and a connection that a bad_server
 * holds grows old at once, as is_slow and libcurl's own limit for slow connections see it. While a
 * request is really under way the clock stands still. For one connection at a time.
 */
#ifndef UNIT_DRIVEN_CURL_H
#define UNIT_DRIVEN_CURL_H

#include "remote/curl_library.h"

#define DRIVEN_WALL_S INT64_C(1767225600) /* 2026-01-01 00:00:00 UTC, where the clock begins */

/* From now on all threads read its clock. */
const struct curl_library *driven_curl_open(void);

/* The machine's again. */
void driven_curl_close(void);

/* By the server's thread: the request under way gets no more bytes. */
void driven_curl_hold(void);

/* Let so much time pass. Any thread. */
void driven_curl_pass(int64_t ns);

#endif
