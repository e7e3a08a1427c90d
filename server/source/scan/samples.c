/* samples.c - see samples.h. */
#include "source/scan/samples.h"

#include "core/hash_farm.h"

/* WebDataset ignores members with such names as __index__: they describe the archive. */
static bool
is_about_archive(struct byte_view name)
{
    return name.size >= 4 && memchr(name.data, '/', name.size) == NULL &&
           memcmp(name.data, "__", 2) == 0 && memcmp(name.data + name.size - 2, "__", 2) == 0;
}

/* "d/.txt" is column "txt" of sample "d/", as in WebDataset, unless the folder's name has a dot.
 * Files that file managers and version control leave in folders are not data. */
static bool
is_in_plain_folder(struct byte_view name, const uint8_t *base)
{
    static const char *const left_behind[] = { "._", ".DS_Store", ".git" };
    size_t bytes = (size_t)(name.data + name.size - base);
    const uint8_t *at = base - 1;

    if (base == name.data)
        return false;
    for (size_t i = 0; i < sizeof left_behind / sizeof *left_behind; i++)
        if (bytes >= strlen(left_behind[i]) &&
            memcmp(base, left_behind[i], strlen(left_behind[i])) == 0)
            return false;
    while (at > name.data && at[-1] != '/')
        if (*--at == '.')
            return false;
    return true;
}

bool
sample_name(const struct tar_member *member, struct byte_view *ret_key,
            struct byte_view *ret_extension)
{
    struct byte_view name = member->name;
    const uint8_t *slash, *base, *dot;

    if ((!member->is_file && !member->is_link) || name.size == 0 || is_about_archive(name))
        return false;
    /* The key ends at the first dot after the last slash, so "a/b.seg.png" is column "seg.png" of
     * sample "a/b", as in WebDataset. */
    slash = memrchr(name.data, '/', name.size);
    base = slash == NULL ? name.data : slash + 1;
    dot = memchr(base, '.', (size_t)(name.data + name.size - base));
    if (dot == NULL || (dot == base && !is_in_plain_folder(name, base)))
        return false;
    *ret_key = (struct byte_view){ name.data, (uint64_t)(dot - name.data) };
    *ret_extension = (struct byte_view){ dot + 1, (uint64_t)(name.data + name.size - (dot + 1)) };
    return true;
}

/* Extensions are ASCII, and the locale must not matter. */
static uint8_t
lower(uint8_t byte)
{
    return byte >= 'A' && byte <= 'Z' ? (uint8_t)(byte + 'a' - 'A') : byte;
}

static bool
is_same(struct byte_view a, struct byte_view b)
{
    if (a.size != b.size)
        return false;
    for (uint64_t i = 0; i < a.size; i++)
        if (lower(a.data[i]) != lower(b.data[i]))
            return false;
    return true;
}

uint32_t
sample_extension(const struct sample_columns *columns, uint32_t from, struct byte_view extension)
{
    for (; from < columns->extension_count; from++)
        if (is_same(columns->extensions[from], extension))
            return from;
    return columns->extension_count;
}

/* The columns decide which samples there are only if samples that lack a column are skipped. */
int64_t
sample_columns_hash(const struct sample_columns *columns)
{
    uint64_t hash = 1;

    if (!columns->skip_missing)
        return 0;
    for (uint32_t i = 0; i < columns->count; i++)
        hash = tnd_hash_farm_cat(hash, columns->columns[i].extension_count);
    for (uint32_t i = 0; i < columns->extension_count; i++)
        hash = tnd_hash_farm_cat(
            hash, tnd_hash_farm(columns->extensions[i].data, columns->extensions[i].size));
    return (int64_t)hash;
}
