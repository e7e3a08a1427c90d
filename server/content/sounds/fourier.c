/* fourier.c - the mixed-radix Fourier transform (Cooley and Tukey): for each prime factor p of the
 * length, a transform of p * m values combines p transforms of m values each. Where a factor is
 * large, the transform is a convolution with a chirp (Bluestein), which those of a power of two
 * make. */
#include "content/sounds/fourier.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"

enum { FACTORS_MAX = 64 };

struct fourier {
    int64_t length;
    int64_t factors[FACTORS_MAX]; /* their product is the length; a 0 ends them */
    double complex *roots;        /* of unity: exp(-2 pi i k / length) */

    /* For a hard length; the others have none. */
    struct fourier *powers; /* the transform of `room` values, a power of two */
    double complex *chirp;  /* exp(-pi i k * k / length) */
    double complex *filter; /* the transform of its conjugate, for both signs of k, over `room` */
    int64_t room;
};

/* CMPLX, which the C library defines for GCC only. The members are set directly, since a + b * I
 * turns infinities to NaN. */
static inline double complex
complex_of(double real, double imaginary)
{
    const double parts[2] = { real, imaginary };
    double complex made;

    memcpy(&made, parts, sizeof made);
    return made;
}

/* Factor the length by trial division, which is quick for lengths up to 2^24. */
static void
find_factors(struct fourier *fourier)
{
    int64_t left = fourier->length, count = 0;

    for (int64_t p = 2; left > 1; p = p * p > left ? left : p + 1)
        for (; left % p == 0; left /= p)
            fourier->factors[count++] = p;
}

/* Multiply without the checks for infinities that C's operator makes. */
static inline double complex
times(double complex a, double complex b)
{
    return complex_of(creal(a) * creal(b) - cimag(a) * cimag(b),
                      creal(a) * cimag(b) + cimag(a) * creal(b));
}

/* Combine two transforms of `part` values in `to` (a butterfly). Roots are `stride` apart. */
static void
join_two(const struct fourier *fourier, int64_t part, int64_t stride, double complex *to)
{
    for (int64_t i = 0; i < part; i++) {
        double complex even = to[i], odd = times(to[part + i], fourier->roots[i * stride]);

        to[i] = even + odd;
        to[part + i] = even - odd;
    }
}

/* Combine p transforms for an odd prime p, by the definition: p^2 products for each of the `part`
 * positions. */
static void
join(const struct fourier *fourier, int64_t p, int64_t part, int64_t stride, double complex *to,
     double complex *values)
{
    for (int64_t i = 0; i < part; i++) {
        for (int64_t k = 0; k < p; k++)
            values[k] = to[k * part + i];
        for (int64_t q = 0; q < p; q++) {
            int64_t step = (q * part + i) * stride % fourier->length, at = 0;
            double complex sum = values[0];

            for (int64_t k = 1; k < p; k++) {
                at = at + step < fourier->length ? at + step : at + step - fourier->length;
                sum += times(values[k], fourier->roots[at]);
            }
            to[q * part + i] = sum;
        }
    }
}

/* Transform `count` values of `from`, `stride` apart. The recursion is as deep as there are prime
 * factors. */
static void
transform(const struct fourier *fourier, const int64_t *factors, int64_t count, int64_t stride,
          const double complex *from, double complex *to, double complex *room)
{
    int64_t p = *factors, part;

    if (count == 1) {
        *to = *from;
        return;
    }
    part = count / p;
    for (int64_t k = 0; k < p; k++)
        transform(fourier, factors + 1, part, stride * p, from + k * stride, to + k * part, room);
    if (p == 2)
        join_two(fourier, part, stride, to);
    else
        join(fourier, p, part, stride, to, room);
}

/* Powers of two that hold the values of both signs of k. */
static int64_t
room_of(int64_t length)
{
    int64_t room = 1;

    while (room < 2 * length - 1)
        room *= 2;
    return room;
}

bool
fourier_is_hard(int64_t length)
{
    int64_t room = room_of(length), left = length, steps = 0, room_steps = 0;

    for (int64_t p = 2; left > 1; p = p * p > left ? left : p + 1)
        for (; left % p == 0; left /= p)
            steps += p * length;
    for (int64_t i = 1; i < room; i *= 2)
        room_steps += room;
    return steps > 4 * room_steps;
}

static void
set_up_roots(struct fourier *fourier)
{
    int64_t length = fourier->length;

    fourier->roots = tnd_zalloc((size_t)length, sizeof *fourier->roots);
    find_factors(fourier);
    for (int64_t k = 0; k < length; k++) {
        double angle = -2 * M_PI * (double)k / (double)length;

        fourier->roots[k] = complex_of(cos(angle), sin(angle));
    }
}

static void
set_up_chirp(struct fourier *fourier)
{
    int64_t length = fourier->length, room = room_of(length);
    double complex *wave = tnd_zalloc((size_t)room, sizeof *wave);

    fourier->room = room;
    fourier->powers = fourier_open(room);
    fourier->chirp = tnd_zalloc((size_t)length, sizeof *fourier->chirp);
    fourier->filter = tnd_zalloc((size_t)room, sizeof *fourier->filter);
    for (int64_t k = 0; k < length; k++) {
        double angle = M_PI * (double)(k * k % (2 * length)) / (double)length;

        fourier->chirp[k] = complex_of(cos(angle), -sin(angle));
        /* The transform back divides by its length. */
        wave[k] = wave[k > 0 ? room - k : 0] =
            complex_of(cos(angle) / (double)room, sin(angle) / (double)room);
    }
    fourier_transform(fourier->powers, wave, fourier->filter, NULL);
    free(wave);
}

struct fourier *
fourier_open(int64_t length)
{
    struct fourier *fourier = tnd_zalloc(1, sizeof *fourier);

    fourier->length = length;
    if (fourier_is_hard(length))
        set_up_chirp(fourier);
    else
        set_up_roots(fourier);
    return fourier;
}

void
fourier_close(struct fourier *fourier)
{
    if (fourier == NULL)
        return;
    fourier_close(fourier->powers);
    free(fourier->chirp);
    free(fourier->filter);
    free(fourier->roots);
    free(fourier);
}

int64_t
fourier_room(const struct fourier *fourier)
{
    return fourier->powers != NULL ? 2 * fourier->room : fourier->length;
}

/* The values times the chirp, convolved with its conjugate, times the chirp. A transform of
 * conjugates is the conjugate of the transform back. */
static void
transform_by_chirp(const struct fourier *fourier, const double complex *from, double complex *to,
                   double complex *wave)
{
    double complex *spectrum = wave + fourier->room;

    for (int64_t k = 0; k < fourier->room; k++)
        wave[k] = k < fourier->length ? times(from[k], fourier->chirp[k]) : 0;
    fourier_transform(fourier->powers, wave, spectrum, NULL);
    for (int64_t k = 0; k < fourier->room; k++)
        wave[k] = conj(times(spectrum[k], fourier->filter[k]));
    fourier_transform(fourier->powers, wave, spectrum, NULL);
    for (int64_t k = 0; k < fourier->length; k++)
        to[k] = times(conj(spectrum[k]), fourier->chirp[k]);
}

void
fourier_transform(const struct fourier *fourier, const double complex *from, double complex *to,
                  double complex *room)
{
    if (fourier->powers != NULL)
        transform_by_chirp(fourier, from, to, room);
    else
        transform(fourier, fourier->factors, fourier->length, 1, from, to, room);
}
