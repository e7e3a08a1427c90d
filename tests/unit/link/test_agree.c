/* test_agree.c - nodes compare themselves: each comes to the same conclusion, in the same words. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "link/agree.h"
#include "unit/cluster.h"
#include "unit/test_file.h"

enum { PARTS = 3, TEXT_BYTES = 512 };

static const int64_t PATIENCE_NS = 300000000000;

/* One node's part of a comparison. */
struct party {
    struct link *link;
    const struct agree_part *parts;
    size_t count;
    const char *raw; /* posted as it is instead, by rank 0: what damage might make of a list */
    size_t raw_bytes;
    uint64_t number;
    pthread_t thread;
    tundish_status status;
    char text[TEXT_BYTES];
};

/* As rank 0: a hash that no other has, and a list. */
static void
lie(const struct party *party)
{
    link_tally(party->link, &(struct link_key){ .topic = LINK_PART },
               &(struct link_tally){ .merge = LINK_KINDS });
    link_post(party->link, &(struct link_key){ .topic = LINK_PART, .part = 1 }, party->raw,
              party->raw_bytes);
    link_tally(party->link, &(struct link_key){ .topic = LINK_PART, .part = 2 },
               &(struct link_tally){ .merge = LINK_LOWEST,
                                     .bytes = (const uint8_t *)"\xff\xff\xff\xff",
                                     .byte_count = 4 });
}

static void *
compare(void *argument)
{
    struct party *party = argument;

    if (party->raw != NULL) {
        lie(party);
        return NULL;
    }
    party->status = agree(party->link, party->parts, party->count, PATIENCE_NS, NULL);
    snprintf(party->text, sizeof party->text, "%s",
             party->status != TUNDISH_OK ? tnd_error_text() : "");
    return NULL;
}

static void *
share_number(void *argument)
{
    struct party *party = argument;

    party->status = agree_on_number(party->link, &party->number, PATIENCE_NS, NULL);
    return NULL;
}

static void
run_all(uint32_t count, struct party *parties, void *(*run)(void *party))
{
    struct link *links[CLUSTER_NODES];

    cluster_open(count, links);
    for (uint32_t i = 0; i < count; i++) {
        parties[i].link = links[i];
        assert_int_equal(pthread_create(&parties[i].thread, NULL, run, &parties[i]), 0);
    }
    for (uint32_t i = 0; i < count; i++)
        pthread_join(parties[i].thread, NULL);
    cluster_close(count, links);
}

static const struct agree_part parts[PARTS] = {
    { "the version", 1 },
    { "stream 'train'", 2 },
    { "file a", 3 },
};

static void
every_node_finds_the_same_difference(void **state)
{
    static const struct agree_part other_hash[] = { { "the version", 1 },
                                                    { "stream 'train'", 20 },
                                                    { "file a", 30 } };
    static const struct agree_part other_file[] = { { "the version", 1 },
                                                    { "stream 'train'", 2 },
                                                    { "file b", 3 } };
    static const struct {
        const struct agree_part *parts; /* of the last of three nodes */
        size_t count;
        const char *text; /* NULL: they agree */
    } cases[] = {
        { parts, PARTS, NULL },
        { other_hash, PARTS, "stream 'train' differs" },
        { other_file, PARTS, "file a is not the same thing" },
        { parts, PARTS - 1, "file a is not the same thing" },
        { parts, 0, "the version is not the same thing" },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct party parties[3] = {
            { .parts = parts, .count = PARTS },
            { .parts = parts, .count = PARTS },
            { .parts = cases[i].parts, .count = cases[i].count },
        };

        run_all(3, parties, compare);
        for (uint32_t node = 0; node < 3; node++) {
            assert_int_equal(parties[node].status,
                             cases[i].text == NULL ? TUNDISH_OK : TUNDISH_E_ARGUMENT);
            assert_string_equal(parties[node].text, parties[0].text);
            if (cases[i].text != NULL) {
                assert_non_null(strstr(parties[node].text, cases[i].text));
                assert_non_null(strstr(parties[node].text, "(rank 0)"));
                assert_non_null(strstr(parties[node].text, "(rank 2)"));
            }
        }
    }
}

/* As agree.c posts it: hash, length of the name with its NUL, name. */
#define HEAD "\1\0\0\0\0\0\0\0"

static void
a_list_that_lies_about_itself_is_a_difference(void **state)
{
    static const struct {
        const char *bytes;
        size_t count;
    } cases[] = {
        { "", 0 },
        { HEAD, 8 },             /* no length */
        { HEAD "\0\0\0\0", 12 }, /* a name without its NUL */
        { HEAD "\xff\xff\xff\xff"
               "x",
          13 }, /* a name that goes on beyond the end */
        { HEAD "\3\0\0\0"
               "abc",
          15 }, /* a name that does not end */
        { HEAD "\14\0\0\0"
               "the version",
          12 + 11 }, /* nor does this one */
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct party parties[2] = {
            { .raw = cases[i].bytes, .raw_bytes = cases[i].count },
            { .parts = parts, .count = 1 },
        };

        run_all(2, parties, compare);
        assert_int_equal(parties[1].status, TUNDISH_E_ARGUMENT);
        assert_non_null(strstr(parties[1].text, "the version is not the same thing"));
    }
}

static void
the_first_node_s_number_holds_for_all(void **state)
{
    struct party parties[3] = { { .number = 77 }, { .number = 5 }, { .number = 6 } };

    (void)state;
    run_all(3, parties, share_number);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(parties[i].status, TUNDISH_OK);
        assert_int_equal(parties[i].number, 77);
    }
}

static void
a_node_that_does_not_answer_is_not_agreed_with(void **state)
{
    const _Atomic int stop = 1;
    struct link *links[2];
    uint64_t number = 5;

    (void)state;
    cluster_open(2, links);
    assert_int_equal(agree(links[0], parts, PARTS, 0, NULL), TUNDISH_E_TIMEOUT);
    assert_non_null(strstr(tnd_error_text(), "comparing this node with the others"));
    assert_int_equal(agree_on_number(links[1], &number, -1, &stop), TUNDISH_E_TIMEOUT);
    assert_non_null(strstr(tnd_error_text(), "waiting for the seed"));
    assert_int_equal(number, 5);
    cluster_close(2, links);
}

TEST_FILE(test_agree)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_node_finds_the_same_difference),
        cmocka_unit_test(a_list_that_lies_about_itself_is_a_difference),
        cmocka_unit_test(the_first_node_s_number_holds_for_all),
        cmocka_unit_test(a_node_that_does_not_answer_is_not_agreed_with),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
