/* tar.c - see tar.h. */
#include "source/scan/tar.h"

#include <string.h>

#include "core/crc32c.h"
#include "core/hash_farm.h"

/* Offsets and sizes of the fields of a POSIX.1-1988 (ustar) header. */
enum {
    NAME = 0,
    NAME_BYTES = 100,
    SIZE_BYTES = 12,
    CHECKSUM = 148,
    CHECKSUM_BYTES = 8,
    MAGIC = 257,
    PREFIX = 345,
    PREFIX_BYTES = 155,
    HAS_MAP = 482, /* GNU tar's: blocks of a sparse map follow the header */
    MAP_HAS_MORE = 504
};

/* The parts of a pax record. Its length counts the whole of it. */
enum { PAX_LENGTH, PAX_KEY, PAX_VALUE };

/* Larger extra headers are refused. No tar program writes nearly as much. */
#define EXTRA_HEADER_MAX (UINT64_C(1) << 20)
#define OFFSET_MAX (UINT64_MAX / 4)

static tundish_status
damaged(uint64_t offset, const char *what)
{
    return tnd_fail(TUNDISH_E_DATA, "damaged tar header at %llu: %s", (unsigned long long)offset,
                    what);
}

/* Octal digits between spaces. GNU tar sets the highest bit for a number in base 256, if a size has
 * more than 11 octal digits. */
bool
tar_number(const uint8_t *field, size_t bytes, uint64_t *ret_number)
{
    uint64_t number = 0;
    size_t i = 0;

    if (field[0] == 0x80) {
        for (i = 1; i < bytes; i++) {
            if (number > UINT64_MAX >> 8)
                return false;
            number = number << 8 | field[i];
        }
        *ret_number = number;
        return true;
    }
    while (i < bytes && field[i] == ' ')
        i++;
    for (; i < bytes && field[i] >= '0' && field[i] <= '7'; i++)
        number = number << 3 | (uint64_t)(field[i] - '0');
    for (; i < bytes; i++)
        if (field[i] != ' ' && field[i] != '\0')
            return false;
    *ret_number = number;
    return true;
}

/* The sum of all bytes of the header, with spaces in place of the sum itself. Old tar programs
 * added signed bytes. */
static bool
checksum_is_right(const uint8_t *block)
{
    uint64_t stored;
    int64_t plain = 0, with_sign = 0;

    for (int i = 0; i < TAR_BLOCK_BYTES; i++) {
        uint8_t byte = i >= CHECKSUM && i < CHECKSUM + CHECKSUM_BYTES ? ' ' : block[i];

        plain += byte;
        with_sign += (int8_t)byte;
    }
    return tar_number(block + CHECKSUM, CHECKSUM_BYTES, &stored) && stored <= INT64_MAX &&
           ((int64_t)stored == plain || (int64_t)stored == with_sign);
}

static tundish_status
add_to_name(struct tar_walker *walker, const uint8_t *data, size_t bytes)
{
    if (bytes > TAR_NAME_MAX - walker->name_bytes)
        return tnd_fail(TUNDISH_E_DATA, "the name of the tar member at %llu has more than %d bytes",
                        (unsigned long long)walker->begin, TAR_NAME_MAX);
    memcpy(walker->name + walker->name_bytes, data, bytes);
    walker->name_bytes += (uint32_t)bytes;
    return TUNDISH_OK;
}

static bool
key_is(const struct tar_pax *pax, const char *key)
{
    return pax->key_bytes == strlen(key) && memcmp(pax->key, key, pax->key_bytes) == 0;
}

/* Only the path and the size matter: the size is here when it does not fit the octal field. */
static tundish_status
pax_value(struct tar_walker *walker, uint8_t byte)
{
    struct tar_pax *pax = &walker->pax;

    if (key_is(pax, "GNU.sparse.name") || (key_is(pax, "path") && !walker->has_sparse_name))
        return add_to_name(walker, &byte, 1);
    if (!key_is(pax, "size"))
        return TUNDISH_OK;
    if (byte < '0' || byte > '9' || pax->number > OFFSET_MAX / 10)
        return damaged(walker->begin, "the size in its pax header is not a number");
    pax->number = 10 * pax->number + (uint64_t)(byte - '0');
    walker->size = pax->number;
    walker->has_size = true;
    return TUNDISH_OK;
}

/* Sparse members store only parts of the file; their path is one that other programs may take. */
static void
pax_begin_value(struct tar_walker *walker)
{
    struct tar_pax *pax = &walker->pax;

    pax->part = PAX_VALUE;
    pax->number = 0;
    if (key_is(pax, "GNU.sparse.name"))
        walker->has_sparse_name = true;
    if (key_is(pax, "GNU.sparse.name") || (key_is(pax, "path") && !walker->has_sparse_name))
        walker->name_bytes = 0; /* the last one counts */
    if (pax->key_bytes > 10 && memcmp(pax->key, "GNU.sparse", 10) == 0)
        walker->is_sparse = true;
}

static tundish_status
pax_byte(struct tar_walker *walker, uint8_t byte)
{
    struct tar_pax *pax = &walker->pax;

    if (pax->part == PAX_LENGTH) {
        pax->left++; /* counts the digits until the key begins */
        if (byte == ' ' && pax->length > pax->left + 1) {
            pax->left = pax->length - pax->left;
            pax->part = PAX_KEY;
            return TUNDISH_OK;
        }
        if (byte < '0' || byte > '9' || pax->left > 9)
            return damaged(walker->begin, "malformed pax header");
        pax->length = 10 * pax->length + (uint64_t)(byte - '0');
        return TUNDISH_OK;
    }
    if (--pax->left == 0) {
        if (byte != '\n' || pax->part != PAX_VALUE)
            return damaged(walker->begin, "the length of a record in its pax header is wrong");
        *pax = (struct tar_pax){ 0 };
        return TUNDISH_OK;
    }
    if (pax->part == PAX_VALUE)
        return pax_value(walker, byte);
    if (byte == '=') {
        pax_begin_value(walker);
        return TUNDISH_OK;
    }
    if (pax->key_bytes < sizeof pax->key)
        pax->key[pax->key_bytes] = (char)byte;
    pax->key_bytes++;
    return TUNDISH_OK;
}

/* Take the bytes of an extra header's body that are here. It may be cut by the end of a read at any
 * place. */
static tundish_status
take_body(struct tar_walker *walker, const uint8_t *data, size_t bytes)
{
    size_t take = walker->body_left < bytes ? (size_t)walker->body_left : bytes;
    tundish_status status = TUNDISH_OK;

    /* A name of GNU tar ends at its first NUL. */
    if (walker->body_kind == 'L' && !walker->name_ended) {
        const uint8_t *end = memchr(data, '\0', take);

        walker->name_ended = end != NULL;
        status = add_to_name(walker, data, end == NULL ? take : (size_t)(end - data));
    }
    for (size_t i = 0; walker->body_kind == 'x' && i < take && status == TUNDISH_OK; i++)
        status = pax_byte(walker, data[i]);
    walker->wanted += take;
    walker->body_left -= take;
    if (status != TUNDISH_OK || walker->body_left > 0)
        return status;
    if (walker->body_kind == 'x' && (walker->pax.part != PAX_LENGTH || walker->pax.length != 0))
        return damaged(walker->begin, "its pax header ends inside a record");
    walker->body_kind = 0;
    walker->wanted = walker->body_end;
    return TUNDISH_OK;
}

static bool
is_zero(const uint8_t *block)
{
    for (int i = 0; i < TAR_BLOCK_BYTES; i++)
        if (block[i] != 0)
            return false;
    return true;
}

/* Bodies are padded to whole blocks. */
static uint64_t
end_of_body(uint64_t data, uint64_t size)
{
    return data + (size + TAR_BLOCK_BYTES - 1) / TAR_BLOCK_BYTES * TAR_BLOCK_BYTES;
}

static tundish_status
take_extra(struct tar_walker *walker, char type, uint64_t size)
{
    if (size > EXTRA_HEADER_MAX)
        return damaged(walker->begin, "an extra header of more than 1 MiB");
    walker->in_member = true;
    walker->body_end = end_of_body(walker->wanted, size);
    walker->body_left = size;
    walker->body_kind = type == 'X' ? 'x' : type;
    if (type == 'L')
        walker->name_bytes = 0;
    walker->name_ended = false;
    walker->pax = (struct tar_pax){ 0 };
    if (size == 0 ||
        (type != 'L' &&
         walker->body_kind != 'x')) { /* not needed: links' names (K) and global headers (g) */
        walker->wanted = walker->body_end;
        walker->body_kind = 0;
    }
    return TUNDISH_OK;
}

static tundish_status
name_of_header(struct tar_walker *walker)
{
    /* A name from an extra header replaces the field. */
    const uint8_t *block = walker->block;
    tundish_status status = TUNDISH_OK;

    if (walker->name_bytes > 0)
        return TUNDISH_OK;
    /* A long path is cut at a slash: the part before it is in `prefix`. GNU tar uses that field
     * differently, and its magic has a space in place of the NUL. */
    if (memcmp(block + MAGIC, "ustar", 6) == 0 && block[PREFIX] != '\0') {
        status = add_to_name(walker, block + PREFIX,
                             strnlen((const char *)block + PREFIX, PREFIX_BYTES));
        if (status == TUNDISH_OK)
            status = add_to_name(walker, (const uint8_t *)"/", 1);
    }
    if (status == TUNDISH_OK)
        status = add_to_name(walker, block + NAME, strnlen((const char *)block + NAME, NAME_BYTES));
    return status;
}

static tundish_status
take_member(struct tar_walker *walker, char type, uint64_t size, struct tar_member *ret_member)
{
    /* Types 1 to 6 (links, devices, folders, pipes) have no body, whatever their size says. */
    bool has_data = type < '1' || type > '6';
    tundish_status status = walker->in_map ? TUNDISH_OK : name_of_header(walker);
    bool is_folder = walker->name_bytes > 0 && walker->name[walker->name_bytes - 1] == '/';

    if (status != TUNDISH_OK)
        return status;
    *ret_member = (struct tar_member){
        .name = { walker->name, walker->name_bytes },
        .begin = walker->begin,
        .data = walker->wanted,
        .size = has_data ? size : 0,
        .is_file = type == '0' || type == '7' || type == 'S' || (type == '\0' && !is_folder),
        .is_link = type == '1' || type == '2',
        .is_sparse = walker->is_sparse || type == 'S',
    };
    walker->wanted = end_of_body(walker->wanted, ret_member->size);
    walker->in_member = walker->has_size = walker->in_map = false;
    walker->is_sparse = walker->has_sparse_name = false;
    walker->name_bytes = 0;
    return TUNDISH_OK;
}

/* A block of the map that follows a sparse member's header. Its data come after the last one. */
static tundish_status
take_map_block(struct tar_walker *walker, struct tar_member *ret_member, bool *ret_found)
{
    tundish_status status;

    walker->hash = tnd_hash_farm_cat(walker->hash, tnd_crc32c(0, walker->block, TAR_BLOCK_BYTES));
    if (walker->block[MAP_HAS_MORE] != 0)
        return TUNDISH_OK;
    status = take_member(walker, 'S', walker->size, ret_member);
    *ret_found = status == TUNDISH_OK;
    return status;
}

/* A block of zeros ends the archive, as for Python's tarfile and for tar without
 * --ignore-zeros. The bytes after it, even another archive, are not read: it may be left of a
 * longer one that was written over. */
static tundish_status
take_zeros(struct tar_walker *walker, uint64_t offset)
{
    if (walker->in_member)
        return damaged(offset, "the archive ends after an extra header");
    walker->is_over = true;
    walker->wanted = OFFSET_MAX;
    return TUNDISH_OK;
}

/* A whole header is in `block`, and `wanted` is after it. */
static tundish_status
take_header(struct tar_walker *walker, struct tar_member *ret_member, bool *ret_found)
{
    const uint8_t *block = walker->block;
    char type = (char)block[TAR_TYPE];
    uint64_t offset = walker->wanted - TAR_BLOCK_BYTES;
    uint64_t size;
    tundish_status status;

    if (!walker->in_member)
        walker->begin = offset;
    if (is_zero(block))
        return take_zeros(walker, offset);
    if (!checksum_is_right(block))
        return damaged(offset, "its checksum is wrong (is this a whole tar file?)");
    if (!tar_number(block + TAR_SIZE, SIZE_BYTES, &size))
        return damaged(offset, "its size is not a number");
    /* The checksum of the header stands for the member, so an archive is identified without reading
     * its data. */
    walker->hash = tnd_hash_farm_cat(walker->hash, tnd_crc32c(0, block, TAR_BLOCK_BYTES));
    if (type == 'L' || type == 'K' || type == 'x' || type == 'X' || type == 'g')
        return take_extra(walker, type, size);
    if (walker->has_size)
        size = walker->size;
    if (size > OFFSET_MAX || walker->wanted > OFFSET_MAX)
        return damaged(offset, "its size is larger than any file");
    if (type == 'S' && block[HAS_MAP] != 0) {
        walker->in_member = walker->in_map = true;
        walker->size = size;
        return name_of_header(walker);
    }
    status = take_member(walker, type, size, ret_member);
    *ret_found = status == TUNDISH_OK;
    return status;
}

tundish_status
tar_walk(struct tar_walker *walker, const uint8_t *data, size_t bytes, uint64_t offset,
         struct tar_member *ret_member, bool *ret_found)
{
    tundish_status status = TUNDISH_OK;

    *ret_found = false;
    /* The loop ends when the scanner has a member, or when the wanted byte is not in this read:
     * bodies are skipped. */
    while (status == TUNDISH_OK && !*ret_found && walker->wanted - offset < bytes) {
        size_t from = (size_t)(walker->wanted - offset);
        size_t take = TAR_BLOCK_BYTES - walker->have;

        if (walker->body_kind != 0) {
            status = take_body(walker, data + from, bytes - from);
            continue;
        }
        if (take > bytes - from)
            take = bytes - from;
        memcpy(walker->block + walker->have, data + from, take);
        walker->have += (uint32_t)take;
        walker->wanted += take;
        if (walker->have < TAR_BLOCK_BYTES)
            break;
        walker->have = 0;
        status = walker->in_map ? take_map_block(walker, ret_member, ret_found)
                                : take_header(walker, ret_member, ret_found);
    }
    return status;
}

tundish_status
tar_finish(const struct tar_walker *walker, uint64_t size, uint64_t data_end)
{
    bool is_cut =
        !walker->is_over && (walker->have > 0 || walker->body_kind != 0 || walker->in_member);

    if (!is_cut && data_end <= size)
        return TUNDISH_OK;
    return tnd_fail(TUNDISH_E_DATA, "truncated tar member at %llu: the file ends at %llu",
                    (unsigned long long)walker->begin, (unsigned long long)size);
}
