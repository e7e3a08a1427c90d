/* fuzz_tar.c - members of a tar are the same however its bytes are cut into reads, lie behind their
 * headers, and follow each other.
 *
 * Noise has no right checksums, so headers are given theirs: blocks whose checksum field is all
 * 'C'.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/hash_farm.h"
#include "core/must.h"
#include "source/scan/samples.h"

enum { CHECKSUM = 148, CHECKSUM_BYTES = 8 };

static void
give_checksums(uint8_t *data, size_t bytes)
{
    for (size_t at = 0; at + TAR_BLOCK_BYTES <= bytes; at += TAR_BLOCK_BYTES) {
        uint8_t *block = data + at;
        unsigned sum = 0;
        char digits[24];

        if (memcmp(block + CHECKSUM, "CCCCCCCC", CHECKSUM_BYTES) != 0)
            continue;
        memset(block + CHECKSUM, ' ', CHECKSUM_BYTES);
        for (int i = 0; i < TAR_BLOCK_BYTES; i++)
            sum += block[i];
        snprintf(digits, sizeof digits, "%06o", sum);
        memcpy(block + CHECKSUM, digits, 7);
    }
}

/* All members, folded into a number. */
static tundish_status
walk(const uint8_t *data, size_t bytes, size_t step, uint64_t *ret_hash)
{
    struct tar_walker *walker = calloc(1, sizeof *walker);
    uint64_t behind = 0, data_end = 0;
    tundish_status status = TUNDISH_OK;

    *ret_hash = TND_HASH_CROSS_KEY;
    for (size_t at = 0; at < bytes && status == TUNDISH_OK; at += step) {
        size_t part = bytes - at < step ? bytes - at : step;
        uint8_t *copy = malloc(part); /* so that reading behind it is seen */
        bool found = true;

        memcpy(copy, data + at, part);
        while (status == TUNDISH_OK && found) {
            struct tar_member member;
            struct byte_view key, extension;

            status = tar_walk(walker, copy, part, at, &member, &found);
            if (status != TUNDISH_OK || !found)
                continue;
            must(member.begin >= behind && member.data >= member.begin + TAR_BLOCK_BYTES);
            must(member.data <= at + part && member.name.size <= TAR_NAME_MAX);
            behind = data_end = member.data + member.size;
            must(behind >= member.data);
            *ret_hash = tnd_hash_farm_cat(*ret_hash, member.data);
            *ret_hash = tnd_hash_farm_cat(*ret_hash, member.size);
            *ret_hash = tnd_hash_farm_cat(
                *ret_hash, tnd_hash_farm(member.name.data, (size_t)member.name.size));
            if (sample_name(&member, &key, &extension))
                must(key.size + 1 + extension.size == member.name.size);
        }
        free(copy);
    }
    if (status == TUNDISH_OK)
        status = tar_finish(walker, bytes, data_end);
    free(walker);
    return status;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    uint64_t whole, parts;
    uint8_t *tar;
    tundish_status a, b;

    if (bytes < 2)
        return 0;
    tar = malloc(bytes);
    memcpy(tar, data + 1, bytes - 1);
    give_checksums(tar, bytes - 1);
    a = walk(tar, bytes - 1, bytes - 1, &whole);
    b = walk(tar, bytes - 1, 1U + data[0], &parts);
    must(a == b && whole == parts);
    free(tar);
    return 0;
}
