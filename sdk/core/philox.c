/* philox.c - the parts of Philox that are too long to inline. */
#include "core/philox.h"

struct tnd_philox
tnd_philox_of_stateless_seed(int64_t seed0, int64_t seed1)
{
    const uint64_t low = (uint64_t)seed0;
    const uint64_t high = (uint64_t)seed1;
    struct tnd_philox scrambler = {
        .key = { 0x3EC8F720U, 0x02461E29U },
        .counter = { (uint32_t)low, (uint32_t)(low >> 32), (uint32_t)high, (uint32_t)(high >> 32) },
    };
    uint32_t mixed[4];

    tnd_philox_block(&scrambler, mixed);
    return (struct tnd_philox){ .key = { mixed[0], mixed[1] },
                                .counter = { 0, 0, mixed[2], mixed[3] } };
}

void
tnd_philox_words(const struct tnd_philox *philox, uint64_t first, size_t count, uint32_t *ret_words)
{
    struct tnd_philox at = *philox;
    uint32_t block[4];
    size_t done = 0;

    tnd_philox_skip(&at, first / 4);
    while (done < count) {
        size_t from = done == 0 ? (size_t)(first % 4) : 0;
        size_t words = count - done < 4 - from ? count - done : 4 - from;

        tnd_philox_next(&at, block);
        memcpy(ret_words + done, block + from, words * sizeof *block);
        done += words;
    }
}
