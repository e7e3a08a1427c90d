/* limit_transport.c - blocks of a file straight into slots: limit_transport DIR/blocks-KIB.bin
 * [THREADS] */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "limit.h"

enum { PASS_BYTES = 512 << 20 };

/* Reads the file again and again until it has moved PASS_BYTES. */
static void
pass(struct share *share)
{
    struct input *input = &share->input;
    uint64_t file_end = input->end;

    for (uint64_t moved = 0; moved < PASS_BYTES; moved += share->slot_bytes) {
        input->buffer = share_slot(share);
        input->capacity = share->slot_bytes;
        input->begin = input->used = 0;
        if (input->at >= file_end)
            input->at = 0;
        if (!input_fill(input))
            abort();
        share->batches++;
        share->rows++;
        share->bytes += share->slot_bytes;
    }
}

int
main(int argc, char **argv)
{
    const char *path = limit_folder(argc, argv), *name = strrchr(path, '-');
    unsigned long kib = name == NULL ? 0 : strtoul(name + 1, NULL, 10);
    const struct limit limit = { kib << 10, 1, false, pass };

    if (kib == 0) {
        fprintf(stderr, "%s: '%s' is not a file of blocks\n", argv[0], path);
        return 2;
    }
    return limit_measure(&limit, &path, 1, 1);
}
