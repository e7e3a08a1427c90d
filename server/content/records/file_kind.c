/* file_kind.c - see file_kind.h. */
#include "content/records/file_kind.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/bytes.h"

struct magic {
    const char *bytes;
    uint16_t size, at;
    const char *kind;
};

#define MAGIC(at, text, kind)                                                                      \
    {                                                                                              \
        text, sizeof(text) - 1, at, kind                                                           \
    }

/* The first five are those of file_kind_is_packed. */
static const struct magic magics[] = {
    MAGIC(0, "\x1f\x8b", "gzip data"),
    MAGIC(4, "1AY&SY", "bzip2 data"),
    MAGIC(0,
          "\xfd"
          "7zXZ\0",
          "xz data"),
    MAGIC(0, "\x28\xb5\x2f\xfd", "zstd data"),
    MAGIC(0, "\x04\x22\x4d\x18", "LZ4 data"),
    MAGIC(0, "\xff\xd8\xff", "a JPEG image"),
    MAGIC(0, "\x89PNG\r\n\x1a\n", "a PNG image"),
    MAGIC(0, "GIF8", "a GIF image"),
    MAGIC(8, "WEBP", "a WebP image"),
    MAGIC(0, "II*\0", "a TIFF image"),
    MAGIC(0, "MM\0*", "a TIFF image"),
    MAGIC(0, "II+\0", "a TIFF image"),
    MAGIC(0, "MM\0+", "a TIFF image"),
    MAGIC(4, "ftypavif", "an AVIF image"),
    MAGIC(4, "ftypavis", "an AVIF image"),
    MAGIC(4, "ftyphei", "a HEIC image"),
    MAGIC(4, "ftyphev", "a HEIC image"),
    MAGIC(4, "ftypmif1", "a HEIC image"),
    MAGIC(4, "ftypmsf1", "a HEIC image"),
    MAGIC(0, "\0\0\1\0", "an ICO image"),
    MAGIC(0, "\0\0\0\x0cjP  ", "a JPEG 2000 image"),
    MAGIC(0, "\xff\x4f\xff\x51", "a JPEG 2000 image"),
    MAGIC(0, "\0\0\0\x0cJXL ", "a JPEG XL image"),
    MAGIC(0, "\xff\x0a", "a JPEG XL image"),
    MAGIC(0, "8BPS", "a Photoshop image"),
    MAGIC(4, "ftyp", "an MP4 file"),
    MAGIC(0, "RF64", "an RF64 sound (a WAV file of more than 4 GiB)"),
    MAGIC(0, "RIFX", "a RIFX sound (a WAV file, highest byte first)"),
    MAGIC(8, "WAVE", "a WAV sound"),
    MAGIC(0, "fLaC", "a FLAC sound"),
    MAGIC(0, "OggS", "an Ogg sound"),
    MAGIC(0, "ID3", "an MP3 sound"),
    MAGIC(0, "\xff\xfb", "an MP3 sound"),
    MAGIC(8, "AIFF", "an AIFF sound"),
    MAGIC(0, "PAR1", "a Parquet file"),
    MAGIC(0, "ORC", "an ORC file"),
    MAGIC(0, "ARROW1", "an Arrow file (Feather)"),
    MAGIC(0, "FEA1", "a Feather file"),
    MAGIC(0, "Obj\1", "an Avro file"),
    MAGIC(0, "\x93NUMPY", "an npy file"),
    MAGIC(0, "\x89HDF\r\n\x1a\n", "an HDF5 file"),
    MAGIC(0, "PK\3\4", "a zip archive"),
    MAGIC(0, "7z\xbc\xaf\x27\x1c", "a 7z archive"),
    MAGIC(257, "ustar", "a tar archive"),
    MAGIC(0, "%PDF", "a PDF"),
    MAGIC(0, "version https://git-lfs.github.com/spec/",
          "a Git LFS pointer (git lfs pull fetches the file itself)"),
};

enum { PACKED = 5 };

static bool
is_magic(const struct magic *magic, const uint8_t *begin, size_t bytes)
{
    return bytes >= (size_t)magic->at + magic->size &&
           memcmp(begin + magic->at, magic->bytes, magic->size) == 0;
}

/* Servers answer with pages and documents where a file was asked for. */
static const char *
markup_kind(const uint8_t *begin, size_t bytes)
{
    static const struct {
        const char *tag, *kind;
    } tags[] = { { "<!doctype html", "an HTML page" }, { "<html", "an HTML page" },
                 { "<head", "an HTML page" },          { "<svg", "an SVG image" },
                 { "<?xml", "an XML document" },       { "<error>", "an XML document" } };

    if (bytes >= 3 && memcmp(begin, "\xef\xbb\xbf", 3) == 0) {
        begin += 3;
        bytes -= 3;
    }
    while (bytes > 0 && (*begin == ' ' || (*begin >= '\t' && *begin <= '\r'))) {
        begin++;
        bytes--;
    }
    for (size_t i = 0; i < sizeof tags / sizeof *tags; i++)
        if (bytes >= strlen(tags[i].tag) &&
            strncasecmp((const char *)begin, tags[i].tag, strlen(tags[i].tag)) == 0)
            return tags[i].kind;
    return NULL;
}

/* A mark that anything may begin with; the length of a schema follows it. */
static bool
is_arrow_stream(const uint8_t *begin, size_t bytes)
{
    uint32_t length = bytes < 8 ? 0 : load_u32(begin + 4);

    return length > 0 && length % 8 == 0 && length < 1 << 24 &&
           memcmp(begin, "\xff\xff\xff\xff", 4) == 0;
}

const char *
file_kind(const uint8_t *begin, size_t bytes)
{
    for (size_t i = 0; i < sizeof magics / sizeof *magics; i++)
        if (is_magic(&magics[i], begin, bytes))
            return magics[i].kind;
    return is_arrow_stream(begin, bytes) ? "an Arrow stream" : markup_kind(begin, bytes);
}

bool
file_kind_is_packed(const uint8_t *begin, size_t bytes)
{
    for (int i = 0; i < PACKED; i++)
        if (is_magic(&magics[i], begin, bytes))
            return true;
    return false;
}

const char *
file_kind_note(const uint8_t *begin, size_t bytes)
{
    static _Thread_local char note[96];
    const char *kind = file_kind(begin, bytes);

    snprintf(note, sizeof note, "%s%s", kind == NULL ? "" : "; the bytes are ",
             kind == NULL ? "" : kind);
    return note;
}
