/* eigen.h - eigenvectors of symmetric matrices. */
#ifndef LEARN_ANALYZERS_EIGEN_H
#define LEARN_ANALYZERS_EIGEN_H

#include <stdint.h>

/* The unit eigenvectors of `matrix` (size * size, symmetric; it is overwritten), one a row, that of
 * the greatest eigenvalue first. Their signs are arbitrary. */
void eigen_vectors(double *matrix, int64_t size, double *ret_vectors);

#endif
