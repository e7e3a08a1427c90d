/* picture_jpeg.c - JPEG by libjpeg-turbo, with TensorFlow's settings, so that pixels are the same
 * to the bit. The source manager follows TensorFlow's, too: when it reports the end, when it fails
 * and when it makes up an end decides what becomes of a file that is cut short. */
#include <setjmp.h>
#include <stdio.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#include "content/images/pixel_format.h"
#include "core/status.h"

#ifdef PICTURE_HAS_JPEG_PARTS
#include "content/images/turbo2/jpeg_parts.h"
#endif

/* A picture above this size must have a bit for each 8 by 8 block after its header. With fewer
 * bytes the header lies, and gets no memory. */
#define TRUSTED_PIXELS (INT64_C(1) << 24)

/* The library holds all coefficients of a picture of several scans at once, also of one that is
 * shrunk. Above this size, which no picture reaches that is not, its bytes must be a fair share. */
#define TRUSTED_COEFFICIENT_BYTES (UINT64_C(1) << 31)
enum { COEFFICIENT_BYTES_A_BYTE = 256 };

struct jpeg_job {
    struct jpeg_decompress_struct info;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    jmp_buf failed;
    const struct picture_options *options;
    struct byte_view bytes;
    struct picture_fault *fault;

    /* Where to read to; NULL: only measured. With `rows`: one row, handed on each time. */
    uint8_t *values;
    const struct picture_rows *rows;
    struct picture_part part; /* of the picture, that `rows` wants */
    struct scratch *scratch;
    int64_t height, width, channels;
    int64_t column; /* of the first pixel that the library gives */
    int64_t lines_read;
    int64_t made_up;     /* times that input was made up after the end */
    bool has_own_reader; /* jpeg_huffman.h's, for valid files */
    bool leaves_out;     /* the pixels outside the part */
    bool is_repeated;    /* the second run, with the library's reader */
};

static void
keep_silent(j_common_ptr info)
{
    (void)info;
}

static void
count_warning(j_common_ptr info, int level)
{
    if (level < 0)
        info->err->num_warnings++;
}

static void
leave(j_common_ptr info)
{
    struct jpeg_job *job = info->client_data;
    char why[JMSG_LENGTH_MAX];

    info->err->format_message(info, why);
    picture_fail(job->options, job->fault, "the JPEG cannot be decoded: %.200s", why);
    longjmp(job->failed, 1);
}

static void
begin_source(j_decompress_ptr info)
{
    struct jpeg_job *job = info->client_data;

    info->src->next_input_byte = job->bytes.data;
    info->src->bytes_in_buffer = job->bytes.size;
}

static boolean
fill_source(j_decompress_ptr info)
{
    static const JOCTET end_of_image[2] = { 0xFF, JPEG_EOI };
    struct jpeg_job *job = info->client_data;
    struct jpeg_source_mgr *source = info->src;
    bool recover = job->options->jpeg.try_recover_truncated;

    if (source->bytes_in_buffer == 0 && source->next_input_byte == job->bytes.data)
        ERREXIT(info, JERR_INPUT_EMPTY);
    /* An honest file needs this once for each block at most. Without a bound a hostile one would
     * loop forever. */
    if (job->made_up++ > 1000 + (int64_t)(info->image_width / 8 + 1) * (info->image_height / 8 + 1))
        ERREXIT(info, JERR_FILE_READ);
    if (source->bytes_in_buffer != 0) /* in the middle of a block, whose start it still points to */
        return recover ? TRUE : FALSE;
    if (source->next_input_byte == end_of_image + 2 || !recover)
        ERREXIT(info, JERR_FILE_READ);
    WARNMS(info, JWRN_JPEG_EOF);
    source->next_input_byte = end_of_image;
    source->bytes_in_buffer = sizeof end_of_image;
    return TRUE;
}

static void
skip_source(j_decompress_ptr info, long bytes)
{
    struct jpeg_source_mgr *source = info->src;

    if (bytes < 0)
        return;
    if ((unsigned long)bytes > source->bytes_in_buffer) {
        source->bytes_in_buffer = 0;
        (void)fill_source(info);
    } else {
        source->bytes_in_buffer -= (size_t)bytes;
        source->next_input_byte += bytes;
    }
}

static void
end_source(j_decompress_ptr info)
{
    (void)info;
}

/* Choose the smallest scale in eighths that covers the wanted size. libjpeg scales within the DCT,
 * so a smaller picture costs less. */
static void
choose_scale(struct jpeg_decompress_struct *info, const struct picture_jpeg *options)
{
    unsigned eighths = 1;

    if (options->cover_height == 0) {
        info->scale_num = 1;
        info->scale_denom = (unsigned)options->ratio;
        return;
    }
    while (eighths < 8 &&
           (((int64_t)info->image_height * eighths + 7) / 8 < options->cover_height ||
            ((int64_t)info->image_width * eighths + 7) / 8 < options->cover_width))
        eighths++;
    info->scale_num = eighths;
    info->scale_denom = 8;
}

/* Whether the header claims more pixels than the bytes can hold. */
static bool
header_lies(const struct jpeg_job *job)
{
    int64_t pixels = (int64_t)job->info.image_height * job->info.image_width;

    return pixels > TRUSTED_PIXELS && !job->info.arith_code &&
           (uint64_t)pixels / 64 / 8 > job->bytes.size;
}

static bool
coefficients_lie(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *info = &job->info;
    uint64_t bytes = 0;

    if (!jpeg_has_multiple_scans(info))
        return false;
    for (int i = 0; i < info->num_components; i++)
        bytes += (uint64_t)info->comp_info[i].width_in_blocks *
                 info->comp_info[i].height_in_blocks * sizeof(JBLOCK);
    return bytes > TRUSTED_COEFFICIENT_BYTES && bytes / COEFFICIENT_BYTES_A_BYTE > job->bytes.size;
}

static bool
read_header(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *info = &job->info;
    const struct picture_options *options = job->options;
    int channels = options->channels;
    int64_t dims[4];

    jpeg_read_header(info, TRUE);
    if (channels == 4)
        return picture_fail(options, job->fault, "a JPEG has no 4 channels; take 0, 1 or 3");
    if (channels == 0)
        channels = info->num_components < 3 ? info->num_components : 3;
    if (channels != 1 && channels != 3)
        return picture_fail(options, job->fault, "a JPEG of %d components", channels);
    if (channels == 1)
        info->out_color_space = JCS_GRAYSCALE;
    else if (info->jpeg_color_space == JCS_CMYK || info->jpeg_color_space == JCS_YCCK)
        info->out_color_space = JCS_CMYK;
    else
        info->out_color_space = JCS_RGB;
    info->do_fancy_upsampling = options->jpeg.fancy_upscaling ? TRUE : FALSE;
    info->dct_method = options->jpeg.accurate_dct ? JDCT_ISLOW : JDCT_IFAST;
    choose_scale(info, &options->jpeg);
    jpeg_calc_output_dimensions(info);
    if (header_lies(job) || coefficients_lie(job))
        return picture_fail(options, job->fault,
                            "the JPEG says it is %u by %u pixels, and its %zu bytes cannot hold "
                            "them",
                            info->image_width, info->image_height, job->bytes.size);
    dims[0] = job->height = info->output_height;
    dims[1] = job->width = info->output_width;
    dims[2] = job->channels = channels;
    if (dims[0] * dims[1] * info->num_components >= INT64_C(1) << 29)
        return picture_fail(options, job->fault,
                            "the JPEG says it is %lld by %lld pixels, which is too large",
                            (long long)dims[1], (long long)dims[0]);
    return true;
}

/* Convert CMYK as TensorFlow does, in integers. Adobe's files store the inverse. */
static void
convert_cmyk(const uint8_t *cmyk, int64_t width, bool is_adobe, uint8_t *rgb)
{
    for (int64_t x = 0; x < width; x++, cmyk += 4, rgb += 3) {
        int k = cmyk[3];

        for (int c = 0; c < 3; c++)
            rgb[c] = (uint8_t)(is_adobe ? k * cmyk[c] / 255 : (255 - k) * (255 - cmyk[c]) / 255);
    }
}

static uint8_t *
line_target(const struct jpeg_job *job, int64_t line)
{
    return job->values + (job->rows != NULL ? (size_t)(job->column * job->channels)
                                            : (size_t)line * (size_t)(job->width * job->channels));
}

static void
line_done(const struct jpeg_job *job, int64_t line)
{
    const struct picture_part *part = &job->part;

    if (job->rows != NULL && line >= part->top && line < part->top + part->height)
        job->rows->row(job->rows->context, job->values + part->left * job->channels);
}

/* Fill the missing lines with the last one, or black if there is none. */
static void
repeat_line(struct jpeg_job *job, int64_t line)
{
    size_t bytes = (size_t)(job->width * job->channels);

    for (; line < job->height; line++) {
        uint8_t *to = line_target(job, line);

        if (line == 0)
            memset(to, 0, bytes);
        else if (job->rows == NULL)
            memcpy(to, to - bytes, bytes);
        line_done(job, line);
    }
}

static void
blacken_lines(struct jpeg_job *job, int64_t line)
{
    for (; line < job->height; line++) {
        memset(line_target(job, line), 0, (size_t)(job->width * job->channels));
        line_done(job, line);
    }
}

/* Leave out the columns that the part does not need. A pixel at the edge of what is left has no
 * neighbours to take its colours from, so one more column is made on the left, and two on the
 * right. */
static void
leave_out_columns(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *info = &job->info;
    JDIMENSION left = (JDIMENSION)job->part.left, width = (JDIMENSION)job->part.width + 2;

    if (left > 0) {
        left--;
        width++;
    }
    if (width > info->output_width - left)
        width = info->output_width - left;
    jpeg_crop_scanline(info, &left, &width);
    job->column = left;
}

/* Leave out the lines above and below the part, whose codes are read all the same, so that a bad
 * file is told. The lines next to the part are made, since colours are mixed over lines; the
 * library mends what it has left out by them. Returns the line that comes next. */
static int64_t
pass_over(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *info = &job->info;
    int64_t band = (int64_t)info->max_v_samp_factor * DCTSIZE;
    int64_t line = info->output_scanline, below = job->part.top + job->part.height, until = 0;

    if (!job->leaves_out)
        return line;
    if (line == 0)
        until = job->part.top / band * band - band;
    else if (line == below)
        until = job->height - 2 * band;
    if (until > line)
        jpeg_skip_scanlines(info, (JDIMENSION)(until - line));
    return info->output_scanline;
}

/* Read lines until they end. Recovering, libjpeg makes up the rest. */
static void
read_lines(struct jpeg_job *job)
{
    struct jpeg_decompress_struct *info = &job->info;
    bool is_cmyk = info->out_color_space == JCS_CMYK;
    JSAMPROW cmyk = is_cmyk ? scratch_alloc(job->scratch, (size_t)job->width * 4) : NULL;

    job->lines_read = job->height;
    while (info->output_scanline < info->output_height) {
        int64_t line = pass_over(job);
        JSAMPROW row = is_cmyk ? cmyk : line_target(job, line);

        if (jpeg_read_scanlines(info, &row, 1) == 0) {
            if (job->options->jpeg.try_recover_truncated && !job->has_own_reader)
                repeat_line(job, line);
            else
                job->lines_read = line;
            jpeg_abort_decompress(info);
            return;
        }
        if (is_cmyk)
            convert_cmyk(cmyk, job->width, info->saw_Adobe_marker, line_target(job, line));
        line_done(job, line);
    }
    jpeg_finish_decompress(info);
}

static void
install_parts(struct jpeg_job *job)
{
#ifdef PICTURE_HAS_JPEG_PARTS
    if (jpeg_parts_fit()) {
        job->has_own_reader = !job->is_repeated && jpeg_huffman_install(&job->info);
        jpeg_idct_install(&job->info);
    }
#else
    (void)job;
#endif
}

static bool
read_pixels(struct jpeg_job *job)
{
    const struct picture_options *options = job->options;
    float wanted = options->jpeg.acceptable_fraction;

    jpeg_start_decompress(&job->info);
    if (job->info.output_components != (job->info.out_color_space == JCS_CMYK ? 4 : job->channels))
        return picture_fail(options, job->fault, "the JPEG's colours cannot be converted");
    install_parts(job);
    /* The library's reader would pass over codes that are none, and scaled blocks of chroma have
     * sizes of their own, which the library does not cut right. */
    job->leaves_out = job->has_own_reader && job->rows != NULL &&
                      job->info.scale_num == job->info.scale_denom &&
                      job->part.height * job->part.width < job->height * job->width;
    if (job->leaves_out)
        leave_out_columns(job);
    read_lines(job);
    if (job->has_own_reader && job->lines_read < job->height)
        return false;
    if ((float)job->lines_read / (float)job->height < (wanted < 1.0F ? wanted : 1.0F))
        return picture_fail(options, job->fault, "the JPEG is truncated: it has %lld of %lld lines",
                            (long long)job->lines_read, (long long)job->height);
    blacken_lines(job, job->lines_read);
    return true;
}

static bool
set_size(const struct jpeg_job *job, struct picture_size *ret_size)
{
    const int64_t dims[4] = { job->height, job->width, job->channels };

    return picture_set_size(job->options, 3, dims, ret_size, job->fault);
}

/* libjpeg-turbo writes aligned rows past the cache, and they are read right afterwards: misalign
 * them. */
enum { OFF_ALIGNMENT = 8 };

static bool
begin_rows(struct jpeg_job *job)
{
    size_t bytes = (size_t)(job->width * job->channels) + OFF_ALIGNMENT;
    struct picture_size size;

    if (!set_size(job, &size))
        return false;
    job->part = (struct picture_part){ .height = job->height, .width = job->width };
    job->values = job->rows->begin(job->rows->context, &size, bytes, &job->part);
    if (job->values == NULL)
        return picture_fail(job->options, job->fault, "%s", tnd_error_text());
    job->values += OFF_ALIGNMENT;
    return true;
}

/* Everything that may longjmp is called from here, so that no local variable loses its value. */
static bool
run(struct jpeg_job *job)
{
    if (setjmp(job->failed) != 0)
        return false;
    jpeg_create_decompress(&job->info);
    job->info.src = &job->source;
    if (!read_header(job) || (job->rows != NULL && !begin_rows(job)))
        return false;
    return job->values == NULL || read_pixels(job);
}

static bool
decompress_once(struct jpeg_job *job)
{
    bool ok;

    job->info.err = jpeg_std_error(&job->errors);
    job->info.client_data = job;
    job->errors.error_exit = leave;
    job->errors.output_message = keep_silent;
    job->errors.emit_message = count_warning;
    job->source = (struct jpeg_source_mgr){ .init_source = begin_source,
                                            .fill_input_buffer = fill_source,
                                            .skip_input_data = skip_source,
                                            .resync_to_restart = jpeg_resync_to_restart,
                                            .term_source = end_source };
    ok = run(job);
    jpeg_destroy_decompress(&job->info);
    return ok;
}

/* The own reader gives up on a file that is not valid; the library's then decides what becomes of
 * it. */
static bool
decompress(struct jpeg_job *job)
{
    bool ok = decompress_once(job);

    if (!ok && job->has_own_reader) {
        job->has_own_reader = false;
        job->is_repeated = true;
        job->made_up = 0;
        job->column = 0;
        ok = decompress_once(job);
    }
    return ok;
}

static bool
jpeg_measure(const struct picture_options *options, struct byte_view bytes,
             struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    struct jpeg_job job = { .options = options, .bytes = bytes, .fault = ret_fault };

    return decompress(&job) && set_size(&job, ret_size);
}

static bool
jpeg_read(const struct picture_options *options, struct byte_view bytes,
          const struct picture_size *size, struct scratch *scratch, void *values,
          struct picture_fault *ret_fault)
{
    struct jpeg_job job = {
        .options = options, .bytes = bytes, .fault = ret_fault, .values = values, .scratch = scratch
    };

    (void)size;
    return decompress(&job);
}

static bool
jpeg_read_rows(const struct picture_options *options, struct byte_view bytes,
               struct scratch *scratch, const struct picture_rows *rows,
               struct picture_fault *ret_fault)
{
    struct jpeg_job job = {
        .options = options, .bytes = bytes, .fault = ret_fault, .rows = rows, .scratch = scratch
    };

    return decompress(&job);
}

const struct picture_format picture_jpeg = {
    .name = "JPEG",
    .measure = jpeg_measure,
    .read = jpeg_read,
    .read_rows = jpeg_read_rows,
};
