/* sample_output.c - files that the generators write. */
#include "sample_output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/crc32c.h"

#define BUFFER_BYTES (1 << 20)

void
fail(const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    fprintf(stderr, "%s: ", program_invocation_short_name);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

static void __attribute__((format(printf, 3, 0)))
format_path(char *path, size_t capacity, const char *format, va_list arguments)
{
    int length = vsnprintf(path, capacity, format, arguments);

    if (length < 0 || (size_t)length >= capacity)
        fail("the path %.100s... is too long", path);
}

void
output_open(struct output *output, const char *path_format, ...)
{
    va_list arguments;

    va_start(arguments, path_format);
    format_path(output->path, sizeof(output->path), path_format, arguments);
    va_end(arguments);
    output->file = fopen(output->path, "w");
    if (output->file == NULL)
        fail("%s: %s", output->path, strerror(errno));
    setvbuf(output->file, NULL, _IOFBF, BUFFER_BYTES);
}

void
output_close(struct output *output)
{
    bool failed = ferror(output->file) != 0;

    if (fclose(output->file) != 0 || failed)
        fail("%s: %s", output->path, strerror(errno));
}

static void
put_little_endian(uint8_t *bytes, uint64_t value, unsigned byte_count)
{
    for (unsigned i = 0; i < byte_count; i++)
        bytes[i] = (uint8_t)(value >> (8 * i));
}

void
output_record(struct output *output, const void *data, size_t bytes)
{
    uint8_t header[12], footer[4];

    put_little_endian(header, bytes, 8);
    put_little_endian(header + 8, tnd_crc32c_mask(tnd_crc32c(0, header, 8)), 4);
    put_little_endian(footer, tnd_crc32c_mask(tnd_crc32c(0, data, bytes)), 4);
    fwrite(header, 1, sizeof(header), output->file);
    fwrite(data, 1, bytes, output->file);
    fwrite(footer, 1, sizeof(footer), output->file);
}

void
make_folder(const char *path_format, ...)
{
    char path[4096];
    va_list arguments;

    va_start(arguments, path_format);
    format_path(path, sizeof(path), path_format, arguments);
    va_end(arguments);
    if (mkdir(path, 0777) != 0 && errno != EEXIST)
        fail("%s: %s", path, strerror(errno));
}

uint64_t
parse_number(const char *name, const char *text, uint64_t low, uint64_t high)
{
    char *end;
    unsigned long long value;

    errno = 0;
    value = strtoull(text, &end, 10);
    if (errno != 0 || end == text || *end != '\0' || *text == '-' || value < low || value > high)
        fail("%s must be a number from %" PRIu64 " to %" PRIu64 ", not '%s'", name, low, high,
             text);
    return value;
}
