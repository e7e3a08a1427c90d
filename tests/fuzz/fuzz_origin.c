/* fuzz_origin.c - any bytes as the file `origin` of an analysis folder: a problem, or the stages
 * and files that it names are compared. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/must.h"
#include "learn/results/provenance.h"
#include "spec/spec.h"

static char folder[64], path[80];
static struct spec_file *pipeline;

static void
set_up(void)
{
    static const char text[] = "streams: {train: {dataset: [{from_tensor_slices: {x: [1, 2, 3]}}, "
                               "{bucketize: {columns: x, num_buckets: 2}}]}}\n";
    struct spec_errors errors = { 0 };

    snprintf(folder, sizeof folder, "/tmp/fuzz-origin-XXXXXX");
    must(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/origin", folder);
    must(spec_open_text(text, sizeof text - 1, "fuzz", folder, &errors, &pipeline) == TUNDISH_OK);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    FILE *file;

    if (pipeline == NULL)
        set_up();
    file = fopen(path, "we");
    must(file != NULL);
    must(fwrite(data, 1, bytes, file) == bytes && fclose(file) == 0);
    for (int check = PROVENANCE_STAGES; check <= PROVENANCE_FILES; check++) {
        struct learned learned;

        provenance_open(pipeline, folder, (enum provenance_check)check, &learned);
        must(learned.folder != NULL);
        for (uint32_t i = 0; i < learned.count; i++)
            must(strchr(learned.names[i].name, '\n') == NULL);
        provenance_close(&learned);
    }
    return 0;
}
