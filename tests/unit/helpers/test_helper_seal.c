/* test_helper_seal.c - who is between a server and a helper can change nothing of what they say. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "helpers/helper_seal.h"
#include "unit/test_file.h"

static const uint8_t key_bytes[] = "a key that is long enough";
static const struct byte_view key = { key_bytes, sizeof key_bytes };
static const struct helper_nonces nonces = { .helper = { 1 }, .server = { 2 } };

static struct helper_seals server, helper;

static int
open_seals(void **state)
{
    (void)state;
    helper_seals_open(&server, key, &nonces, true);
    helper_seals_open(&helper, key, &nonces, false);
    return 0;
}

struct sealed {
    uint8_t text[40], seal[HELPER_SEAL_BYTES];
};

static struct sealed
say(struct helper_seals *seals, const char *text)
{
    struct sealed message = { 0 };

    strncpy((char *)message.text, text, sizeof message.text - 1);
    helper_seal_next(&seals->sent, &(struct iovec){ message.text, sizeof message.text }, 1,
                     message.seal);
    return message;
}

static bool
is_taken(struct helper_seals *seals, const struct sealed *message)
{
    struct iovec piece = { (void *)(uintptr_t)message->text, sizeof message->text };
    uint8_t seal[HELPER_SEAL_BYTES];

    helper_seal_next(&seals->received, &piece, 1, seal);
    return helper_seal_is(seal, message->seal);
}

static void
messages_are_taken_in_their_turn(void **state)
{
    (void)state;
    for (int i = 0; i < 1000; i++) {
        struct sealed ask = say(&server, "make this part"), answer = say(&helper, "here it is");

        assert_true(is_taken(&helper, &ask));
        assert_true(is_taken(&server, &answer));
    }
}

static void
a_message_is_cut_elsewhere_than_it_was_put_together(void **state)
{
    uint8_t bytes[300], one[HELPER_SEAL_BYTES], other[HELPER_SEAL_BYTES];

    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)(7 * i);
    helper_seal_next(&server.sent, &(struct iovec){ bytes, sizeof bytes }, 1, one);
    helper_seal_next(
        &helper.received,
        (struct iovec[]){
            { bytes, 1 }, { NULL, 0 }, { bytes + 1, 16 }, { bytes + 17, sizeof bytes - 17 } },
        4, other);
    assert_true(helper_seal_is(other, one));
}

static void
a_changed_bit_is_found(void **state)
{
    (void)state;
    for (size_t bit = 0; bit < 8 * sizeof(struct sealed); bit++) {
        struct sealed message;

        open_seals(NULL);
        message = say(&server, "make this part");
        ((uint8_t *)&message)[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(is_taken(&helper, &message));
    }
}

static void
messages_that_are_repeated_moved_or_left_out_are_found(void **state)
{
    struct sealed first = say(&server, "first"), second = say(&server, "second");

    (void)state;
    assert_false(is_taken(&helper, &second)); /* the first is left out, or comes later */
    assert_false(is_taken(&helper, &first));
    open_seals(NULL);
    first = say(&server, "first");
    assert_true(is_taken(&helper, &first));
    assert_false(is_taken(&helper, &first));
}

static void
a_message_that_comes_back_is_found(void **state)
{
    struct sealed ask = say(&server, "make this part");

    (void)state;
    assert_false(is_taken(&server, &ask));
}

static void
messages_of_other_connections_and_jobs_are_found(void **state)
{
    struct helper_nonces others[2] = { nonces, nonces };
    const struct byte_view another = { key.data, key.size - 2 };

    (void)state;
    others[0].helper[31] ^= 1;
    others[1].server[31] ^= 1;
    for (int i = 0; i < 3; i++) {
        struct sealed ask = say(&server, "make this part");

        helper_seals_open(&helper, i < 2 ? key : another, i < 2 ? &others[i] : &nonces, false);
        helper.received.count = server.sent.count - 1;
        assert_false(is_taken(&helper, &ask));
    }
}

#define SEALED(test) cmocka_unit_test_setup(test, open_seals)

TEST_FILE(test_helper_seal)
{
    const struct CMUnitTest tests[] = {
        SEALED(messages_are_taken_in_their_turn),
        SEALED(a_message_is_cut_elsewhere_than_it_was_put_together),
        SEALED(a_changed_bit_is_found),
        SEALED(messages_that_are_repeated_moved_or_left_out_are_found),
        SEALED(a_message_that_comes_back_is_found),
        SEALED(messages_of_other_connections_and_jobs_are_found),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
