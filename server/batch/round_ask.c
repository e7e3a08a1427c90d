/* round_ask.c - the rows of a round that other nodes have, asked for ahead. */
#include <stdlib.h>

#include "batch/dealer.h"
#include "batch/references.h"
#include "core/memory.h"
#include "source/files/file.h"
#include "source/files/files_private.h"
#include "source/scan/scan.h"

struct list {
    struct source_files *files;
    struct far_row *rows;
    size_t count;
};

static void
add(void *user, const uint64_t *words, uint32_t extra_bytes)
{
    struct list *list = user;
    const struct source_file *file = table_file(list->files, reference_file(words));

    if (file == NULL || !file->is_far)
        return;
    if ((list->count & (list->count - 1)) == 0)
        list->rows =
            tnd_realloc(list->rows, list->count == 0 ? 1 : 2 * list->count, sizeof *list->rows);
    list->rows[list->count++] = (struct far_row){ .offset = words[0],
                                                  .file = reference_file(words),
                                                  .bytes = reference_length(words) + extra_bytes };
}

void
deal_round_ask(const struct plan *plan, struct far *far, struct source_files *files,
               struct deal_round *round)
{
    struct list list = { .files = files };

    references_visit(plan->graph->root, round->words, round->width, round->present_count, add,
                     &list);
    if (list.count > 0)
        round->asked = far_ask(far, files, list.rows, list.count);
    free(list.rows);
}
