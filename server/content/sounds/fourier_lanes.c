/* fourier_lanes.c - a complex transform of half the length, by Stockham's steps of four and perhaps
 * a last one of two, which leave the values in order. */
#include "content/sounds/fourier_lanes.h"

#include <math.h>
#include <stdlib.h>

#include "core/memory.h"

struct root {
    float re, im;
};

struct fourier_lanes {
    int64_t half;
    struct root roots[]; /* exp(-2 pi i k / length) */
};

bool
fourier_lanes_takes(int64_t length)
{
    return length >= FOURIER_LANES_LEAST && (length & (length - 1)) == 0;
}

struct fourier_lanes *
fourier_lanes_open(int64_t length)
{
    struct fourier_lanes *fourier =
        tnd_zalloc(1, sizeof *fourier + (size_t)length * sizeof *fourier->roots);

    fourier->half = length / 2;
    for (int64_t k = 0; k < length; k++) {
        double angle = -2 * M_PI * (double)k / (double)length;

        fourier->roots[k] = (struct root){ (float)cos(angle), (float)sin(angle) };
    }
    return fourier;
}

void
fourier_lanes_close(struct fourier_lanes *fourier)
{
    free(fourier);
}

static inline struct lanes_complex
add(struct lanes_complex a, struct lanes_complex b)
{
    return (struct lanes_complex){ a.re + b.re, a.im + b.im };
}

static inline struct lanes_complex
subtract(struct lanes_complex a, struct lanes_complex b)
{
    return (struct lanes_complex){ a.re - b.re, a.im - b.im };
}

static inline struct lanes_complex
times_i(struct lanes_complex a)
{
    return (struct lanes_complex){ -a.im, a.re };
}

static inline struct lanes_complex
turn(struct lanes_complex a, struct root by)
{
    return (struct lanes_complex){ a.re * by.re - a.im * by.im, a.re * by.im + a.im * by.re };
}

/* `count` transforms of `length` values, whose values lie `count` apart, to four times as many of a
 * quarter of the length. */
static void
step_of_four(const struct fourier_lanes *fourier, int64_t length, int64_t count,
             const struct lanes_complex *from, struct lanes_complex *to)
{
    int64_t quarter = length / 4;

    for (int64_t p = 0; p < quarter; p++) {
        const struct root *roots = fourier->roots;
        struct root one = roots[2 * p * count], two = roots[4 * p * count],
                    three = roots[6 * p * count];

        for (int64_t q = 0; q < count; q++) {
            const struct lanes_complex *at = from + q + count * p;
            struct lanes_complex *out = to + q + count * 4 * p;
            struct lanes_complex a = at[0], b = at[count * quarter], c = at[2 * count * quarter],
                                 d = at[3 * count * quarter];
            struct lanes_complex sum = add(a, c), other = add(b, d), difference = subtract(a, c),
                                 turned = times_i(subtract(b, d));

            out[0] = add(sum, other);
            out[count] = turn(subtract(difference, turned), one);
            out[2 * count] = turn(subtract(sum, other), two);
            out[3 * count] = turn(add(difference, turned), three);
        }
    }
}

static void
step_of_two(int64_t count, const struct lanes_complex *from, struct lanes_complex *to)
{
    for (int64_t q = 0; q < count; q++) {
        to[q] = add(from[q], from[q + count]);
        to[q + count] = subtract(from[q], from[q + count]);
    }
}

/* Returns where the transform is. */
static const struct lanes_complex *
transform(const struct fourier_lanes *fourier, struct lanes_complex *room)
{
    struct lanes_complex *from = room, *to = room + fourier->half;
    int64_t length = fourier->half, count = 1;

    for (; length > 1; length /= 4, count *= 4) {
        struct lanes_complex *other = from;

        if (length == 2) {
            step_of_two(count, from, to);
            return to;
        }
        step_of_four(fourier, length, count, from, to);
        from = to;
        to = other;
    }
    return from;
}

static inline lanes_values
magnitude(struct lanes_complex a)
{
    lanes_values square = a.re * a.re + a.im * a.im, root;

    for (int i = 0; i < FOURIER_LANES; i++)
        root[i] = sqrtf(square[i]);
    return root;
}

/* The transform of the samples follows from those of the even and of the odd ones. */
void
fourier_lanes_magnitudes(const struct fourier_lanes *fourier, struct lanes_complex *room,
                         lanes_values *ret_magnitudes)
{
    const struct lanes_complex *values = transform(fourier, room);
    int64_t half = fourier->half;

    for (int64_t k = 0; k <= half / 2; k++) {
        struct lanes_complex a = values[k], b = values[k == 0 ? 0 : half - k];
        struct lanes_complex conjugate = { b.re, -b.im };
        struct lanes_complex even = add(a, conjugate), odd = times_i(subtract(conjugate, a));
        struct lanes_complex turned = turn(odd, fourier->roots[k]);
        struct lanes_complex low = add(even, turned), high = subtract(even, turned);

        ret_magnitudes[k] = magnitude(low) * 0.5F;
        ret_magnitudes[half - k] = magnitude(high) * 0.5F;
    }
}
