/* picture_png.c - PNG by libpng, with TensorFlow's transformations. */
#include <png.h>
#include <string.h>

#include "content/images/pixel_format.h"
#include "content/images/png_stored.h"

/* Deflate expands a byte to at most INFLATED_MAX. */
#define INFLATED_MAX 1032

struct png_job {
    png_structp png;
    png_infop info;
    const struct picture_options *options;
    struct byte_view left; /* of the file */
    bool is_stored;        /* its checksums are not those of its pixels any more */
    struct picture_fault *fault;

    png_uint_32 width, height;
    int depth, colour, channels, passes;
    bool made_wide; /* from 8 bits to 16 */
};

static void
leave(png_structp png, png_const_charp why)
{
    struct png_job *job = png_get_error_ptr(png);

    picture_fail(job->options, job->fault, "the PNG cannot be decoded: %.200s", why);
    png_longjmp(png, 1);
}

static void
keep_silent(png_structp png, png_const_charp why)
{
    (void)png;
    (void)why;
}

static void
take_bytes(png_structp png, png_bytep to, png_size_t bytes)
{
    struct png_job *job = png_get_io_ptr(png);

    if (job->left.size < bytes)
        png_error(png, "it is truncated");
    memcpy(to, job->left.data, bytes);
    job->left.data += bytes;
    job->left.size -= bytes;
}

static int
natural_channels(const struct png_job *job, bool has_transparency)
{
    if (job->colour == PNG_COLOR_TYPE_PALETTE)
        return has_transparency ? 4 : 3;
    return png_get_channels(job->png, job->info);
}

/* Remove an alpha channel that is not wanted, or add one: from a transparent colour, or opaque. */
static void
set_alpha(struct png_job *job, bool has_transparency)
{
    bool has_alpha = (job->colour & PNG_COLOR_MASK_ALPHA) != 0;

    if (job->channels % 2 != 0) {
        if (has_alpha || has_transparency)
            png_set_strip_alpha(job->png);
    } else if (!has_alpha) {
        if (has_transparency)
            png_set_tRNS_to_alpha(job->png);
        else
            png_set_add_alpha(job->png, (1U << job->depth) - 1, PNG_FILLER_AFTER);
    }
}

/* Set the transformations in TensorFlow's order; libpng applies them in its own. */
static void
set_transformations(struct png_job *job)
{
    bool is_wide = job->options->dtype != TUNDISH_UINT8;
    bool is_gray = (job->colour & PNG_COLOR_MASK_COLOR) == 0;
    bool has_transparency = png_get_valid(job->png, job->info, PNG_INFO_tRNS) != 0;
    png_structp png = job->png;

    job->channels = job->options->channels;
    if (job->channels == 0)
        job->channels = natural_channels(job, has_transparency);
    set_alpha(job, has_transparency);
    if (job->depth > 8 && !is_wide)
        png_set_strip_16(png);
    job->made_wide = job->depth <= 8 && is_wide;
    png_set_packing(png);
    job->passes = png_set_interlace_handling(png);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (is_wide)
        png_set_swap(png);
#endif
    if (job->colour == PNG_COLOR_TYPE_PALETTE)
        png_set_palette_to_rgb(png);
    if (is_gray && job->depth < 8)
        png_set_expand_gray_1_2_4_to_8(png);
    if (job->channels < 3) {
        if (!is_gray)
            png_set_rgb_to_gray(png, PNG_ERROR_ACTION_NONE, 0.299, 0.587);
    } else if (is_gray) {
        png_set_gray_to_rgb(png);
    }
    png_read_update_info(png, job->info);
}

static bool
read_header(struct png_job *job)
{
    uint64_t row_bytes;

    png_set_read_fn(job->png, job, take_bytes);
    if (job->is_stored) {
        png_set_crc_action(job->png, PNG_CRC_QUIET_USE, PNG_CRC_DEFAULT);
        png_set_option(job->png, PNG_IGNORE_ADLER32, PNG_OPTION_ON);
    }
    png_read_info(job->png, job->info);
    png_get_IHDR(job->png, job->info, &job->width, &job->height, &job->depth, &job->colour, NULL,
                 NULL, NULL);
    /* Each row has a filter byte before its pixels. */
    row_bytes = png_get_rowbytes(job->png, job->info) + 1;
    if (row_bytes * job->height / INFLATED_MAX > job->left.size)
        return picture_fail(job->options, job->fault,
                            "the PNG says it is %u by %u pixels, and its %zu bytes cannot hold "
                            "them",
                            job->width, job->height, job->left.size);
    set_transformations(job);
    return true;
}

/* Widen in place, from the end: the narrow values are at the start of the wide ones' memory. */
static void
make_wide(uint8_t *row, int64_t count)
{
    uint16_t *wide = (uint16_t *)(void *)row;

    for (int64_t i = count - 1; i >= 0; i--)
        wide[i] = (uint16_t)(row[i] * 257);
}

static void
read_pixels(struct png_job *job, uint8_t *values)
{
    int64_t row_values = (int64_t)job->width * job->channels;
    size_t row_bytes = (size_t)row_values * (job->options->dtype == TUNDISH_UINT8 ? 1 : 2);

    if (png_get_rowbytes(job->png, job->info) > row_bytes)
        png_error(job->png, "its colours cannot be converted");
    for (int pass = 0; pass < job->passes; pass++)
        for (png_uint_32 y = 0; y < job->height; y++)
            png_read_row(job->png, values + y * row_bytes, NULL);
    png_read_end(job->png, job->info);
    if (job->made_wide)
        for (png_uint_32 y = 0; y < job->height; y++)
            make_wide(values + y * row_bytes, row_values);
}

/* Everything that may longjmp is called from here, so that no local variable loses its value. */
static bool
run(struct png_job *job, uint8_t *values)
{
    if (setjmp(png_jmpbuf(job->png)) != 0)
        return false;
    if (!read_header(job))
        return false;
    if (values != NULL)
        read_pixels(job, values);
    return true;
}

static bool
decompress(struct png_job *job, uint8_t *values)
{
    bool ok = false;

    job->png = png_create_read_struct(PNG_LIBPNG_VER_STRING, job, leave, keep_silent);
    if (job->png != NULL)
        job->info = png_create_info_struct(job->png);
    if (job->info == NULL)
        picture_fail(job->options, job->fault,
                     "libpng cannot start: does its version match this build?");
    else
        ok = run(job, values);
    png_destroy_read_struct(&job->png, &job->info, NULL);
    return ok;
}

static bool
png_measure(const struct picture_options *options, struct byte_view bytes,
            struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    struct png_job job = { .options = options, .left = bytes, .fault = ret_fault };
    int64_t dims[4];

    if (!decompress(&job, NULL))
        return false;
    dims[0] = job.height;
    dims[1] = job.width;
    dims[2] = job.channels;
    return picture_set_size(options, 3, dims, ret_size, ret_fault);
}

static bool
png_read(const struct picture_options *options, struct byte_view bytes,
         const struct picture_size *size, struct scratch *scratch, void *values,
         struct picture_fault *ret_fault)
{
    struct png_job job = { .options = options, .left = bytes, .fault = ret_fault };

    (void)size;
    job.is_stored = png_store(bytes, scratch, &job.left);
    return decompress(&job, values);
}

const struct picture_format picture_png = {
    .name = "PNG",
    .measure = png_measure,
    .read = png_read,
};
