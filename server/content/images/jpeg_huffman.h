/* jpeg_huffman.h - the Huffman codes of a JPEG, read about twice as fast as libjpeg-turbo does.
 *
 * For what most files are: one baseline scan in which everything is as it should be. Whatever is
 * not (a code that is none, a marker out of place, an end too early) is for the library's own
 * reader, whose ways of going on are known and wanted: this one stops, and the picture must be
 * read again from its first byte. So coefficients are the library's in any case.
 */
#ifndef CONTENT_JPEG_HUFFMAN_H
#define CONTENT_JPEG_HUFFMAN_H

#include <stdbool.h>
#include <stdio.h>

#include <jpeglib.h>

/* Put this reader in place of the library's, which jpeg_start_decompress has made ready; the source
 * must hold all bytes of the file. Lives as long as the picture. False: not for this picture. Once
 * it has stopped, jpeg_read_scanlines gives no more lines. */
bool jpeg_huffman_install(struct jpeg_decompress_struct *info);

#endif
