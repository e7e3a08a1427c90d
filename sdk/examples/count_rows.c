/* count_rows.c - count every row exactly once, though this trainer may be killed at any moment.
 *
 * The server offers a batch again if its trainer dies before releasing it. So the trainer counts
 * the rows, writes the count and the step to a file, and then releases. Its successor reads that
 * file and skips the one batch that may be offered again.
 *
 *     tundish-launch FILE --replicas 2 -- sh -c 'exec ./count_rows counts/$RANK'
 */
#include <inttypes.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <tundish/tundish.h>

struct progress {
    uint64_t rows, epoch, next_step; /* batches before this one are counted */
};

static void
read_progress(const char *path, struct progress *progress)
{
    struct progress found;
    FILE *file = fopen(path, "r");

    if (file == NULL)
        return;
    if (fscanf(file, "%" SCNu64 " rows, epoch %" SCNu64 ", next step %" SCNu64, &found.rows,
               &found.epoch, &found.next_step) == 3)
        *progress = found;
    fclose(file);
}

/* Old or new, never half of it. */
static int
write_progress(const char *path, const struct progress *progress)
{
    char fresh[4096];
    FILE *file;

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return -1;
    file = fopen(fresh, "w");
    if (file == NULL)
        return -1;
    fprintf(file, "%" PRIu64 " rows, epoch %" PRIu64 ", next step %" PRIu64 "\n", progress->rows,
            progress->epoch, progress->next_step);
    return fclose(file) == 0 ? rename(fresh, path) : -1;
}

static int
is_counted(const struct progress *progress, const tundish_batch *batch)
{
    return batch->epoch < progress->epoch ||
           (batch->epoch == progress->epoch && batch->step < progress->next_step);
}

static int
count(const char *path, struct progress *progress, const tundish_batch *batch)
{
    const tundish_tensor *tensor;

    if (is_counted(progress, batch))
        return 0;
    if (tundish_tensor_at(batch, 0, &tensor) != TUNDISH_OK || tensor->rank == 0)
        return -1;
    progress->rows += (uint64_t)tensor->shape[0];
    progress->epoch = batch->epoch;
    progress->next_step = batch->step + 1;
    return write_progress(path, progress);
}

static tundish_status
count_all(tundish_reader *reader, const char *path, struct progress *progress)
{
    for (;;) {
        const tundish_batch *batch;
        tundish_status status = tundish_next(reader, TUNDISH_FOREVER, &batch);

        if (status == TUNDISH_E_PEER_LOST)
            printf("told: %s\n", tundish_last_error());
        if (status == TUNDISH_END || status == TUNDISH_E_PEER_LOST)
            continue;
        if (status != TUNDISH_OK)
            return status;
        if (count(path, progress, batch) != 0) {
            perror(path);
            return TUNDISH_E_SYSTEM;
        }
        tundish_release(reader, batch);
    }
}

int
main(int argc, char **argv)
{
    tundish_options options = TUNDISH_OPTIONS_INIT;
    struct progress progress = { 0 };
    tundish_reader *reader;
    tundish_status status;

    if (argc != 2) {
        fprintf(stderr, "usage: %s FILE\n", argv[0]);
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    read_progress(argv[1], &progress);
    status = tundish_open(&options, &reader);
    if (status == TUNDISH_OK) {
        status = count_all(reader, argv[1], &progress);
        tundish_close(reader);
    }
    if (status == TUNDISH_END_OF_STREAM || status == TUNDISH_STOPPED)
        return 0;
    fprintf(stderr, "count_rows: %s: %s\n", tundish_status_name(status), tundish_last_error());
    return 1;
}
