/* picture_gif.c - GIF by giflib. Frames are drawn over each other as TensorFlow does. */
#include <stdlib.h>
#include <string.h>

#include "content/images/pixel_format.h"

#ifdef PICTURE_HAS_GIF

#include <gif_lib.h>

#include "core/memory.h"

/* LZW expands a byte to at most UNPACKED_MAX. */
#define UNPACKED_MAX 4096

struct gif {
    struct byte_view left; /* of the file */
    GifFileType *file;
    int64_t frames, height, width; /* of what comes out */
};

static int
take_bytes(GifFileType *file, GifByteType *to, int wanted)
{
    struct byte_view *left = file->UserData;
    size_t bytes = (size_t)wanted < left->size ? (size_t)wanted : left->size;

    memcpy(to, left->data, bytes);
    left->data += bytes;
    left->size -= bytes;
    return (int)bytes;
}

static const char *
reason(int code)
{
    const char *text = GifErrorString(code);

    return text != NULL ? text : "it has none";
}

static void
gif_close(struct gif *gif)
{
    if (gif->file != NULL)
        DGifCloseFile(gif->file, NULL);
    gif->file = NULL;
}

/* Read a frame's pixels. The size is checked against the file's before memory is allocated, since
 * DGifSlurp would believe the header. Interlaced rows come in four passes. */
static bool
read_raster(struct gif *gif, SavedImage *image)
{
    static const int offsets[] = { 0, 4, 2, 1 }, steps[] = { 8, 8, 4, 2 };
    int64_t height = image->ImageDesc.Height, width = image->ImageDesc.Width;

    if (height <= 0 || width <= 0 || (uint64_t)(height * width) / UNPACKED_MAX > gif->left.size)
        return false;
    image->RasterBits = tnd_alloc((size_t)(height * width));
    if (!image->ImageDesc.Interlace)
        return DGifGetLine(gif->file, image->RasterBits, (int)(height * width)) == GIF_OK;
    for (int pass = 0; pass < 4; pass++)
        for (int64_t y = offsets[pass]; y < height; y += steps[pass])
            if (DGifGetLine(gif->file, image->RasterBits + y * width, (int)width) != GIF_OK)
                return false;
    return true;
}

/* Read a frame, with the extensions before it. False: the file ends within it. */
static bool
read_frame(struct gif *gif)
{
    GifFileType *file = gif->file;
    SavedImage *image;

    if (DGifGetImageDesc(file) != GIF_OK)
        return false;
    image = &file->SavedImages[file->ImageCount - 1];
    if (!read_raster(gif, image))
        return false;
    image->ExtensionBlocks = file->ExtensionBlocks;
    image->ExtensionBlockCount = file->ExtensionBlockCount;
    file->ExtensionBlocks = NULL;
    file->ExtensionBlockCount = 0;
    gif->frames++;
    return true;
}

static bool
read_extension(GifFileType *file)
{
    GifByteType *data = NULL;
    int function = 0;

    if (DGifGetExtension(file, &function, &data) != GIF_OK)
        return false;
    while (data != NULL) {
        if (GifAddExtensionBlock(&file->ExtensionBlockCount, &file->ExtensionBlocks, function,
                                 data[0], &data[1]) != GIF_OK ||
            DGifGetExtensionNext(file, &data) != GIF_OK)
            return false;
        function = CONTINUE_EXT_FUNC_CODE;
    }
    return true;
}

/* Read frames up to the end of the file. An incomplete last frame does not count, as in
 * TensorFlow. */
static void
read_frames(struct gif *gif)
{
    GifRecordType record;
    bool ok = true;

    while (ok && DGifGetRecordType(gif->file, &record) == GIF_OK &&
           record != TERMINATE_RECORD_TYPE) {
        if (record == IMAGE_DESC_RECORD_TYPE)
            ok = read_frame(gif);
        else if (record == EXTENSION_RECORD_TYPE)
            ok = read_extension(gif->file);
    }
}

static bool
slurp(struct gif *gif, const struct picture_options *options, struct picture_fault *ret_fault)
{
    int code = 0;

    gif->file = DGifOpen(&gif->left, take_bytes, &code);
    if (gif->file == NULL)
        return picture_fail(options, ret_fault, "the GIF cannot be opened: %s", reason(code));
    read_frames(gif);
    if (gif->frames == 0)
        return picture_fail(options, ret_fault, "the GIF has no complete image: %s",
                            reason(gif->file->Error));
    return true;
}

static bool
gif_open(struct gif *gif, const struct picture_options *options, struct byte_view bytes,
         struct picture_fault *ret_fault)
{
    *gif = (struct gif){ .left = bytes };
    if (options->channels != 0 && options->channels != 3)
        return picture_fail(options, ret_fault, "a GIF has 3 channels, not %d", options->channels);
    if (!slurp(gif, options, ret_fault))
        return false;
    for (int k = 0; k < gif->frames; k++) {
        const GifImageDesc *image = &gif->file->SavedImages[k].ImageDesc;

        gif->height = image->Height > gif->height ? image->Height : gif->height;
        gif->width = image->Width > gif->width ? image->Width : gif->width;
    }
    if (!options->takes_everything && gif->frames > 1)
        return picture_fail(options, ret_fault,
                            "the GIF has %lld frames; use decode_image for animations",
                            (long long)gif->frames);
    if (!options->expand_animations)
        gif->frames = 1;
    return true;
}

static bool
draw_pixel(const ColorMapObject *colours, int index, uint8_t *to)
{
    if (index >= colours->ColorCount)
        return false;
    to[0] = colours->Colors[index].Red;
    to[1] = colours->Colors[index].Green;
    to[2] = colours->Colors[index].Blue;
    return true;
}

/* Draw a frame over the one before, which `to` contains. The frame is clipped to the canvas. */
static bool
draw_frame(const struct gif *gif, int k, uint8_t *to)
{
    const SavedImage *saved = &gif->file->SavedImages[k];
    const GifImageDesc *image = &saved->ImageDesc;
    const ColorMapObject *colours =
        image->ColorMap != NULL ? image->ColorMap : gif->file->SColorMap;
    int64_t right = image->Left + image->Width, bottom = image->Top + image->Height;
    GraphicsControlBlock control = { .TransparentColor = NO_TRANSPARENT_COLOR };

    DGifSavedExtensionToGCB(gif->file, k, &control);
    if (colours == NULL || saved->RasterBits == NULL)
        return false;
    right = right < gif->width ? right : gif->width;
    bottom = bottom < gif->height ? bottom : gif->height;
    for (int64_t y = image->Top; y < bottom; y++) {
        const GifByteType *row = saved->RasterBits + (y - image->Top) * image->Width;
        uint8_t *line = to + y * gif->width * 3;

        for (int64_t x = image->Left; x < right; x++) {
            int index = row[x - image->Left];

            if (index != control.TransparentColor && !draw_pixel(colours, index, line + x * 3))
                return false;
        }
    }
    return true;
}

static bool
gif_measure(const struct picture_options *options, struct byte_view bytes,
            struct picture_size *ret_size, struct picture_fault *ret_fault)
{
    struct gif gif;
    bool ok = gif_open(&gif, options, bytes, ret_fault);

    if (ok) {
        int64_t dims[4] = { gif.frames, gif.height, gif.width, 3 };
        bool expands = options->expand_animations;

        ok = picture_set_size(options, expands ? 4 : 3, expands ? dims : dims + 1, ret_size,
                              ret_fault);
    }
    gif_close(&gif);
    return ok;
}

static bool
gif_read(const struct picture_options *options, struct byte_view bytes,
         const struct picture_size *size, struct scratch *scratch, void *values,
         struct picture_fault *ret_fault)
{
    struct gif gif;
    bool ok = gif_open(&gif, options, bytes, ret_fault);
    size_t frame_bytes = (size_t)(gif.height * gif.width * 3);
    uint8_t *to = values;

    (void)size;
    (void)scratch;
    for (int k = 0; ok && k < gif.frames; k++, to += frame_bytes) {
        if (k == 0)
            memset(to, 0, frame_bytes);
        else
            memcpy(to, to - frame_bytes, frame_bytes);
        ok = draw_frame(&gif, k, to);
        if (!ok)
            picture_fail(options, ret_fault,
                         "frame %d of the GIF uses a colour that is not in its palette", k);
    }
    gif_close(&gif);
    return ok;
}

#endif

const struct picture_format picture_gif = {
    .name = "GIF",
    .library = "giflib",
#ifdef PICTURE_HAS_GIF
    .measure = gif_measure,
    .read = gif_read,
#endif
};
