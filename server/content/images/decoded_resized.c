/* decoded_resized.c - decode and resize in one pass, row by row, so that no whole picture is in
 * memory. */
#include "content/images/decoded_resized.h"

#include "column/dims.h"
#include "content/images/resized.h"
#include "core/memory.h"

struct decoded_resized {
    const struct decoded *decoded;
    const struct resized *resized;
    uint32_t input, output; /* columns before the first stage and after the last */
    bool to_bytes;          /* a cast to uint8 follows */
};

/* Whether a decoder and the following stage of its column can be fused: only for plain bilinear
 * resizing of 8 bits, or of a part of the picture, to one size. */
static bool
fits(const struct decoded *decoded, const struct resized *resized,
     const struct column_spec *decoded_column)
{
    return decoded->options.dtype == TUNDISH_UINT8 && decoded->targets.count == 1 &&
           decoded_column->rank == 3 && decoded_column->shape[2] > 0 &&
           resized->targets.count == 1 && resized->method == RESAMPLE_BILINEAR &&
           !resized->antialias && !resized->keeps_dtype && !resized->copies &&
           !resized->channels_first && resized->has_one_size;
}

/* The state of one picture. */
struct pass {
    const struct decoded_resized *both;
    struct resample_work *work, *rooms;
    struct resample_rows *rows;
    uint8_t *to;
    struct frame *output;
    int64_t element;
};

static struct image_part
choose(const struct pass *pass, const struct picture_size *size)
{
    const struct images images = {
        .count = 1,
        .height = size->dims[0],
        .width = size->dims[1],
        .channels = size->dims[2],
    };
    struct image_part part = { .height = images.height, .width = images.width };

    pass->both->resized->choose_part(pass->both->resized, &images, pass->element, 0, pass->output,
                                     &part);
    return part;
}

static uint8_t *
begin(void *context, const struct picture_size *size, size_t bytes, struct picture_part *ret_part)
{
    struct pass *pass = context;
    const struct image_part part = choose(pass, size);
    const struct resample resample = {
        .method = RESAMPLE_BILINEAR,
        .from_height = part.height,
        .from_width = part.width,
        .to_height = part.to_height,
        .to_width = part.to_width,
        .channels = size->dims[2],
        .row_values = part.width * size->dims[2],
    };
    bool to_bytes = pass->both->to_bytes;

    /* Room of an earlier, larger picture serves again. */
    if (bytes > pass->rooms->room[0].capacity &&
        scratch_ask(pass->rooms->scratch, bytes) != TUNDISH_OK)
        return NULL;
    pass->rows =
        resample_rows_open(&resample, pass->work, to_bytes ? NULL : (float *)(void *)pass->to,
                           to_bytes ? pass->to : NULL);
    *ret_part = (struct picture_part){ part.top, part.left, part.height, part.width };
    return resample_room(pass->rooms, 0, bytes);
}

static void
take_row(void *context, const uint8_t *row)
{
    struct pass *pass = context;

    resample_rows_next(pass->rows, row);
}

static tundish_status
decoded_resized_apply(const void *state, const struct frame *input, struct frame *output)
{
    const struct decoded_resized *both = state;
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
        .output = output,
    };
    const struct picture_rows rows = { .begin = begin, .row = take_row, .context = &pass };

    column_set_scalars(column, output->count * values, pass.to);
    column->count = output->count;
    column->level_count = 3;
    for (int k = 0; k < 3; k++)
        column->levels[k].uniform = spec->shape[k];
    for (int64_t i = 0; i < output->count; i++, pass.to += bytes) {
        struct picture_fault fault;

        pass.element = i;
        if (!picture_read_rows(&both->decoded->options, files[i], output->scratch, &rows, &fault))
            frame_reject(output, i, "%s", fault.text);
    }
    return TUNDISH_OK;
}

static void
decoded_resized_close(void *state)
{
    (void)state;
}

/* The plan inserts this stage, so it is never opened. */
static const struct content_ops content_decoded_resized = {
    .name = "decoded_resized",
    .state_bytes = sizeof(struct decoded_resized),
    .apply = decoded_resized_apply,
    .close = decoded_resized_close,
};

/* The only column that a stage writes; -1: it writes several. */
static int32_t
written_column(const struct content_step *step)
{
    int32_t written = -1;

    for (uint32_t i = 0; i < step->output->count; i++) {
        if (step->output->columns[i].passed_from >= 0)
            continue;
        if (written >= 0)
            return -1;
        written = (int32_t)i;
    }
    return written;
}

/* Whether the stage rewrites this column in place, and nothing else. */
static bool
is_in_place(const struct content_step *step, int32_t column)
{
    return step->follows && written_column(step) == column &&
           step->output->count == step->input->count;
}

tundish_status
decoded_look_ahead(void *state, const struct content_step *steps, uint32_t count,
                   struct spec_errors *errors, struct content_fused *ret_fused)
{
    const struct decoded *decoded = state;
    int32_t column = written_column(&steps[0]);
    struct decoded_resized *both;
    bool to_bytes;

    (void)errors;
    if (column < 0 || count < 2 || steps[1].ops->apply != resized_apply_state ||
        !is_in_place(&steps[1], column) ||
        !fits(decoded, steps[1].state, &steps[0].output->columns[column]))
        return TUNDISH_OK;
    to_bytes = count > 2 && steps[2].ops->converts && is_in_place(&steps[2], column) &&
               steps[2].output->columns[column].dtype == TUNDISH_UINT8;
    both = tnd_zalloc(1, sizeof *both);
    *both = (struct decoded_resized){
        .decoded = decoded,
        .resized = steps[1].state,
        .input = decoded->targets.list[0].input,
        .output = (uint32_t)column,
        .to_bytes = to_bytes,
    };
    *ret_fused = (struct content_fused){ to_bytes ? 3 : 2, &content_decoded_resized, both };
    return TUNDISH_OK;
}
