/* fuzz_csv.c - hostile CSV records: every instruction set cuts alike, and as the plain reader. */
#include <stdlib.h>
#include <string.h>

#include "content/records/csv_cut.h"
#include "core/cpu.h"
#include "core/must.h"

enum { CAPACITY = 40 };

static void
compare_with_plain(const struct csv_rules *rules, struct byte_view record, const uint32_t *ends,
                   int64_t count, struct scratch *scratch)
{
    struct byte_view fields[CAPACITY];
    const char *problem = NULL;
    int64_t plain = csv_fields(rules, record, scratch, fields, CAPACITY, &problem);

    must(plain == count || (record.size == 0 && plain == 0));
    for (int64_t i = 0; i < plain && i < CAPACITY; i++) {
        uint32_t begin = i == 0 ? 0 : ends[i - 1] + 1;

        must(fields[i].size == ends[i] - begin);
        must(fields[i].size == 0 || fields[i].data == record.data + begin);
    }
}

static void
cut(const struct csv_rules *rules, struct byte_view record, struct scratch *scratch)
{
    csv_cut *cuts[2];
    uint32_t ends[2][CAPACITY + CSV_CUT_SLACK];
    struct byte_view fields[CAPACITY];
    const char *problem = NULL;
    int64_t counts[2];

    must(tnd_cpu_use(TND_CPU_PORTABLE));
    cuts[0] = csv_cut_best();
    must(tnd_cpu_use(tnd_cpu_best()));
    cuts[1] = csv_cut_best();
    for (int i = 0; i < 2; i++)
        counts[i] = cuts[i](rules, record, ends[i], CAPACITY);
    must(counts[0] == counts[1]);
    if (counts[0] > 0)
        must(memcmp(ends[0], ends[1],
                    (size_t)(counts[0] < CAPACITY ? counts[0] : CAPACITY) * sizeof **ends) == 0);
    if (counts[0] >= 0 && counts[0] <= CAPACITY)
        compare_with_plain(rules, record, ends[0], counts[0], scratch);
    else if (csv_fields(rules, record, scratch, fields, CAPACITY, &problem) < 0)
        must(problem != NULL);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static const uint8_t delimiters[] = { ',', '\t', ';', '"' };
    uint32_t select[] = { 1, 3 };
    struct csv_rules rules;
    struct scratch *scratch;
    uint8_t *copy;

    if (bytes == 0)
        return 0;
    rules = (struct csv_rules){ .delimiter = delimiters[data[0] & 3],
                                .quotes = (data[0] & 4) != 0,
                                .is_dataset = (data[0] & 8) != 0 };
    copy = malloc(bytes - 1 + 64);
    memcpy(copy, data + 1, bytes - 1);
    memset(copy + bytes - 1, ',', 64);
    scratch = scratch_open();
    cut(&rules, (struct byte_view){ copy, bytes - 1 }, scratch);
    rules.select = select;
    rules.select_count = 2;
    {
        struct byte_view fields[2];
        const char *problem = NULL;
        int64_t count =
            csv_fields(&rules, (struct byte_view){ copy, bytes - 1 }, scratch, fields, 2, &problem);

        must(count <= 2 && (count >= 0 || problem != NULL));
    }
    scratch_close(scratch);
    free(copy);
    return 0;
}
