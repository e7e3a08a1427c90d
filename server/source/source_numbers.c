/* source_numbers.c - integers that a file lists, another file in each epoch.
 *
 * So a program may decide an order while the stream runs: it writes an epoch's list when that epoch
 * begins. A reader waits until then.
 *
 * Words of an element: the number, zero.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/clock.h"
#include "core/memory.h"
#include "source/files/files_private.h"
#include "source/rows/tensor_literal.h"
#include "source/source.h"
#include "source/variable.h"

enum { LOOK_MS = 10 };

static const char EPOCH[] = "{epoch}";

struct numbers {
    const char *file; /* with {epoch} in it */
};

struct numbers_state {
    struct tensor list;
    bool is_read;
    bool is_over; /* it could not be read */
    uint64_t taken;
};

static struct numbers_state *
state_of(struct order_iterator *iterator)
{
    return (struct numbers_state *)iterator->state;
}

static tundish_status
numbers_open(void *state, const struct stage_config *config, struct schema *ret_schema)
{
    struct numbers *numbers = state;

    numbers->file = spec_text(config->stage, "file");
    if (strstr(numbers->file, EPOCH) == NULL)
        return stage_complain(config,
                              "numbers: '%s' needs {epoch}, the number of the epoch, in its name: "
                              "for one list in all epochs take rows after range",
                              numbers->file);
    schema_add(ret_schema, source_column_name(config), TUNDISH_INT64);
    return TUNDISH_OK;
}

static void
numbers_close(void *state)
{
    (void)state;
}

static tundish_status
numbers_iterate(struct order_iterator *iterator)
{
    (void)iterator;
    return TUNDISH_OK;
}

static void
numbers_iterate_close(struct order_iterator *iterator)
{
    tensor_close(&state_of(iterator)->list);
}

/* The file of the iterator's epoch, with its folder. The caller frees it. */
static char *
path_of(const struct order_iterator *iterator)
{
    const struct numbers *numbers = iterator->node->state;
    const char *name = numbers->file, *epoch = strstr(name, EPOCH);
    const char *root = files_root(iterator->instance->services->files);
    const char *slash = name[0] == '/' ? "" : "/";

    return tnd_sprintf("%s%s%.*s%" PRIu64 "%s", *slash == '\0' ? "" : root, slash,
                       (int)(epoch - name), name, iterator->iterator_number, epoch + strlen(EPOCH));
}

/* The program may be in the midst of an epoch still, for as long as it likes. Stats report the time
 * while it passes, as that of waiting for a program. */
static tundish_status
await(const char *path, struct source_services *services, const _Atomic int *stop)
{
    const struct timespec pause = { .tv_nsec = LOOK_MS * 1000000L };

    while (access(path, F_OK) != 0) {
        int64_t began_ns = tnd_clock_ns();

        if (errno != ENOENT)
            return tnd_fail_errno(errno, "%s cannot be opened", path);
        if (stop != NULL && atomic_load_explicit(stop, memory_order_relaxed) != 0)
            return tnd_fail(TUNDISH_STOPPED, "stopped while %s was not there", path);
        nanosleep(&pause, NULL);
        count_up(&services->counters.program_wait_ns, (uint64_t)(tnd_clock_ns() - began_ns));
    }
    return TUNDISH_OK;
}

static tundish_status
read_list(struct order_iterator *iterator, const char *path)
{
    struct tensor *list = &state_of(iterator)->list;
    tundish_status status = tensor_open_file(path, list);

    if (status != TUNDISH_OK) {
        char *reason = tnd_strdup(tnd_error_text());

        order_fail(iterator, status, "%s: %s", path, reason);
        free(reason);
        return status;
    }
    if (list->rank != 1 || list->dtype != TUNDISH_INT64)
        return order_fail(iterator, TUNDISH_E_DATA,
                          "%s: a list is one row of int64, and this file has %s of %d dimensions",
                          path, tnd_dtype_name(list->dtype), list->rank);
    return TUNDISH_OK;
}

/* On first use. */
static enum order_result
prepare(struct order_iterator *iterator)
{
    struct numbers_state *state = state_of(iterator);
    tundish_status status;
    char *path;

    if (state->is_read || state->is_over)
        return state->is_read ? ORDER_OK : ORDER_END;
    path = path_of(iterator);
    status = await(path, files_services(iterator->instance->services->files),
                   iterator->instance->services->stop);
    if (status == TUNDISH_OK)
        status = read_list(iterator, path);
    free(path);
    state->is_read = status == TUNDISH_OK;
    state->is_over = status != TUNDISH_OK && status != TUNDISH_STOPPED;
    return status == TUNDISH_OK ? ORDER_OK : ORDER_FAILED;
}

static enum order_result
numbers_next(struct order_iterator *iterator, uint64_t *words, size_t max, size_t *ret_count)
{
    struct numbers_state *state = state_of(iterator);
    enum order_result result = prepare(iterator);
    const int64_t *list = state->list.values;
    uint64_t left;

    if (result != ORDER_OK)
        return result;
    left = (uint64_t)state->list.value_count - state->taken;
    *ret_count = left < max ? (size_t)left : max;
    for (size_t i = 0; i < *ret_count; i++) {
        words[SOURCE_WIDTH * i] = (uint64_t)list[state->taken++];
        words[SOURCE_WIDTH * i + 1] = 0;
    }
    return *ret_count > 0 ? ORDER_OK : ORDER_END;
}

static enum order_result
numbers_pass_over(struct order_iterator *iterator, uint64_t count, uint64_t *ret_passed)
{
    struct numbers_state *state = state_of(iterator);
    enum order_result result = prepare(iterator);
    uint64_t left;

    *ret_passed = 0;
    if (result != ORDER_OK)
        return result;
    left = (uint64_t)state->list.value_count - state->taken;
    *ret_passed = count < left ? count : left;
    state->taken += *ret_passed;
    return *ret_passed == count ? ORDER_OK : ORDER_END;
}

static tundish_status
numbers_read(const void *state, const struct source_read *read)
{
    int64_t *values = frame_values(read->output, 0, (size_t)read->count * sizeof *values);

    (void)state;
    for (int64_t i = 0; i < read->count; i++)
        values[i] = (int64_t)read->words[(size_t)i * read->stride];
    column_set_scalars(&read->output->columns[0], read->count, values);
    return TUNDISH_OK;
}

static void
numbers_tell(const void *state, struct source_files *files, const uint64_t *words,
             struct whereabouts *ret_where)
{
    (void)state;
    (void)files;
    ret_where->number_name = "value";
    ret_where->number = (int64_t)words[0];
}

const struct source_ops source_numbers = {
    .name = "numbers",
    .order = { .name = "numbers",
               .remembers = true, /* no pass tells anything of another */
               .counts_iterators = true,
               .state_bytes = sizeof(struct numbers_state),
               .open = numbers_iterate,
               .next = numbers_next,
               .close = numbers_iterate_close,
               .pass_over = numbers_pass_over },
    .tell = numbers_tell,
    .words = WORDS_ARE_THE_SAME,
    .state_bytes = sizeof(struct numbers),
    .open = numbers_open,
    .read = numbers_read,
    .reads_files = false,
    .close = numbers_close,
};
