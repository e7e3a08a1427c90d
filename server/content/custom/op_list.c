/* op_list.c - an op's lists, one after the other in scratch memory, which moves as they grow. */
#include "content/custom/op_list.h"

#include <string.h>

#include "column/literal.h"

enum { CAPACITY_MIN = 64 };

/* The most values of one list, and of all lists together: the bound keeps sums within int64. */
static const uint64_t VALUES_MAX = UINT64_C(1) << 31;

void
op_list_open(struct op_list *list, struct scratch *scratch, tundish_dtype dtype, int64_t list_count)
{
    *list = (struct op_list){
        .scratch = scratch,
        .value_bytes = literal_bytes(dtype),
        .list_count = list_count,
        .splits = scratch_array(scratch, (size_t)list_count + 1, sizeof *list->splits),
        .values = scratch_alloc(scratch, 0),
    };
}

static void
grow(struct op_list *list, int64_t needed)
{
    int64_t doubled = 2 * list->capacity;
    uint8_t *values;

    list->capacity = needed > doubled ? needed : doubled;
    if (list->capacity < CAPACITY_MIN)
        list->capacity = CAPACITY_MIN;
    values = scratch_array(list->scratch, (size_t)list->capacity, list->value_bytes);
    memcpy(values, list->values, (size_t)list->value_count * list->value_bytes);
    list->values = values;
}

/* Start lists up to `index` where the values end; skipped lists are empty. */
static void
begin_to(struct op_list *list, int64_t index)
{
    while (list->begun <= index)
        list->splits[list->begun++] = list->value_count;
}

void *
op_list_room(struct op_list *list, uint64_t index, uint64_t count)
{
    uint8_t *room;

    if (index >= (uint64_t)list->list_count || (int64_t)index < list->begun || count > VALUES_MAX ||
        (uint64_t)list->value_count + count > VALUES_MAX)
        return NULL;
    begin_to(list, (int64_t)index);
    if (list->value_count + (int64_t)count > list->capacity)
        grow(list, list->value_count + (int64_t)count);
    room = list->values + (size_t)list->value_count * list->value_bytes;
    /* The op may leave out values. */
    memset(room, 0, (size_t)count * list->value_bytes);
    list->value_count += (int64_t)count;
    return room;
}

void
op_list_append(struct op_list *list, struct column *column)
{
    begin_to(list, list->list_count);
    column->levels[column->level_count++] = (struct level){ .uniform = -1, .splits = list->splits };
    column->value_count = list->value_count;
    column->values = list->values;
}
