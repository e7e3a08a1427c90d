/* round_ask.c - requests the rows of a round from the nodes that have their files, ahead of use. */
#include "batch/dealer.h"
#include "batch/references.h"
#include "core/must.h"
#include "source/files/ask_ahead.h"

void
dealer_ask_round(const struct plan *plan, struct source_files *files, struct deal_round *round)
{
    struct ask_ahead *asking = ask_ahead_begin(files);

    must_in_debug(round->asked_of == NULL);
    if (asking == NULL)
        return;
    references_visit(plan->graph->root, round->words, round->width, round->present_count,
                     ask_ahead_add, asking);
    ask_ahead_end(asking, round->epoch, round->step);
    round->asked_of = files;
}
