/* jpeg_parts.h - two parts of libjpeg-turbo 2.1 written again, because they are where decoding a
 * JPEG spends its time: the reader of Huffman codes, and the blocks of sizes between the eighths.
 *
 * Both reach into what the library keeps to itself (jpegint.h), so they are built only for the
 * release they were written against (meson option jpeg_parts). Without them the library's own parts
 * do the work: whole pictures are the same to the byte, and shrunk ones within one.
 *
 * This folder can be deleted once the distributions that tundish is built for have a libjpeg-turbo
 * that reads Huffman codes as fast, and has vector code for the sizes between: the bench of
 * pictures then shows the same figures with -Djpeg_parts=disabled. It is dead weight once none of
 * them has libjpeg-turbo 2 any more.
 */
#ifndef CONTENT_IMAGES_TURBO2_JPEG_PARTS_H
#define CONTENT_IMAGES_TURBO2_JPEG_PARTS_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/* Does the process run with the library that the parts were built for? A newer one with the same
 * soname may have been installed since: then none of the functions below may be called. Any
 * thread. */
bool jpeg_parts_fit(void);

/* Put the reader of Huffman codes, about twice as fast, in place of the library's, which
 * jpeg_start_decompress has made ready; the source must hold all bytes of the file. Lives as long
 * as the picture. False: not for this picture.
 *
 * It is for what most files are: one baseline scan in which everything is as it should be. Whatever
 * is not (a code that is none, a marker out of place, an end too early) is for the library's own
 * reader, whose ways of going on are known and wanted: this one stops, after which
 * jpeg_read_scanlines gives no more lines, and the picture must be read again from its first byte.
 * So coefficients are the library's in any case. */
bool jpeg_huffman_install(struct jpeg_decompress_struct *info);

/* Put routines for blocks of 3, 5, 6, 7, 10, 12 and 14 pixels, for which the library has no vector
 * code, in place of its own, once jpeg_start_decompress has chosen them; they live as long as the
 * picture. Pixels are within one of the library's, and the same on every CPU. */
void jpeg_idct_install(struct jpeg_decompress_struct *info);

#endif
