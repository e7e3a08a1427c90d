/* runs.c - see runs.h. */
#include "source/parquet/runs.h"

enum { BLOCK = 256 };

void
runs_open(struct parquet_runs *runs, struct byte_view bytes, unsigned width)
{
    *runs =
        (struct parquet_runs){ .at = bytes.data, .end = bytes.data + bytes.size, .width = width };
}

/* A run's head: its length twice, plus 1 if it is packed (and then counted in groups of eight). */
static bool
read_head(struct parquet_runs *runs, uint64_t *ret_head)
{
    uint64_t head = 0;

    for (unsigned shift = 0; shift < 35 && runs->at < runs->end; shift += 7) {
        uint8_t byte = *runs->at++;

        head |= (uint64_t)(byte & 0x7F) << shift;
        if ((byte & 0x80) == 0) {
            *ret_head = head;
            return true;
        }
    }
    return false;
}

static bool
next_run(struct parquet_runs *runs)
{
    uint64_t head, room = (uint64_t)(runs->end - runs->at), bytes;

    if (!read_head(runs, &head))
        return false;
    room = (uint64_t)(runs->end - runs->at);
    if ((head & 1) == 0) {
        bytes = (runs->width + 7) / 8;
        if (bytes > room)
            return false;
        runs->packed = NULL;
        runs->left = head >> 1;
        runs->value =
            bytes == 0 ? 0 : load_u32(runs->at) & (uint32_t)(UINT64_MAX >> (64 - 8 * bytes));
        runs->at += bytes;
        return runs->width == 32 || runs->value >> runs->width == 0;
    }
    /* The last group may lack the bytes of values that there are not. */
    bytes = (head >> 1) * runs->width;
    runs->packed = runs->at;
    runs->next = 0;
    runs->left = (head >> 1) * 8;
    if (bytes > room) {
        bytes = room;
        runs->left = room * 8 / runs->width;
    }
    runs->at += bytes;
    return true;
}

/* Runs may be empty, but each takes a byte. */
static bool
have_values(struct parquet_runs *runs)
{
    while (runs->left == 0)
        if (!next_run(runs))
            return false;
    return true;
}

static uint32_t
packed_at(const struct parquet_runs *runs, uint64_t index)
{
    uint64_t bit = index * runs->width;

    return (uint32_t)(load_u64(runs->packed + bit / 8) >> bit % 8 &
                      ((UINT64_C(1) << runs->width) - 1));
}

/* As many as there are in the current run, at most `count`. */
static size_t
read_run(struct parquet_runs *runs, uint32_t *to, size_t count)
{
    size_t take = runs->left < count ? (size_t)runs->left : count;
    size_t i = 0;

    runs->left -= take;
    if (runs->packed == NULL) {
        for (; i < take; i++)
            to[i] = runs->value;
        return take;
    }
    /* To the beginning of a group of eight, which is at a byte. */
    for (; i < take && runs->next % 8 != 0; i++)
        to[i] = packed_at(runs, runs->next++);
    if (i < take) {
        bits_unpack_u32(runs->packed + runs->next / 8 * runs->width, runs->width, take - i, to + i);
        runs->next += take - i;
    }
    return take;
}

bool
runs_read_u32(struct parquet_runs *runs, uint32_t *to, size_t count)
{
    size_t done = 0;

    while (done < count) {
        if (!have_values(runs))
            return false;
        done += read_run(runs, to + done, count - done);
    }
    return true;
}

static bool
read_narrow(struct parquet_runs *runs, uint8_t *to, size_t count)
{
    uint32_t block[BLOCK + 8];

    for (size_t done = 0; done < count;) {
        size_t take = count - done < BLOCK ? count - done : BLOCK;

        if (!runs_read_u32(runs, block, take))
            return false;
        for (size_t i = 0; i < take; i++)
            to[done + i] = (uint8_t)block[i];
        done += take;
    }
    return true;
}

bool
runs_read_u8(struct parquet_runs *runs, uint8_t *to, size_t count)
{
    size_t done = 0;

    if (runs->width != 1)
        return read_narrow(runs, to, count);
    while (done < count) {
        size_t take;

        if (!have_values(runs))
            return false;
        take = runs->left < count - done ? (size_t)runs->left : count - done;
        if (runs->packed == NULL) {
            memset(to + done, (int)runs->value, take);
            runs->left -= take;
        } else if (runs->next % 8 == 0) {
            bits_unpack_bools(runs->packed + runs->next / 8, take, to + done);
            runs->next += take;
            runs->left -= take;
        } else {
            take = 8 - runs->next % 8 < take ? 8 - (size_t)(runs->next % 8) : take;
            if (!read_narrow(runs, to + done, take))
                return false;
        }
        done += take;
    }
    return true;
}

bool
runs_pass_over(struct parquet_runs *runs, uint32_t value, uint64_t count)
{
    if (count == 0)
        return true;
    if (!have_values(runs) || runs->packed != NULL || runs->value != value || runs->left < count)
        return false;
    runs->left -= count;
    return true;
}
