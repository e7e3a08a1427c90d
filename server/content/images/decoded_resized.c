/* decoded_resized.c - pictures, one after the other, from file to their last size. */
#include "content/images/decoded_resized.h"

#include "column/dims.h"

bool
decoded_resized_fits(const struct decoded *decoded, const struct resized *resized,
                     const struct column_spec *decoded_column)
{
    return decoded->options.dtype == TUNDISH_UINT8 && decoded->targets.count == 1 &&
           decoded_column->rank == 3 && decoded_column->shape[2] > 0 &&
           resized->targets.count == 1 && resized->method == RESAMPLE_BILINEAR &&
           !resized->antialias && !resized->keeps_dtype && !resized->copies &&
           !resized->channels_first && resized->is_whole;
}

/* One picture on its way. */
struct pass {
    const struct decoded_resized *both;
    struct resample_work *work, *rooms;
    struct resample_rows *rows;
    uint8_t *to;
};

static uint8_t *
begin(void *context, const struct picture_size *size, size_t bytes)
{
    struct pass *pass = context;
    const struct resample resample = {
        .method = RESAMPLE_BILINEAR,
        .from_height = size->dims[0],
        .from_width = size->dims[1],
        .to_height = pass->both->resized->height,
        .to_width = pass->both->resized->width,
        .channels = size->dims[2],
        .row_values = size->dims[1] * size->dims[2],
    };
    bool to_bytes = pass->both->to_bytes;

    /* What a larger picture leaves serves smaller ones. */
    if (bytes > pass->rooms->room[0].capacity &&
        scratch_ask(pass->rooms->scratch, bytes) != TUNDISH_OK)
        return NULL;
    pass->rows =
        resample_rows_open(&resample, pass->work, to_bytes ? NULL : (float *)(void *)pass->to,
                           to_bytes ? pass->to : NULL);
    return resample_room(pass->rooms, 0, bytes);
}

static void
take_row(void *context, const uint8_t *row)
{
    struct pass *pass = context;

    resample_rows_next(pass->rows, row);
}

void
decoded_resized_apply(const struct decoded_resized *both, const struct frame *input,
                      struct frame *output)
{
    const struct byte_view *files = input->columns[both->input].values;
    const struct column_spec *spec = &output->schema->columns[both->output];
    struct column *column = &output->columns[both->output];
    int64_t values = column_spec_values(spec);
    size_t bytes = (size_t)values * tnd_dtype_bytes(spec->dtype);
    struct resample_work work = { .scratch = output->scratch };
    struct resample_work rooms = { .scratch = output->scratch };
    struct pass pass = {
        .both = both,
        .work = &work,
        .rooms = &rooms,
        .to = frame_values(output, both->output, (size_t)output->count * bytes),
    };
    const struct picture_rows rows = { .begin = begin, .row = take_row, .context = &pass };

    column_set_scalars(column, output->count * values, pass.to);
    column->count = output->count;
    column->level_count = 3;
    for (int k = 0; k < 3; k++)
        column->levels[k].uniform = spec->shape[k];
    for (int64_t i = 0; i < output->count; i++, pass.to += bytes) {
        struct picture_fault fault;

        if (!picture_read_rows(&both->decoded->options, files[i], output->scratch, &rows, &fault))
            frame_reject(output, i, "%s", fault.text);
    }
}
