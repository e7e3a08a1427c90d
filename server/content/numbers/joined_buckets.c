/* joined_buckets.c - the buckets of several keys in one row of boundaries, as tft.bucketize_per_key
 * joins them. All arithmetic is in float32, because its rounding decides buckets near a
 * boundary. */
#include "content/numbers/joined_buckets.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"

/* Move boundaries of a key apart where they are equal, or closer than a millionth of the key's
 * range. */
static void
push_apart(const double *boundaries, int64_t each, float *to)
{
    float first = (float)boundaries[0];
    float apart = 1e-6f * ((float)boundaries[each - 1] - first), sum = 0;

    if (apart <= 0)
        apart = 1e-6f;
    to[0] = first;
    for (int64_t i = 1; i < each; i++) {
        float delta = (float)boundaries[i] - (float)boundaries[i - 1];

        sum += delta < apart ? apart : delta;
        to[i] = sum + first;
    }
}

/* Map the key's range to [key, key + 1], and append its boundaries. The first is left out: it is
 * where the key before ends. */
static void
join(struct joined_buckets *buckets, int64_t key, const float *boundaries)
{
    int64_t each = buckets->each;
    float width = boundaries[each - 1] - boundaries[0];
    float scale = width == 0 ? 1 : 1 / width;
    float shift = (float)key - boundaries[0] * scale;

    buckets->scales[key] = scale;
    buckets->shifts[key] = shift;
    for (int64_t i = 1; i < each; i++)
        buckets->boundaries[buckets->count++] = boundaries[i] * scale + shift;
}

void
joined_buckets_open(const double *boundaries, int64_t keys, int64_t each,
                    struct joined_buckets *ret_buckets)
{
    struct joined_buckets buckets = { .each = each };
    float *apart = tnd_zalloc((size_t)each + 1, sizeof *apart);

    buckets.boundaries = tnd_zalloc((size_t)(keys * each) + 1, sizeof *buckets.boundaries);
    buckets.scales = tnd_zalloc((size_t)keys + 1, sizeof *buckets.scales);
    buckets.shifts = tnd_zalloc((size_t)keys + 1, sizeof *buckets.shifts);
    buckets.count = 1; /* 0.0, where the first key begins */
    for (int64_t key = 0; key < keys && each > 0; key++) {
        push_apart(&boundaries[key * each], each, apart);
        join(&buckets, key, apart);
    }
    free(apart);
    *ret_buckets = buckets;
}

void
joined_buckets_close(struct joined_buckets *buckets)
{
    free(buckets->boundaries);
    free(buckets->scales);
    free(buckets->shifts);
    *buckets = (struct joined_buckets){ 0 };
}

int64_t
joined_buckets_find(const struct joined_buckets *buckets, int64_t key, float x)
{
    float at = x * buckets->scales[key] + buckets->shifts[key];
    int64_t low = 0, count = buckets->count, bucket;

    if (buckets->each == 0)
        return 0;
    /* Binary search, in which NaN ends up after the last boundary. */
    while (count > 0) {
        int64_t half = count / 2;
        bool goes_right = !(at < buckets->boundaries[low + half]);

        low = goes_right ? low + half + 1 : low;
        count = goes_right ? count - half - 1 : half;
    }
    /* Keys before this one contribute each - 1 boundaries. A value outside its key's range may land
     * among another key's, hence the clamp. */
    bucket = low - (buckets->each - 1) * key;
    return bucket < 0 ? 0 : bucket > buckets->each ? buckets->each : bucket;
}
