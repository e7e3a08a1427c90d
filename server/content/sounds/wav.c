/* wav.c - read RIFF chunks, and check every length against the file. */
#include "content/sounds/wav.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "content/records/file_kind.h"

struct cursor {
    struct byte_view bytes;
    size_t at;
    char *fault;
};

static bool
bad(struct cursor *cursor, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(cursor->fault, 160, format, arguments);
    va_end(arguments);
    return false;
}

/* Do as many bytes follow? Comparing with the bytes left cannot overflow, unlike adding to the
 * position. */
static bool
has(struct cursor *cursor, uint64_t bytes)
{
    return bytes <= cursor->bytes.size - cursor->at ||
           bad(cursor, "the WAV file is truncated at byte %zu", cursor->at);
}

static bool
take(struct cursor *cursor, size_t bytes, uint32_t *ret_value)
{
    uint32_t value = 0;

    if (!has(cursor, bytes))
        return false;
    for (size_t i = bytes; i-- > 0;)
        value = value << 8 | cursor->bytes.data[cursor->at + i];
    cursor->at += bytes;
    *ret_value = value;
    return true;
}

static bool
skip(struct cursor *cursor, uint64_t bytes)
{
    if (!has(cursor, bytes))
        return false;
    cursor->at += bytes;
    return true;
}

/* A chunk's name of four letters, as a number. */
static uint32_t
word(const char *letters)
{
    const uint8_t *bytes = (const uint8_t *)letters;

    return (uint32_t)bytes[3] << 24 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[1] << 8 | bytes[0];
}

/* Whether a chunk may come before the format: padding, and what broadcasters write. */
static bool
may_precede_format(uint32_t id)
{
    static const char *const ids[] = { "JUNK", "bext", "iXML", "qlty",
                                       "mext", "levl", "link", "axml" };

    for (size_t i = 0; i < sizeof ids / sizeof *ids; i++)
        if (id == word(ids[i]))
            return true;
    return false;
}

/* Move to the format chunk. */
static bool
find_format(struct cursor *cursor, uint32_t *ret_size)
{
    uint32_t id, size;

    if (!take(cursor, 4, &id) || id != word("RIFF") || !skip(cursor, 4) || !take(cursor, 4, &id) ||
        id != word("WAVE"))
        return bad(cursor, "the bytes are not a WAV file: RIFF and WAVE are missing%s",
                   file_kind_note(cursor->bytes.data, cursor->bytes.size));
    if (!take(cursor, 4, &id) || !take(cursor, 4, &size))
        return false;
    while (id != word("fmt ")) {
        if (!may_precede_format(id))
            return bad(cursor, "an unexpected chunk precedes the WAV's format");
        if (!skip(cursor, size) || !take(cursor, 4, &id) || !take(cursor, 4, &size))
            return false;
    }
    *ret_size = size;
    return true;
}

/* Read the format: only 16-bit PCM, as TensorFlow's wav_io decodes it. */
static bool
read_format(struct cursor *cursor, struct wav *wav)
{
    uint32_t size = 0, kind, channels, per_second, per_sample, bits;

    if (!find_format(cursor, &size))
        return false;
    if (size != 16 && size != 18)
        return bad(cursor, "the WAV's format chunk has %u bytes, not 16 or 18", size);
    if (!take(cursor, 2, &kind) || !take(cursor, 2, &channels) || !take(cursor, 4, &wav->rate) ||
        !take(cursor, 4, &per_second) || !take(cursor, 2, &per_sample) || !take(cursor, 2, &bits))
        return false;
    if (kind != 1)
        return bad(cursor, "the WAV's format is %u, not 1 (PCM)", kind);
    if (channels < 1)
        return bad(cursor, "the WAV has no channels");
    if (bits != 16)
        return bad(cursor, "the WAV has %u bits a value, not 16", bits);
    if (per_sample != channels * 2 || per_second != (uint64_t)per_sample * wav->rate)
        return bad(cursor, "the WAV's header contradicts itself: %u bytes a sample, %u a second",
                   per_sample, per_second);
    wav->channels = channels;
    return size == 16 || skip(cursor, 2);
}

/* Find the only data chunk. Other chunks are skipped. */
static bool
find_data(struct cursor *cursor, struct wav *wav)
{
    while (cursor->at < cursor->bytes.size) {
        uint32_t id, size;

        if (!take(cursor, 4, &id) || !take(cursor, 4, &size))
            return false;
        /* A size that would be negative as int32 is refused, as in wav_io. */
        if (size > INT32_MAX)
            return bad(cursor, "a chunk of the WAV says it has %u bytes", size);
        if (id != word("data")) { /* the last chunk may be cut short */
            cursor->at =
                size < cursor->bytes.size - cursor->at ? cursor->at + size : cursor->bytes.size;
            continue;
        }
        if (wav->data != NULL)
            return bad(cursor, "the WAV has more than one data chunk");
        wav->samples = size / (wav->channels * 2);
        wav->data = cursor->bytes.data + cursor->at;
        if (!skip(cursor, (uint64_t)(wav->samples * wav->channels * 2)))
            return false;
    }
    return wav->data != NULL || bad(cursor, "the WAV has no data chunk");
}

bool
wav_open(struct byte_view bytes, struct wav *ret_wav, char ret_fault[160])
{
    struct cursor cursor = { .bytes = bytes, .fault = ret_fault };
    struct wav wav = { 0 };

    if (!read_format(&cursor, &wav) || !find_data(&cursor, &wav))
        return false;
    *ret_wav = wav;
    return true;
}

float
wav_value(const struct wav *wav, int64_t sample, int64_t channel)
{
    const uint8_t *at = wav->data + (sample * wav->channels + channel) * 2;

    return (float)(int16_t)(uint16_t)(at[0] | at[1] << 8) * (1.0F / 32768.0F);
}
