/* test_text_tokens.c - the same tokens whichever way they are found. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "../unit_draw.h"
#include "content/text/text_tokens.h"
#include "core/cpu.h"
#include "unit/test_file.h"

/* The tokens as "a|b|c". */
static const char *
tokens_of(text_tokenize *tokenize, const struct text_rules *rules, struct byte_view text)
{
    static char joined[4096];
    struct scratch *scratch = scratch_open();
    struct text_tokens tokens = { .scratch = scratch };
    size_t used = 0;

    text_tokens_clear(&tokens, text.size, 1);
    tokenize(rules, text, &tokens);
    for (int64_t i = 0; i < tokens.count; i++) {
        if (i > 0)
            joined[used++] = '|';
        if (tokens.views[i].size > 0)
            memcpy(joined + used, tokens.views[i].data, tokens.views[i].size);
        used += tokens.views[i].size;
    }
    joined[used] = '\0';
    scratch_close(scratch);
    return joined;
}

static const char *
split(const char *text, bool lower, bool strip, enum text_split how, int64_t most)
{
    uint8_t buffer[512] = { 0 };
    struct text_rules rules = { lower, strip, how, most };

    memcpy(buffer, text, strlen(text));
    return tokens_of(text_tokenize_best(), &rules, (struct byte_view){ buffer, strlen(text) });
}

static void
words_are_lowered_stripped_and_split(void **state)
{
    (void)state;
    assert_string_equal(split("Earth, WIND and Fire!", true, true, SPLIT_WHITESPACE, -1),
                        "earth|wind|and|fire");
    assert_string_equal(split("  it's \t\n!? ok ", true, true, SPLIT_WHITESPACE, -1), "its|ok");
    assert_string_equal(split("Ab, C", false, false, SPLIT_WHITESPACE, -1), "Ab,|C");
    assert_string_equal(split("a b c", true, true, SPLIT_WHITESPACE, 2), "a|b");
    assert_string_equal(split(" !? ", true, true, SPLIT_WHITESPACE, -1), "");
    assert_string_equal(split("\xc3\x89T\xc3\x89", true, true, SPLIT_WHITESPACE, -1),
                        "\xc3\x89t\xc3\x89");
    assert_string_equal(split("a\xc2\xa0"
                              "b\x1c"
                              "c",
                              true, true, SPLIT_WHITESPACE, -1),
                        "a\xc2\xa0"
                        "b\x1c"
                        "c");
}

static void
texts_that_are_not_split_are_one_token(void **state)
{
    (void)state;
    assert_string_equal(split("Wind And", true, true, SPLIT_NONE, -1), "wind and");
    assert_string_equal(split("!?", true, true, SPLIT_NONE, -1), "");
}

static void
ill_formed_parts_become_one_replacement_each(void **state)
{
    (void)state;
    assert_string_equal(split("aB", true, true, SPLIT_CHARACTER, -1), "a|b");
    assert_string_equal(split("\xe6\x97\xa5"
                              "x",
                              true, true, SPLIT_CHARACTER, -1),
                        "\xe6\x97\xa5|x");
    assert_string_equal(split("\xe6\x97", true, true, SPLIT_CHARACTER, -1), "\xef\xbf\xbd");
    assert_string_equal(split("\xff\xfe", true, true, SPLIT_CHARACTER, -1),
                        "\xef\xbf\xbd|\xef\xbf\xbd");
    assert_string_equal(split("\xed\xa0\x80", true, true, SPLIT_CHARACTER, -1),
                        "\xef\xbf\xbd|\xef\xbf\xbd|\xef\xbf\xbd");
    assert_string_equal(split("\xf0\x9f\x98\x80", true, true, SPLIT_CHARACTER, -1),
                        "\xf0\x9f\x98\x80");
}

static void
all_instruction_sets_give_the_same(void **state)
{
    uint8_t buffer[600 + 64];
    char expected[4096];

    (void)state;
    for (int i = 0; i < 30000; i++) {
        struct text_rules rules = { draw() % 2, draw() % 2, (enum text_split)(draw() % 3), -1 };
        struct byte_view text = { buffer, draw() % 300 };
        bool is_plain = draw() % 2;

        if (draw() % 4 == 0 && rules.split != SPLIT_NONE)
            rules.most = (int64_t)(draw() % 10);
        for (size_t k = 0; k < sizeof buffer; k++)
            buffer[k] = (uint8_t)(is_plain ? 32 + draw() % 96 : draw());
        assert_true(tnd_cpu_use(TND_CPU_PORTABLE));
        strcpy(expected, tokens_of(text_tokenize_best(), &rules, text));
        for (int level = TND_CPU_SSE42; level < TND_CPU_LEVELS; level++)
            if (tnd_cpu_use((enum tnd_cpu_level)level))
                assert_string_equal(tokens_of(text_tokenize_best(), &rules, text), expected);
    }
}

TEST_FILE(test_text_tokens)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_are_lowered_stripped_and_split),
        cmocka_unit_test(texts_that_are_not_split_are_one_token),
        cmocka_unit_test(ill_formed_parts_become_one_replacement_each),
        cmocka_unit_test(all_instruction_sets_give_the_same),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
