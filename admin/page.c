/* page.c - answer with the page's files, which never change. */
#include "page.h"

unsigned
page_answer(const struct admin *admin, const struct route *route, FILE *body)
{
    (void)admin;
    fwrite(page_files[route->number].bytes, 1, page_files[route->number].byte_count, body);
    return 200;
}

unsigned
page_answer_chart(const struct admin *admin, const struct route *route, FILE *body)
{
    /* The distribution's file, read from disk: its updates reach the page without a rebuild. */
    FILE *file = fopen(admin->chart_path, "re");
    char piece[65536];
    size_t got;

    (void)route;
    if (file == NULL) {
        fprintf(body, "%s does not exist: install libjs-chart.js\n", admin->chart_path);
        return 404;
    }
    while ((got = fread(piece, 1, sizeof piece, file)) > 0)
        fwrite(piece, 1, got, body);
    fclose(file);
    return 200;
}
