/* image.h - the kernel as the build made it: a fat binary of nvcc, or PTX of clang, or both. */
#ifndef TND_CUDA_IMAGE_H
#define TND_CUDA_IMAGE_H

extern const void *const cuda_images[]; /* to be tried in this order */
extern const unsigned cuda_image_count;

#endif
