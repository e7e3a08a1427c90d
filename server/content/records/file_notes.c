/* file_notes.c - see file_notes.h. */
#include "content/records/file_notes.h"

#include "core/hash_farm.h"

static uint64_t
not_zero(uint64_t sum)
{
    return sum + (sum == 0);
}

uint64_t
file_sum_begin(uint64_t bytes)
{
    return not_zero(tnd_hash_farm_chain(0, &bytes, sizeof bytes));
}

uint64_t
file_sum_add(uint64_t sum, const void *piece, size_t bytes)
{
    return not_zero(tnd_hash_farm_chain(sum, piece, bytes));
}

static uint64_t
file_sum(struct byte_view bytes)
{
    uint64_t sum = file_sum_begin(bytes.size);

    for (uint64_t at = 0; at < bytes.size; at += FILE_SUM_PIECE_BYTES) {
        uint64_t left = bytes.size - at;

        sum = file_sum_add(sum, bytes.data + at,
                           left < FILE_SUM_PIECE_BYTES ? left : FILE_SUM_PIECE_BYTES);
    }
    return sum;
}

void
file_notes_add(const struct file_notes *notes, struct byte_view path, struct byte_view bytes)
{
    if (notes != NULL)
        notes->add(notes->context, path, file_sum(bytes));
}
