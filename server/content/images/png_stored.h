/* png_stored.h - a PNG whose pixels are stored instead of compressed.
 *
 * zlib takes half of the time in which libpng decodes a picture. libdeflate takes a third of that,
 * but inflates only whole streams. So the pixels are inflated by libdeflate, and libpng gets a file
 * in which the same bytes are stored: its zlib only copies them. */
#ifndef CONTENT_IMAGES_PNG_STORED_H
#define CONTENT_IMAGES_PNG_STORED_H

#include "column/scratch.h"
#include "core/bytes.h"

/* The same picture, in the scratch's memory. Its critical chunks had the right checksums, and need
 * not be checked again. False: the file is interlaced or damaged, so that libpng is to read it. */
bool png_store(struct byte_view bytes, struct scratch *scratch, struct byte_view *ret_stored);

#endif
