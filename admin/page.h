/* page.h - the dashboard's files, which are part of the program, and the chart library's, which is
 * the distribution's.
 */
#ifndef ADMIN_PAGE_H
#define ADMIN_PAGE_H

#include "routes.h"

enum page_file {
    PAGE_HTML,
    PAGE_CSS,
    PAGE_JS,
    PAGE_FORMAT_JS,
    PAGE_DOM_JS,
    PAGE_VIEW_JS,
    PAGE_MARKS_JS,
    PAGE_CHARTS_JS,
    PAGE_REPORT_JS,
    PAGE_LATENCY_JS,
    PAGE_PIPELINE_JS,
    PAGE_LANES_JS,
    PAGE_STAGES_JS,
    PAGE_NODES_JS,
    PAGE_COMPARE_JS,
    PAGE_ICON,
    PAGE_OPENAPI,
    PAGE_FILES
};

/* Made from the files in page/ when the program is built. */
struct page_bytes {
    const unsigned char *bytes;
    size_t byte_count;
};
extern const struct page_bytes page_files[PAGE_FILES];

unsigned page_answer(const struct admin *admin, const struct route *route, FILE *body);
unsigned page_answer_chart(const struct admin *admin, const struct route *route, FILE *body);

#endif
