/* resample_kernel.c - bicubic, area, and the kernels of TensorFlow's ScaleAndTranslate. */
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#include "content/images/resample_private.h"

/* Keys' cubic for bicubic, from a table of TensorFlow's size: its rounding decides the weights. */

enum { TABLE = 1024 };

static float table[(TABLE + 1) * 2];
static pthread_once_t table_once = PTHREAD_ONCE_INIT;

static void
make_table(void)
{
    const double a = -0.5;

    for (int i = 0; i <= TABLE; i++) {
        float x = (float)(i * 1.0 / TABLE);

        table[i * 2] = (float)(((a + 2) * (double)x - (a + 3)) * (double)x * (double)x + 1);
        x = (float)((double)x + 1.0);
        table[i * 2 + 1] =
            (float)(((a * (double)x - 5 * a) * (double)x + 8 * a) * (double)x - 4 * a);
    }
}

struct cubic {
    int64_t source[4];
    float weight[4];
};

/* The four source positions and weights of each target position. Positions outside get no weight,
 * and the others are normalized, as with half_pixel_centers in TensorFlow. */
static struct cubic *
make_cubics(struct resample_work *work, unsigned room, int64_t from, int64_t to)
{
    struct cubic *cubics = resample_room(work, room, (size_t)to * sizeof *cubics);
    float scale = (float)from / (float)to;

    pthread_once(&table_once, make_table);
    for (int64_t i = 0; i < to; i++) {
        struct cubic *cubic = &cubics[i];
        float at = ((float)i + 0.5F) * scale - 0.5F, sum;
        int64_t low = (int64_t)floorf(at);
        long offset = lrintf((at - (float)low) * TABLE);
        const float weights[4] = { table[offset * 2 + 1], table[offset * 2],
                                   table[(TABLE - offset) * 2], table[(TABLE - offset) * 2 + 1] };

        for (int k = 0; k < 4; k++) {
            cubic->source[k] = resample_bound(low - 1 + k, from);
            cubic->weight[k] = cubic->source[k] == low - 1 + k ? weights[k] : 0.0F;
        }
        sum = cubic->weight[0] + cubic->weight[1] + cubic->weight[2] + cubic->weight[3];
        if (fabsf(sum) >= 1000.0F * FLT_MIN) {
            float one_over = 1.0F / sum;

            for (int k = 0; k < 4; k++)
                cubic->weight[k] *= one_over;
        }
    }
    return cubics;
}

static float
weigh(const float values[4], const float weights[4])
{
    return values[0] * weights[0] + values[1] * weights[1] + values[2] * weights[2] +
           values[3] * weights[3];
}

/* Columns first, as TensorFlow does: the order decides the rounding. */
void
resample_bicubic(const struct resample *resample, struct resample_work *work, const float *from,
                 float *to)
{
    int64_t channels = resample->channels;
    const struct cubic *xs = make_cubics(work, ROOM_X, resample->from_width, resample->to_width);
    const struct cubic *ys = make_cubics(work, ROOM_Y, resample->from_height, resample->to_height);
    int64_t width = resample->from_width * channels;
    float *column = resample_room(work, ROOM_MIDDLE, (size_t)width * sizeof *column);

    for (int64_t y = 0; y < resample->to_height; y++) {
        const float *rows[4];

        for (int k = 0; k < 4; k++)
            rows[k] = from + ys[y].source[k] * resample->row_values;
        for (int64_t i = 0; i < width; i++) {
            const float values[4] = { rows[0][i], rows[1][i], rows[2][i], rows[3][i] };

            column[i] = weigh(values, ys[y].weight);
        }
        for (int64_t x = 0; x < resample->to_width; x++)
            for (int64_t c = 0; c < channels; c++) {
                float values[4];

                for (int k = 0; k < 4; k++)
                    values[k] = column[xs[x].source[k] * channels + c];
                *to++ = weigh(values, xs[x].weight);
            }
    }
}

/* The share of source position `i` in [begin, end); area weighs each source pixel by it. */

/* The share of source position `i` that lies in [begin, end). */
static float
share_of(int64_t i, float begin, float end, float scale)
{
    float low = (float)i, next = (float)(i + 1);

    if (low < begin)
        return next > end ? scale : next - begin;
    return next > end ? end - low : 1.0F;
}

/* The weighted sum along one row of the source. */
static float
sum_row(const struct resample *resample, const float *row, int64_t x, int64_t channel, float scale)
{
    float begin = (float)x * scale, end = (float)(x + 1) * scale;
    int64_t first = (int64_t)floorf(begin), last = (int64_t)ceilf(end) - 1;
    int64_t limit = resample->from_width, channels = resample->channels;
    float sum =
        row[resample_bound(first, limit) * channels + channel] * share_of(first, begin, end, scale);

    for (int64_t i = first + 1; i < last; i++)
        sum += row[resample_bound(i, limit) * channels + channel];
    if (last > first)
        sum += row[resample_bound(last, limit) * channels + channel] *
               share_of(last, begin, end, scale);
    return sum;
}

void
resample_area(const struct resample *resample, struct resample_work *work, const float *from,
              float *to)
{
    float x_scale = (float)resample->from_width / (float)resample->to_width;
    float y_scale = (float)resample->from_height / (float)resample->to_height;
    float scale = (float)(1.0 / (double)(y_scale * x_scale));

    (void)work;
    for (int64_t y = 0; y < resample->to_height; y++) {
        float begin = (float)y * y_scale, end = (float)(y + 1) * y_scale;
        int64_t first = (int64_t)floorf(begin), after = (int64_t)ceilf(end);

        for (int64_t x = 0; x < resample->to_width; x++)
            for (int64_t c = 0; c < resample->channels; c++) {
                float sum = 0;

                for (int64_t i = first; i < after; i++) {
                    int64_t row = resample_bound(i, resample->from_height);

                    sum += sum_row(resample, from + row * resample->row_values, x, c, x_scale) *
                           share_of(i, begin, end, y_scale);
                }
                *to++ = sum * scale;
            }
    }
}

struct kernel {
    float radius;
    float (*weight)(float x, float radius); /* x is not negative */
};

static float
lanczos(float x, float radius)
{
    const float pi = 3.14159265359F;

    if (x > radius)
        return 0.0F;
    if (x <= 1e-3F)
        return 1.0F;
    return radius * sinf(pi * x) * sinf(pi * x / radius) / (pi * pi * x * x);
}

static float
gaussian(float x, float radius)
{
    float sigma = radius / 3.0F;

    if (x >= radius)
        return 0.0F;
    return (float)exp((double)(-x * x) / (2.0 * (double)sigma * (double)sigma));
}

static float
triangle(float x, float radius)
{
    (void)radius;
    return x < 1.0F ? 1.0F - x : 0.0F;
}

static float
keys_cubic(float x, float radius)
{
    (void)radius;
    if (x >= 2.0F)
        return 0.0F;
    if (x >= 1.0F)
        return ((-0.5F * x + 2.5F) * x - 4.0F) * x + 2.0F;
    return ((1.5F * x - 2.5F) * x) * x + 1.0F;
}

static float
mitchell_cubic(float x, float radius)
{
    (void)radius;
    if (x >= 2.0F)
        return 0.0F;
    if (x >= 1.0F)
        return (((-7.0F / 18.0F) * x + 2.0F) * x - 10.0F / 3.0F) * x + 16.0F / 9.0F;
    return (((7.0F / 6.0F) * x - 2.0F) * x) * x + 8.0F / 9.0F;
}

static struct kernel
kernel_of(enum resample_method method)
{
    switch (method) {
    case RESAMPLE_LANCZOS3:
        return (struct kernel){ 3.0F, lanczos };
    case RESAMPLE_LANCZOS5:
        return (struct kernel){ 5.0F, lanczos };
    case RESAMPLE_GAUSSIAN:
        return (struct kernel){ 1.5F, gaussian };
    case RESAMPLE_MITCHELLCUBIC:
        return (struct kernel){ 2.0F, mitchell_cubic };
    case RESAMPLE_BICUBIC:
        return (struct kernel){ 2.0F, keys_cubic };
    default:
        return (struct kernel){ 1.0F, triangle };
    }
}

/* For each target position where its run of the source begins, how long it is, and its weights.
 * Runs are as long as the longest, as TensorFlow's: a NaN that weighs nothing is a NaN. */
struct spans {
    int64_t *begin, *count;
    float *weights; /* `most` for each position */
    int64_t most;
};

/* Compute one target position's run and its weights, in the order and precision of
 * ComputeSpansCore. */
static void
set_span(struct spans *spans, const struct kernel *kernel, int64_t i, float scale,
         float kernel_scale, int64_t from)
{
    float at = ((float)i + 0.5F) * scale, reach = kernel->radius * kernel_scale, sum = 0;
    float one_over_scale = 1.0F / kernel_scale, *weights = spans->weights + i * spans->most;
    int64_t begin, end;

    memset(weights, 0, (size_t)spans->most * sizeof *weights);
    spans->begin[i] = 0;
    spans->count[i] = spans->most;
    if (at < 0 || at > (float)from)
        return;
    begin = resample_bound((int64_t)ceilf(at - reach - 0.5F), from);
    end = resample_bound((int64_t)floorf(at + reach - 0.5F), from) + 1;
    for (int64_t k = begin; k < end; k++) {
        float weight =
            kernel->weight(fabsf(((float)k + 0.5F - at) * one_over_scale), kernel->radius);

        sum += weight;
        weights[k - begin] = weight;
    }
    spans->begin[i] = begin;
    spans->count[i] = spans->most < from - begin ? spans->most : from - begin;
    sum = fabsf(sum) < 1000.0F * FLT_MIN ? 0.0F : 1.0F / sum;
    for (int64_t k = 0; k < end - begin; k++)
        weights[k] *= sum;
}

static struct spans
make_spans(const struct resample *resample, struct resample_work *work, unsigned room,
           unsigned weights_room, int64_t from, int64_t to)
{
    struct kernel kernel = kernel_of(resample->method);
    float scale = (float)(1.0 / (double)((float)to / (float)from));
    float kernel_scale = resample->antialias && scale > 1.0F ? scale : 1.0F;
    struct spans spans;

    spans.most = 2 * (int64_t)ceilf(kernel.radius * kernel_scale) + 1;
    spans.most = spans.most < from ? spans.most : from;
    spans.begin = resample_room(work, room, (size_t)to * 2 * sizeof *spans.begin);
    spans.count = spans.begin + to;
    spans.weights =
        resample_room(work, weights_room, (size_t)(to * spans.most) * sizeof *spans.weights);
    for (int64_t i = 0; i < to; i++)
        set_span(&spans, &kernel, i, scale, kernel_scale, from);
    return spans;
}

/* Rows first, then columns, in the order of TensorFlow's sums. */
void
resample_by_kernel(const struct resample *resample, struct resample_work *work, const float *from,
                   float *to)
{
    int64_t channels = resample->channels, width = resample->from_width * channels;
    struct spans xs =
        make_spans(resample, work, ROOM_X, ROOM_WEIGHTS, resample->from_width, resample->to_width);
    struct spans ys =
        make_spans(resample, work, ROOM_Y, ROOM_ROWS, resample->from_height, resample->to_height);
    float *row = resample_room(work, ROOM_MIDDLE, (size_t)width * sizeof *row);

    for (int64_t y = 0; y < resample->to_height; y++) {
        memset(row, 0, (size_t)width * sizeof *row);
        for (int64_t k = 0; k < ys.count[y]; k++) {
            const float *source = from + (ys.begin[y] + k) * resample->row_values;
            float weight = ys.weights[y * ys.most + k];

            for (int64_t i = 0; i < width; i++)
                row[i] += source[i] * weight;
        }
        for (int64_t x = 0; x < resample->to_width; x++, to += channels)
            for (int64_t c = 0; c < channels; c++) {
                float sum = 0;

                for (int64_t k = 0; k < xs.count[x]; k++)
                    sum += xs.weights[x * xs.most + k] * row[(xs.begin[x] + k) * channels + c];
                to[c] = sum;
            }
    }
}
