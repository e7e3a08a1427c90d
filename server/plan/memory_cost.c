/* memory_cost.c - estimates from shapes how much memory shuffles and batches take. */
#include "plan/memory_cost.h"

#include "core/memory_room.h"
#include "order/planning.h"
#include "plan/batch_rows.h"

static int64_t
held_elements(const struct plan_node *node)
{
    return node->order != NULL && node->order->shuffles_in != NULL
               ? order_literal(node, node->order->shuffles_in, 0)
               : 0;
}

static int64_t
window_bytes(const struct plan_graph *graph)
{
    int64_t bytes = 0;

    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];
        int64_t here = 0;

        if (__builtin_mul_overflow(held_elements(node), (int64_t)(node->width * sizeof(uint64_t)),
                                   &here) ||
            __builtin_add_overflow(bytes, here, &bytes))
            return INT64_MAX;
        if (node->body != NULL)
            bytes += window_bytes(node->body);
    }
    return bytes;
}

/* A string takes at least its offset. Columns are padded to 64 bytes, as in a slot. -1: not known
 * from the shape. */
static int64_t
column_bytes(const struct column_spec *spec, int64_t rows)
{
    size_t value_bytes =
        spec->dtype == TUNDISH_STRING ? sizeof(int64_t) : tnd_dtype_bytes(spec->dtype);
    int64_t bytes = (int64_t)value_bytes;

    if (spec->kind != TUNDISH_DENSE || spec->rank == RANK_UNKNOWN)
        return -1;
    for (int k = 0; k < spec->rank; k++) {
        int64_t length = k == 0 && spec->shape[0] < 0 ? rows : spec->shape[k];

        if (length < 0)
            return -1;
        bytes = plan_product(bytes, length);
    }
    return bytes > INT64_MAX - 63 ? bytes : (bytes + 63) & ~INT64_C(63);
}

void
plan_memory(const struct plan *plan, struct plan_memory *ret_memory)
{
    struct plan_memory memory = { .window_bytes = window_bytes(plan->graph) };
    struct plan_rows rows;

    plan_rows(plan, &rows);
    for (uint32_t i = 0; rows.slice != 0 && i < plan->element_spec.count; i++) {
        int64_t bytes = column_bytes(&plan->element_spec.columns[i], rows.slice);

        if (bytes < 0 || memory.slice_bytes < 0)
            memory.slice_bytes = -1;
        else if (__builtin_add_overflow(memory.slice_bytes, bytes, &memory.slice_bytes))
            memory.slice_bytes = INT64_MAX;
    }
    *ret_memory = memory;
}

/* Below this amount the machine is not asked how much memory it has. */
static const uint64_t UNASKED_BYTES = 256 << 20;

static tundish_status
too_large(const struct plan *plan, const struct plan_memory *memory, const char *limit,
          uint64_t limit_bytes)
{
    struct plan_rows rows;

    plan_rows(plan, &rows);
    return tnd_fail(
        TUNDISH_E_MEMORY,
        "a batch of %lld rows needs %lld bytes for each of %u replicas, but there is room for %llu "
        "(%s): use a smaller batch_size, or allow more memory%s",
        (long long)rows.slice, (long long)memory->slice_bytes, plan->replicas,
        (unsigned long long)limit_bytes, limit,
        rows.may_be_fewer ? "; if the input has at most N rows, put `take: N` before batch" : "");
}

tundish_status
plan_memory_check(const struct plan *plan)
{
    const struct spec_deliver *deliver = &plan->stream->deliver;
    struct plan_memory memory;
    struct tnd_memory_room room;
    uint64_t step_bytes;

    plan_memory(plan, &memory);
    if (memory.slice_bytes < 0)
        return TUNDISH_OK;
    if (deliver->max_batch_bytes != 0 && (uint64_t)memory.slice_bytes > deliver->max_batch_bytes)
        return too_large(plan, &memory, "max_batch_bytes", deliver->max_batch_bytes);
    step_bytes = (uint64_t)plan_product(memory.slice_bytes, plan->replicas);
    if (deliver->memory_limit != 0 && step_bytes > deliver->memory_limit)
        return too_large(plan, &memory, "memory_limit", deliver->memory_limit);
    if (step_bytes < UNASKED_BYTES)
        return TUNDISH_OK;
    tnd_memory_room(&room);
    return step_bytes > room.bytes ? too_large(plan, &memory, room.why, room.bytes) : TUNDISH_OK;
}
