/* records.c - lengths and gaps as base-128 numbers. */
#include "source/scan/records.h"

#include <stdlib.h>

#include "core/mapped.h"
#include "core/memory.h"
#include "core/must.h"

enum { NUMBER_BYTES = 10 }; /* bytes of a base-128 number of 64 bits */

/* The lowest seven bits first; the highest bit of a byte says that another one follows. */
static uint8_t *
put_number(uint8_t *to, uint64_t number)
{
    for (; number >= 128; number >>= 7)
        *to++ = (uint8_t)(number | 128);
    *to++ = (uint8_t)number;
    return to;
}

/* The lowest bit of the first number says whether a gap follows. In most formats the gaps are all
 * alike. */
void
record_writer_add(struct record_writer *writer, uint64_t offset, uint64_t length)
{
    uint64_t gap = offset - writer->end;
    uint8_t *to;

    must(offset >= writer->end && length <= RECORD_BYTES_MAX);
    if (writer->room - writer->used < 2 * NUMBER_BYTES) {
        writer->room = writer->room == 0 ? 4096 : 2 * writer->room;
        writer->bytes = tnd_realloc(writer->bytes, writer->room, 1);
    }
    to = put_number(writer->bytes + writer->used, length << 1 | (gap != writer->usual_gap));
    if (gap != writer->usual_gap)
        to = put_number(to, gap);
    writer->used = (size_t)(to - writer->bytes);
    writer->end = offset + length;
    writer->count++;
}

/* Returns NULL at the end of the bytes and for a number of more than ten: an index on disk may have
 * been damaged in spite of its checksum. */
static const uint8_t *
get_number(const uint8_t *at, const uint8_t *limit, uint64_t *ret_number)
{
    uint64_t number = 0;

    for (unsigned shift = 0; at < limit && shift < 64; shift += 7) {
        uint8_t byte = *at++;

        number |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) {
            *ret_number = number;
            return at;
        }
    }
    return NULL;
}

/* The same of a number that most often has one byte or two, in no order that a processor could
 * foresee: no branch depends on which. */
static inline const uint8_t *
get_short_number(const uint8_t *at, const uint8_t *limit, uint64_t *ret_number)
{
    uint64_t more, number;

    if (limit - at < 2)
        return get_number(at, limit, ret_number);
    more = at[0] >> 7;
    number = (at[0] & 127) | ((uint64_t)at[1] << 7 & -more);
    if (number >= 1 << 14) /* the second byte says that a third one follows */
        return get_number(at, limit, ret_number);
    *ret_number = number;
    return at + 1 + more;
}

bool
record_reader_next(struct record_reader *reader, uint64_t high, uint64_t *words, size_t max,
                   size_t *ret_count)
{
    size_t count = reader->left < max ? (size_t)reader->left : max;
    const uint8_t *at = reader->at;
    uint64_t end = reader->end;

    for (size_t i = 0; i < count; i++) {
        uint64_t number = 0;
        uint64_t gap = reader->usual_gap;
        uint64_t length;

        at = get_short_number(at, reader->limit, &number);
        if (at != NULL && (number & 1) != 0)
            at = get_number(at, reader->limit, &gap);
        length = number >> 1;
        /* In terms of the space left, so that nothing overflows. */
        if (at == NULL || length > RECORD_BYTES_MAX || gap > reader->end_limit - end ||
            length > reader->end_limit - end - gap)
            return false;
        words[2 * i] = end + gap;
        words[2 * i + 1] = high | length;
        end += gap + length;
    }
    reader->at = at;
    reader->end = end;
    reader->left -= count;
    *ret_count = count;
    return true;
}

bool
record_reader_pass_over(struct record_reader *reader, uint64_t count)
{
    uint64_t words[2 * RECORD_GROUP];
    size_t passed = 0;

    for (; count > 0; count -= passed)
        if (!record_reader_next(reader, 0, words, count < RECORD_GROUP ? count : RECORD_GROUP,
                                &passed))
            return false;
    return true;
}

bool
record_list_seek(const struct record_list *list, uint64_t index, struct record_reader *ret_reader)
{
    uint64_t group = index / RECORD_GROUP;
    /* Numbers have no fixed length, so a search begins at the group and reads up to RECORD_GROUP -
     * 1 records. */
    uint64_t inside = index % RECORD_GROUP;

    must(list->stride == 0 && index <= list->count);
    *ret_reader = (struct record_reader){
        .usual_gap = list->usual_gap,
        .end_limit = list->end_limit,
        .left = 0,
    };
    if (index == list->count)
        return true;
    if (list->groups[group].position > list->byte_count ||
        list->groups[group].end > list->end_limit)
        return false;
    ret_reader->at = list->bytes + list->groups[group].position;
    ret_reader->limit = list->bytes + list->byte_count;
    ret_reader->left = list->count - group * RECORD_GROUP;
    ret_reader->end = list->groups[group].end;
    return record_reader_pass_over(ret_reader, inside);
}

bool
record_list_at(const struct record_list *list, uint64_t index, uint64_t high, uint64_t *ret_words)
{
    struct record_reader reader;
    size_t count;

    must(index < list->count);
    /* Records of one length are computed. */
    if (list->stride != 0) {
        ret_words[0] = list->first_offset + index * list->stride;
        ret_words[1] = high | list->stride;
        return true;
    }
    return record_list_seek(list, index, &reader) &&
           record_reader_next(&reader, high, ret_words, 1, &count);
}

/* The last group before which no record ends after `offset`: a record that begins there is in it.
 */
static uint64_t
group_at(const struct record_list *list, uint64_t offset)
{
    uint64_t low = 0, high = record_group_count(list->count);

    while (high - low > 1) {
        uint64_t middle = low + (high - low) / 2;

        if (list->groups[middle].end <= offset)
            low = middle;
        else
            high = middle;
    }
    return low;
}

bool
record_list_find(const struct record_list *list, uint64_t offset, uint64_t *ret_index)
{
    struct record_reader reader;
    uint64_t words[2 * RECORD_GROUP];
    uint64_t index;
    size_t count = 0;

    if (list->count == 0)
        return false;
    if (list->stride != 0) {
        index = (offset - list->first_offset) / list->stride;
        if (offset < list->first_offset || (offset - list->first_offset) % list->stride != 0 ||
            index >= list->count)
            return false;
        *ret_index = index;
        return true;
    }
    index = group_at(list, offset) * RECORD_GROUP;
    if (!record_list_seek(list, index, &reader) ||
        !record_reader_next(&reader, 0, words, RECORD_GROUP, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (words[2 * i] == offset) {
            *ret_index = index + i;
            return true;
        }
    return false;
}

void
record_list_close(struct record_list *list)
{
    if (list == NULL)
        return;
    free(list->owned);
    tnd_mapped_close(list->map);
    free(list);
}
