/* eigen.c - Jacobi's eigenvalue algorithm: slow for large matrices, and accurate for all. */
#include "learn/analyzers/eigen.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

#include "core/memory.h"

enum { SWEEPS_MAX = 100 };

/* Half of the sum that the sweeps bring to zero. */
static double
off_diagonal(const double *matrix, int64_t size)
{
    double sum = 0;

    for (int64_t i = 0; i < size; i++)
        for (int64_t k = i + 1; k < size; k++)
            sum += matrix[i * size + k] * matrix[i * size + k];
    return sum;
}

/* Rotate in the plane of p and q so that the entry between them becomes 0. The smaller of the two
 * possible angles is taken, which makes the sweeps converge. */
static void
rotate(double *matrix, double *vectors, int64_t size, int64_t p, int64_t q)
{
    double between = matrix[p * size + q];
    double ratio, tangent, cosine, sine;

    if (between == 0)
        return;
    ratio = (matrix[q * size + q] - matrix[p * size + p]) / (2 * between);
    tangent = (ratio < 0 ? -1 : 1) / (fabs(ratio) + sqrt(ratio * ratio + 1));
    cosine = 1 / sqrt(tangent * tangent + 1);
    sine = tangent * cosine;
    for (int64_t i = 0; i < size; i++) {
        double a = matrix[i * size + p], b = matrix[i * size + q];

        matrix[i * size + p] = cosine * a - sine * b;
        matrix[i * size + q] = sine * a + cosine * b;
    }
    for (int64_t i = 0; i < size; i++) {
        double a = matrix[p * size + i], b = matrix[q * size + i];

        matrix[p * size + i] = cosine * a - sine * b;
        matrix[q * size + i] = sine * a + cosine * b;
        a = vectors[p * size + i];
        b = vectors[q * size + i];
        vectors[p * size + i] = cosine * a - sine * b;
        vectors[q * size + i] = sine * a + cosine * b;
    }
}

/* By eigenvalue, the largest first. */
static void
sort(double *matrix, double *vectors, int64_t size)
{
    for (int64_t i = 0; i < size; i++) {
        int64_t greatest = i;

        for (int64_t k = i + 1; k < size; k++)
            if (matrix[k * size + k] > matrix[greatest * size + greatest])
                greatest = k;
        if (greatest == i)
            continue;
        for (int64_t k = 0; k < size; k++) {
            double held = vectors[i * size + k];

            vectors[i * size + k] = vectors[greatest * size + k];
            vectors[greatest * size + k] = held;
        }
        {
            double held = matrix[i * size + i];

            matrix[i * size + i] = matrix[greatest * size + greatest];
            matrix[greatest * size + greatest] = held;
        }
    }
}

void
eigen_vectors(double *matrix, int64_t size, double *ret_vectors)
{
    double before = INFINITY;

    for (int64_t i = 0; i < size * size; i++)
        ret_vectors[i] = i % (size + 1) == 0;
    for (int sweep = 0; sweep < SWEEPS_MAX; sweep++) {
        double left = off_diagonal(matrix, size);

        /* The sum falls with each sweep until only rounding is left. */
        if (left == 0 || !(left < before))
            break;
        before = left;
        for (int64_t p = 0; p < size; p++)
            for (int64_t q = p + 1; q < size; q++)
                rotate(matrix, ret_vectors, size, p, q);
    }
    sort(matrix, ret_vectors, size);
}
