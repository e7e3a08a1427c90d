/* fuzz_answer.c - hostile heads of answers: a range that is taken lies within its object. */
#include <string.h>

#include "core/must.h"
#include "remote/answer.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct answer answer;

    answer_begin(&answer);
    while (bytes > 0) {
        const uint8_t *end = memchr(data, '\n', bytes);
        size_t line = end != NULL ? (size_t)(end - data) + 1 : bytes;

        answer_line(&answer, (const char *)data, line);
        data += line;
        bytes -= line;
        must(!answer.has_range || answer.first <= answer.last);
        must(!answer.has_range || !answer.has_total || answer.last < answer.total);
        must(strlen(answer.tag) < sizeof answer.tag && answer.code < 1000);
    }
    return 0;
}
