/* jpeg_idct.h - a JPEG's blocks at the sizes between, which libjpeg-turbo has no vector code for.
 *
 * Pixels are within one of the library's, and the same on every CPU.
 */
#ifndef CONTENT_JPEG_IDCT_H
#define CONTENT_JPEG_IDCT_H

#include <stdio.h>

#include <jpeglib.h>

/* Put routines for blocks of 3, 5, 6, 7, 10, 12 and 14 pixels in place of the library's, once
 * jpeg_start_decompress has chosen them; they live as long as the picture. */
void jpeg_idct_install(struct jpeg_decompress_struct *info);

#endif
