/* test_source_webdataset.c - samples of tars, and tars that lie. */
#include "source_fixture.h"

#include <zlib.h>

#include "source/scan/tar.h"
#include "unit/test_file.h"

enum { BLOCK = TAR_BLOCK_BYTES };

static void
seal(uint8_t *block)
{
    unsigned sum = 0;
    char digits[24];

    memset(block + 148, ' ', 8);
    for (int i = 0; i < BLOCK; i++)
        sum += block[i];
    snprintf(digits, sizeof digits, "%06o", sum & 0777777);
    memcpy(block + 148, digits, 7);
}

static void
add_header(struct bytes *tar, const char *name, char type, uint64_t size)
{
    uint8_t block[BLOCK] = { 0 };
    char digits[32];

    memcpy(block, name, strlen(name));
    snprintf(digits, sizeof digits, "%011llo", (unsigned long long)(size & 077777777777));
    memcpy(block + 124, digits, 12);
    block[156] = (uint8_t)type;
    memcpy(block + 257, "ustar\00000", 8);
    seal(block);
    bytes_add(tar, block, BLOCK);
}

static void
add_padded(struct bytes *tar, const void *data, size_t bytes)
{
    static const uint8_t zeros[BLOCK] = { 0 };

    bytes_add(tar, data, bytes);
    bytes_add(tar, zeros, (BLOCK - bytes % BLOCK) % BLOCK);
}

static void
add_typed(struct bytes *tar, const char *name, char type, const char *text)
{
    add_header(tar, name, type, strlen(text));
    add_padded(tar, text, strlen(text));
}

static void
add_member(struct bytes *tar, const char *name, const char *text)
{
    add_typed(tar, name, '0', text);
}

static void
end_tar(struct bytes *tar)
{
    static const uint8_t zeros[2 * BLOCK] = { 0 };

    bytes_add(tar, zeros, sizeof zeros);
}

/* a.txt A a.cls 1 | b.txt B b.cls 2 */
static struct bytes
two_samples(void)
{
    struct bytes tar = { 0 };

    add_member(&tar, "a.txt", "A");
    add_member(&tar, "a.cls", "1");
    add_member(&tar, "b.txt", "B");
    add_member(&tar, "b.cls", "2");
    end_tar(&tar);
    return tar;
}

#define TXT "[webdataset: {filenames: a.tar, columns: [txt]}, drop: __key__]"
#define BOTH "[webdataset: {filenames: a.tar, columns: {t: [text, txt], c: cls}}, drop: __key__, "
#define JOINED BOTH "map: {v: \"t + c\"}, select: v]"
#define KEYS "[webdataset: {filenames: a.tar, columns: [txt]}, select: __key__]"

static void
assert_tar(struct bytes *tar, const char *name, const char *stages, const char *expected)
{
    struct folder folder;

    folder_open(&folder);
    put_file(&folder, name, tar->data, tar->used);
    assert_texts(&folder, stages, expected);
    folder_close(&folder);
    free(tar->data);
    *tar = (struct bytes){ 0 };
}

static void
neighbours_with_one_key_are_a_sample(void **state)
{
    struct bytes tar = two_samples();

    (void)state;
    assert_tar(&tar, "a.tar", JOINED, "A1|B2|");
}

static void
keys_end_at_the_first_dot_of_the_last_part(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_member(&tar, "x.y/a.txt", "A");
    add_member(&tar, "x.y/a.b.TXT", "B"); /* extension b.TXT */
    add_member(&tar, "./c.TXT", "C");     /* whatever the case */
    add_member(&tar, "nodot", "D");
    add_member(&tar, "__meta.txt__", "E");
    add_member(&tar, ".txt", "F");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", KEYS, "x.y/a|./c|");
}

static void
the_same_key_again_later_is_another_sample(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_member(&tar, "a.txt", "1");
    add_member(&tar, "b.txt", "2");
    add_member(&tar, "a.txt", "3");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", TXT, "1|2|3|");
}

static void
what_is_no_file_belongs_to_no_sample(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_header(&tar, "a.dir/", '5', 0);
    add_member(&tar, "a.dir/s.txt", "1");
    add_header(&tar, "a.dir/s.lnk", '2', 0);
    add_header(&tar, "b.txt", '1', 0); /* a hard link has no bytes of its own */
    add_header(&tar, "old.d/", '\0', 0);
    add_typed(&tar, "c.txt", '\0', "2");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", TXT, "1|2|");
}

static void
missing_columns_are_an_error_or_no_row(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_member(&tar, "a.txt", "A");
    add_member(&tar, "b.txt", "B");
    add_member(&tar, "b.cls", "2");
    end_tar(&tar);
    assert_tar(&tar, "a.tar",
               "[webdataset: {filenames: a.tar, columns: {t: txt, c: cls}, missing: skip}, "
               "drop: [__key__, c]]",
               "B|");
    add_member(&tar, "a.txt", "A");
    end_tar(&tar);
    assert_tar(
        &tar, "a.tar", JOINED,
        "?a.tar: sample 'a' at 0 has no member for column 'c' (missing: skip drops such samples) "
        "(webdataset, line 3 of case.yaml)|");
    add_member(&tar, "a.txt", "A");
    add_member(&tar, "a.txt", "B");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", TXT,
               "?a.tar: sample 'a' at 0 has two members with the same "
               "extension (webdataset, line 3 of case.yaml)|");
}

static void
long_names_come_in_extra_headers(void **state)
{
    struct bytes tar = { 0 };
    char name[300], expected[700], pax[400];

    (void)state;
    memset(name, 'n', sizeof name);
    memcpy(name + 290, ".txt", 5);
    add_typed(&tar, "././@LongLink", 'L', name);
    add_member(&tar, "short.txt", "1");
    name[0] = 'm';
    snprintf(pax, sizeof pax, "304 path=%s\n", name);
    assert_int_equal(strlen(pax), 304);
    add_typed(&tar, "PaxHeader", 'x', pax);
    add_member(&tar, "short.txt", "2");
    add_typed(&tar, "global", 'g', "20 comment=whatever\n");
    add_member(&tar, "b.txt", "3");
    end_tar(&tar);
    snprintf(expected, sizeof expected, "n%.289s|%.290s|b|", name + 1, name);
    assert_tar(&tar, "a.tar", KEYS, expected);
}

/* A name ends at its first NUL, in whichever read the rest comes. */
static void
names_end_at_their_nul(void **state)
{
    static const char name[] = "a.txt\0not of the name";
    uint64_t hashes[2];

    (void)state;
    for (size_t step = 1; step <= 4096; step += 4095) {
        struct tar_walker *walker = tnd_zalloc(1, sizeof *walker);
        struct bytes tar = { 0 };
        size_t names = 0;

        add_header(&tar, "././@LongLink", 'L', sizeof name);
        add_padded(&tar, name, sizeof name);
        add_member(&tar, "short", "1");
        for (size_t at = 0; at < tar.used; at += step) {
            struct tar_member member;
            bool found = true;

            while (found) {
                assert_int_equal(tar_walk(walker, tar.data + at,
                                          tar.used - at < step ? tar.used - at : step, at, &member,
                                          &found),
                                 TUNDISH_OK);
                if (found)
                    assert_int_equal(member.name.size, 5);
                names += found;
            }
        }
        assert_int_equal(names, 1);
        hashes[step > 1] = walker->hash;
        free(walker);
        free(tar.data);
    }
    assert_int_equal(hashes[0], hashes[1]);
}

static void
prefixes_and_pax_sizes_are_used(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_header(&tar, "a.txt", '0', 2);
    memcpy(tar.data + 345, "some/where", 10);
    seal(tar.data);
    add_padded(&tar, "AB", 2);
    add_typed(&tar, "PaxHeader", 'x', "9 size=3\n");
    add_header(&tar, "b.txt", '0', 0);
    add_padded(&tar, "xyz", 3);
    end_tar(&tar);
    assert_tar(&tar, "a.tar",
               "[webdataset: {filenames: a.tar, columns: [txt]}, map: {v: \"__key__ + txt\"}, "
               "select: v]",
               "some/where/aAB|bxyz|");
}

static void
assert_damaged(struct bytes *tar, const char *before, const char *words)
{
    struct folder folder;
    struct pipeline pipeline;
    char *texts;

    folder_open(&folder);
    put_file(&folder, "a.tar", tar->data, tar->used);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, TXT), TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 64);
    if (strncmp(texts, before, strlen(before)) != 0 || strstr(texts, words) == NULL ||
        strstr(texts, "!a.tar: ") == NULL)
        fail_msg("'%s' and '%s' are not in: %s", before, words, texts);
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(tar->data);
    *tar = (struct bytes){ 0 };
}

static void
what_follows_an_archives_end_is_not_read(void **state)
{
    struct bytes tar = two_samples();

    (void)state;
    for (int i = 0; i < 5 * BLOCK / 4; i++)
        bytes_add(&tar, "junk", 4);
    assert_tar(&tar, "a.tar", TXT, "A|B|");

    tar = two_samples();
    bytes_add(&tar, "junk", 4);
    assert_tar(&tar, "a.tar", TXT, "A|B|");

    tar = two_samples(); /* one block of zeros is an end, too */
    tar.used -= BLOCK;
    for (int i = 0; i < BLOCK; i++)
        bytes_add(&tar, "g", 1);
    assert_tar(&tar, "a.tar", TXT, "A|B|");

    tar = two_samples(); /* as for tarfile and tar without -i */
    add_member(&tar, "c.txt", "C");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", TXT, "A|B|");
}

static void
links_are_named_where_a_member_is_missing(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    for (int type = '1'; type <= '2'; type++) {
        add_member(&tar, "a.txt", "A");
        add_header(&tar, "a.cls", (char)type, 0);
        add_member(&tar, "b.txt", "B");
        add_member(&tar, "b.cls", "2");
        end_tar(&tar);
        assert_tar(&tar, "a.tar", JOINED,
                   "?a.tar: sample 'a' at 0 has no member for column 'c', but a link, which has no "
                   "bytes: make the archive with tar's options --hard-dereference and "
                   "--dereference (missing: skip drops such samples) (webdataset, line 3 of "
                   "case.yaml)|B2|");
    }
}

/* In a folder a member may have no name but its extension, as in WebDataset; leftovers are none. */
static void
members_may_be_named_by_their_folder(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_member(&tar, "d/.txt", "1");
    add_member(&tar, "d/._x.txt", "no");
    add_member(&tar, "d/.DS_Store", "no");
    add_member(&tar, "d/.gitkeep", "no");
    add_member(&tar, "a.b/.txt", "no");
    add_member(&tar, "a.b/e/.txt", "2");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", KEYS, "d/|a.b/e/|");
}

/* The GNU header of a sparse file of 12 bytes: "ab" at 2, "cd" at 8. */
static void
add_old_sparse(struct bytes *tar, const char *name, bool in_more_blocks)
{
    uint8_t block[BLOCK] = { 0 }, more[BLOCK] = { 0 };
    uint8_t *second = in_more_blocks ? more : block + 386 + 24;

    add_header(tar, name, 'S', 4);
    memcpy(block, tar->data + tar->used - BLOCK, BLOCK);
    memcpy(block + 257, "ustar  ", 8);
    memcpy(block + 386, "00000000002\00000000000002", 24);
    memcpy(second, "00000000010\00000000000002", 24);
    block[482] = in_more_blocks;
    memcpy(block + 483, "00000000014", 12);
    seal(block);
    tar->used -= BLOCK;
    bytes_add(tar, block, BLOCK);
    if (in_more_blocks)
        bytes_add(tar, more, BLOCK);
    add_padded(tar, "abcd", 4);
}

static void
add_pax_sparse(struct bytes *tar, const char *records, const char *data, size_t bytes)
{
    add_typed(tar, "PaxHeaders/p", 'x', records);
    add_header(tar, "GNUSparseFile.0/p.txt", '0', bytes);
    add_padded(tar, data, bytes);
}

#define SPARSE_00                                                                                  \
    "22 GNU.sparse.size=12\n26 GNU.sparse.numblocks=2\n23 GNU.sparse.offset=2\n"                   \
    "25 GNU.sparse.numbytes=2\n23 GNU.sparse.offset=8\n25 GNU.sparse.numbytes=2\n"                 \
    "14 path=c.txt\n"
#define SPARSE_01                                                                                  \
    "22 GNU.sparse.size=12\n25 GNU.sparse.name=d.txt\n26 GNU.sparse.map=2,2,8,2\n"                 \
    "14 path=x.txt\n"
#define SPARSE_10                                                                                  \
    "22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n25 GNU.sparse.name=e.txt\n"                     \
    "26 GNU.sparse.realsize=12\n"

static struct bytes
map_in_data(const char *map, const char *data)
{
    struct bytes body = { 0 };

    add_padded(&body, map, strlen(map));
    bytes_add(&body, data, strlen(data));
    return body;
}

static void
sparse_members_are_put_together(void **state)
{
    struct bytes tar = { 0 }, body = map_in_data("2\n2\n2\n8\n2\n", "abcd");
    static const char whole[] = "\0\0ab\0\0\0\0cd\0\0";
    struct folder folder;
    struct pipeline pipeline;

    (void)state;
    folder_open(&folder);
    add_old_sparse(&tar, "a.txt", false);
    add_old_sparse(&tar, "b.txt", true);
    add_pax_sparse(&tar, SPARSE_00, "abcd", 4);
    add_pax_sparse(&tar, SPARSE_01, "abcd", 4);
    add_pax_sparse(&tar, SPARSE_10, (const char *)body.data, body.used);
    add_member(&tar, "z.txt", "plain");
    end_tar(&tar);
    put_file(&folder, "a.tar", tar.data, tar.used);
    assert_texts(&folder, KEYS, "a|b|c|d|e|z|");
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, TXT), TUNDISH_OK);
    for (int i = 0; i < 5; i++) {
        struct byte_view text;

        assert_int_equal(pipeline_next(&pipeline), ORDER_OK);
        text = text_at(&pipeline, 0, 0);
        assert_int_equal(text.size, 12);
        assert_memory_equal(text.data, whole, 12);
    }
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(body.data);
    free(tar.data);
}

static void
sparse_maps_that_lie_are_bad_rows(void **state)
{
    static const struct {
        const char *records, *map, *words;
    } cases[] = {
        { SPARSE_10, "2\n2\n2\n3\n2\n", "outside of its file" },
        { SPARSE_10, "2\n2\n2\n8\n5\n", "outside of its file" },
        { SPARSE_10, "2\n2\n2\n8\n3\n", "outside of its file" },
        { SPARSE_10, "2\n2\n2\n", "not numbers" },
        { SPARSE_10, "99999999999999999999\n", "none" },
        { SPARSE_10, "-1\n", "none" },
        { "22 GNU.sparse.major=1\n25 GNU.sparse.name=e.txt\n", "0\n", "size of its file" },
        { "22 GNU.sparse.major=1\n25 GNU.sparse.name=e.txt\n"
          "34 GNU.sparse.realsize=9999999999\n",
          "0\n", "would have 9999999999 bytes" },
        { "25 GNU.sparse.name=e.txt\n22 GNU.sparse.size=12\n21 GNU.sparse.map=1,\n", "",
          "not numbers" },
        { "25 GNU.sparse.name=e.txt\n25 GNU.sparse.numbytes=2\n", "", "no offset" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct bytes tar = { 0 }, body = map_in_data(cases[i].map, "abcd");
        struct folder folder;
        struct pipeline pipeline;
        char *texts;

        folder_open(&folder);
        add_pax_sparse(&tar, cases[i].records, (const char *)body.data, body.used);
        add_member(&tar, "z.txt", "plain");
        put_file(&folder, "a.tar", tar.data, tar.used);
        assert_int_equal(pipeline_open(&pipeline, &folder, 0, TXT), TUNDISH_OK);
        texts = pipeline_texts(&pipeline, 1);
        if (strstr(texts, "?a.tar: sample 'e' at 0 cannot be read: ") == NULL ||
            strstr(texts, cases[i].words) == NULL || strstr(texts, "|plain|") == NULL)
            fail_msg("'%s' is not in: %s", cases[i].words, texts);
        free(texts);
        pipeline_close(&pipeline);
        free(body.data);
        free(tar.data);
        folder_close(&folder);
    }
}

/* What no column asks for is not looked at. */
static void
sparse_members_that_nobody_wants_are_passed_over(void **state)
{
    struct bytes tar = { 0 };

    (void)state;
    add_member(&tar, "a.txt", "A");
    add_old_sparse(&tar, "a.bin", true);
    add_typed(&tar, "p", 'x', "25 GNU.sparse.name=b.bin\n");
    add_header(&tar, "q", '0', 0);
    add_member(&tar, "b.txt", "B");
    end_tar(&tar);
    assert_tar(&tar, "a.tar", TXT, "A|B|");
}

static void
packed_archives_are_told_by_their_content(void **state)
{
    struct bytes tar = { 0 };
    struct folder folder;
    struct pipeline pipeline;
    char *texts;
    uLongf bytes = 4096;
    uint8_t packed[4096];
    z_stream stream = { 0 };

    (void)state;
    add_member(&tar, "a.txt", "A");
    end_tar(&tar);
    assert_int_equal(deflateInit2(&stream, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
    stream.next_in = tar.data;
    stream.avail_in = (uInt)tar.used;
    stream.next_out = packed;
    stream.avail_out = (uInt)bytes;
    assert_int_equal(deflate(&stream, Z_FINISH), Z_STREAM_END);
    bytes -= stream.avail_out;
    deflateEnd(&stream);
    folder_open(&folder);
    put_file(&folder, "a.tar", packed, bytes);
    put_file(&folder, "A.TAR.GZ", packed, bytes);
    assert_texts(&folder, TXT, "A|");
    assert_texts(&folder, "[webdataset: {filenames: A.TAR.GZ, columns: [txt]}, drop: __key__]",
                 "A|");
    put_file(&folder, "a.tar", packed, bytes / 2);
    assert_int_equal(pipeline_open(&pipeline, &folder, 0, TXT), TUNDISH_OK);
    texts = pipeline_texts(&pipeline, 1);
    assert_non_null(
        strstr(texts, "!a.tar: its compressed data is damaged or truncated near byte "));
    assert_null(strstr(texts, "byte -1"));
    free(texts);
    pipeline_close(&pipeline);
    folder_close(&folder);
    free(tar.data);
}

static void
a_cut_ends_the_file_with_an_error(void **state)
{
    (void)state;
    for (size_t cut = 1; cut < 5 * BLOCK; cut += 97) {
        struct bytes tar = two_samples();
        struct folder folder;
        struct pipeline pipeline;
        char *texts;
        size_t left = tar.used - 2 * BLOCK - cut;

        /* Between two members, or behind a member's last byte, the file may simply end. */
        if (left % (2 * BLOCK) == 0 || left % (2 * BLOCK) > BLOCK) {
            free(tar.data);
            continue;
        }
        folder_open(&folder);
        put_file(&folder, "a.tar", tar.data, left);
        assert_int_equal(pipeline_open(&pipeline, &folder, 0, TXT), TUNDISH_OK);
        texts = pipeline_texts(&pipeline, 64);
        assert_non_null(strstr(texts, "!a.tar: truncated tar member at "));
        free(texts);
        pipeline_close(&pipeline);
        folder_close(&folder);
        free(tar.data);
    }
}

static void
headers_that_lie_are_refused(void **state)
{
    struct bytes tar = two_samples();

    (void)state;
    tar.data[4 * BLOCK] ^= 1; /* b.txt's name */
    assert_damaged(&tar, "!", "damaged tar header at 2048: its checksum is wrong");

    tar = two_samples();
    memcpy(tar.data + 4 * BLOCK + 124, "77777777777", 11); /* 8 GiB */
    seal(tar.data + 4 * BLOCK);
    assert_damaged(&tar, "A|!", "truncated tar member at 2048");

    tar = two_samples();
    memset(tar.data + 4 * BLOCK + 124, 0xFF, 12); /* less than nothing */
    seal(tar.data + 4 * BLOCK);
    assert_damaged(&tar, "!", "its size is not a number");

    tar = two_samples();
    memset(tar.data + 4 * BLOCK + 125, 0xFF, 11);
    tar.data[4 * BLOCK + 124] = 0x80; /* to the base 256: more than any file */
    seal(tar.data + 4 * BLOCK);
    assert_damaged(&tar, "!", "its size");

    add_typed(&tar, "p", 'x', "9999 path=a.txt\n");
    add_member(&tar, "a.txt", "A");
    assert_damaged(&tar, "!", "pax header ends inside a record");

    add_typed(&tar, "p", 'x', "path=a.txt\n");
    assert_damaged(&tar, "!", "malformed pax header");

    add_header(&tar, "p", 'L', UINT64_C(1) << 30);
    assert_damaged(&tar, "!", "more than 1 MiB");

    bytes_add(&tar, "\x1f\x8b garbage", 10);
    for (int i = 0; i < BLOCK; i++)
        bytes_add(&tar, "g", 1);
    assert_damaged(&tar, "!", "its checksum is wrong");
}

static void
a_file_that_is_no_tar_or_not_packed_is_told(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    put_text(&folder, "a.tar.gz", "");
    assert_texts(&folder, "[webdataset: {filenames: a.tar.gz, columns: [txt]}, drop: __key__]",
                 "!a.tar.gz: the file is empty, and no tar archive is: was it cut?|");
    put_text(&folder, "a.tar", "");
    assert_texts(&folder, TXT, "!a.tar: the file is empty, and no tar archive is: was it cut?|");
    folder_close(&folder);
}

static void
parameters_are_checked_when_planned(void **state)
{
    struct folder folder;

    (void)state;
    folder_open(&folder);
    assert_refused(&folder, "[webdataset: {filenames: a.tar, columns: [.txt]}]", "first dot");
    assert_refused(&folder, "[webdataset: {filenames: a.tar, columns: [txt, txt]}]", "twice");
    assert_refused(&folder, "[webdataset: {filenames: a.tar, columns: {a: []}}]",
                   "needs an extension");
    assert_refused(&folder, "[webdataset: {filenames: a.tar, columns: {a: 3}}]", "must be a text");
    folder_close(&folder);
}

TEST_FILE(test_source_webdataset)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(neighbours_with_one_key_are_a_sample),
        cmocka_unit_test(keys_end_at_the_first_dot_of_the_last_part),
        cmocka_unit_test(the_same_key_again_later_is_another_sample),
        cmocka_unit_test(what_is_no_file_belongs_to_no_sample),
        cmocka_unit_test(missing_columns_are_an_error_or_no_row),
        cmocka_unit_test(long_names_come_in_extra_headers),
        cmocka_unit_test(names_end_at_their_nul),
        cmocka_unit_test(prefixes_and_pax_sizes_are_used),
        cmocka_unit_test(what_follows_an_archives_end_is_not_read),
        cmocka_unit_test(links_are_named_where_a_member_is_missing),
        cmocka_unit_test(members_may_be_named_by_their_folder),
        cmocka_unit_test(sparse_members_are_put_together),
        cmocka_unit_test(sparse_maps_that_lie_are_bad_rows),
        cmocka_unit_test(sparse_members_that_nobody_wants_are_passed_over),
        cmocka_unit_test(packed_archives_are_told_by_their_content),
        cmocka_unit_test(a_cut_ends_the_file_with_an_error),
        cmocka_unit_test(headers_that_lie_are_refused),
        cmocka_unit_test(a_file_that_is_no_tar_or_not_packed_is_told),
        cmocka_unit_test(parameters_are_checked_when_planned),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
