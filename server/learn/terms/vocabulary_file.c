/* vocabulary_file.c - writes terms to a file, one by one. */
#include "learn/terms/vocabulary_file.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>

#include "core/crc32c.h"
#include "core/memory.h"
#include "core/must.h"

/* 16 added to zlib's window bits asks for a gzip header. */
enum { PACKED_BYTES = 1 << 16, GZIP_WINDOW = 15 + 16, NUMBER_BYTES = 40 };

struct vocabulary_file {
    struct artifact artifact;
    struct learned_form form;
    char *name;
    bool is_packing;
    z_stream stream;
    uint8_t packed[PACKED_BYTES];
};

tundish_status
vocabulary_file_begin(struct artifact_folder *folder, const char *name,
                      const struct learned_form *form, struct vocabulary_file **ret_file)
{
    struct vocabulary_file *file = tnd_zalloc(1, sizeof *file);
    tundish_status status = artifact_begin(folder, name, form->suffix, &file->artifact);

    file->form = *form;
    file->name = tnd_strdup(name);
    if (status == TUNDISH_OK && form->is_records) {
        must(deflateInit2(&file->stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, GZIP_WINDOW, 8,
                          Z_DEFAULT_STRATEGY) == Z_OK);
        file->is_packing = true;
    }
    if (status != TUNDISH_OK)
        vocabulary_file_close(file);
    else
        *ret_file = file;
    return status;
}

void
vocabulary_file_close(struct vocabulary_file *file)
{
    if (file == NULL)
        return;
    if (file->is_packing)
        deflateEnd(&file->stream);
    artifact_cancel(&file->artifact);
    free(file->name);
    free(file);
}

/* Write the shortest decimal that reads back as the same value, laid out as Python's repr:
 * tf.Transform writes frequencies with str(). */
static void
write_float(double value, char text[NUMBER_BYTES])
{
    char digits[NUMBER_BYTES];
    int precision = 0, exponent;

    if (isnan(value) || isinf(value)) {
        snprintf(text, NUMBER_BYTES, "%s", isnan(value) ? "nan" : value < 0 ? "-inf" : "inf");
        return;
    }
    do
        snprintf(digits, sizeof digits, "%.*e", precision, value);
    while (strtod(digits, NULL) != value && ++precision < 17);
    exponent = atoi(strchr(digits, 'e') + 1);
    if (exponent < -4 || exponent >= 16)
        snprintf(text, NUMBER_BYTES, "%s", digits);
    else
        snprintf(text, NUMBER_BYTES, "%.*f", precision > exponent ? precision - exponent : 1,
                 value);
}

static void
write_frequency(double frequency, bool is_whole, char text[NUMBER_BYTES])
{
    if (is_whole)
        snprintf(text, NUMBER_BYTES, "%.0f", frequency);
    else
        write_float(frequency, text);
}

/* Output goes through a fixed buffer, so the loop ends when zlib leaves room in it. */
static void
pack(struct vocabulary_file *file, const void *data, size_t bytes, int flush)
{
    z_stream *stream = &file->stream;

    stream->next_in = (z_const Bytef *)(uintptr_t)data;
    stream->avail_in = (uInt)bytes;
    do {
        stream->next_out = file->packed;
        stream->avail_out = PACKED_BYTES;
        must(deflate(stream, flush) != Z_STREAM_ERROR);
        fwrite(file->packed, 1, PACKED_BYTES - stream->avail_out, file->artifact.file);
    } while (stream->avail_out == 0);
}

/* A TFRecord, compressed as part of one gzip stream. */
static void
put_record(struct vocabulary_file *file, const char *before, struct byte_view term)
{
    uint64_t length = strlen(before) + term.size;
    uint32_t checksum = tnd_crc32c_mask(tnd_crc32c(0, &length, sizeof length));

    pack(file, &length, sizeof length, Z_NO_FLUSH);
    pack(file, &checksum, sizeof checksum, Z_NO_FLUSH);
    pack(file, before, strlen(before), Z_NO_FLUSH);
    pack(file, term.data, term.size, Z_NO_FLUSH);
    checksum = tnd_crc32c(0, before, strlen(before));
    checksum = tnd_crc32c_mask(tnd_crc32c(checksum, term.data, term.size));
    pack(file, &checksum, sizeof checksum, Z_NO_FLUSH);
}

tundish_status
vocabulary_file_put(struct vocabulary_file *file, struct byte_view term, double frequency,
                    bool is_whole)
{
    char before[NUMBER_BYTES + 1] = "";

    if (file->form.has_frequency) {
        write_frequency(frequency, is_whole, before);
        strcat(before, " ");
    }
    if (file->form.is_records) {
        if (term.size > UINT32_MAX - sizeof before)
            return tnd_fail(TUNDISH_E_DATA, "a term of '%s' has %llu bytes", file->name,
                            (unsigned long long)term.size);
        put_record(file, before, term);
        return TUNDISH_OK;
    }
    /* A reader would take the term for two. */
    if (term.size > 0 && memchr(term.data, '\n', term.size) != NULL)
        return tnd_fail(TUNDISH_E_DATA,
                        "a term of '%s' contains a line end, which a vocabulary file cannot store: "
                        "'%.*s'; remove line ends with regex_replace",
                        file->name, (int)(term.size < 60 ? term.size : 60),
                        (const char *)term.data);
    fputs(before, file->artifact.file);
    fwrite(term.data, 1, term.size, file->artifact.file);
    fputc('\n', file->artifact.file);
    return TUNDISH_OK;
}

tundish_status
vocabulary_file_publish(struct vocabulary_file *file)
{
    if (file->is_packing)
        pack(file, NULL, 0, Z_FINISH);
    return artifact_publish(&file->artifact);
}
