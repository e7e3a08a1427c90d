/* helper_numbers.c - what a request's references mean here: files, paths and runs. */
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/memory.h"
#include "helpers/helper_serve_private.h"
#include "order/run.h"
#include "source/file_source.h"
#include "source/files/files_private.h"

tundish_status
helper_makes_no_sense(void)
{
    return tnd_fail(TUNDISH_E_CORRUPT, "malformed request");
}

static struct own_number *
find_number(const struct numbers *numbers, uint32_t theirs)
{
    size_t at = theirs * UINT32_C(2654435761);

    if (numbers->room == 0)
        return NULL;
    for (;; at++) {
        struct own_number *entry = &numbers->table[at & (numbers->room - 1)];

        if (!entry->is_known || entry->theirs == theirs)
            return entry;
    }
}

static void
add_number(struct numbers *numbers, const struct own_number *added)
{
    struct numbers larger = { .room = numbers->room == 0 ? 64 : 2 * numbers->room,
                              .count = numbers->count };
    struct own_number *known = find_number(numbers, added->theirs);

    if (known != NULL && known->is_known) {
        *known = *added;
        return;
    }
    if (2 * (numbers->count + 1) > numbers->room) {
        larger.table = tnd_zalloc(larger.room, sizeof *larger.table);
        for (size_t i = 0; i < numbers->room; i++)
            if (numbers->table[i].is_known)
                *find_number(&larger, numbers->table[i].theirs) = numbers->table[i];
        free(numbers->table);
        *numbers = larger;
    }
    numbers->count++;
    *find_number(numbers, added->theirs) = *added;
}

static const struct own_number *
own_number(const struct numbers *numbers, uint32_t theirs)
{
    const struct own_number *found = find_number(numbers, theirs);

    return found != NULL && found->is_known ? found : NULL;
}

static const struct plan_node *
find_source(const struct plan_graph *graph, uint32_t index)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct plan_node *node = graph->nodes[i];

        if (node->index == index)
            return node->source != NULL ? node : NULL;
        if (node->body != NULL && (node = find_source(node->body, index)) != NULL)
            return node;
    }
    return NULL;
}

/* How long it is here. A file that servers read is read here by the same name: of the same size it
 * was compared when the stream was opened, by its content. */
static tundish_status
find_size(struct source_file *file, uint64_t theirs, uint64_t *ret_size)
{
    int descriptor;
    tundish_status status = file_open(file, &descriptor);
    uint64_t size;

    if (status != TUNDISH_OK)
        return status;
    if (descriptor >= 0)
        close(descriptor);
    pthread_mutex_lock(&file->services->lock);
    size = file->identity.size;
    pthread_mutex_unlock(&file->services->lock);
    if (theirs != UINT64_MAX && size != theirs)
        return tnd_fail(TUNDISH_E_DATA, "%s has %llu bytes here and %llu at the server", file->name,
                        (unsigned long long)size, (unsigned long long)theirs);
    *ret_size = size;
    return TUNDISH_OK;
}

/* With the server's sum of it. One that differs ends the helper's work for that server. */
static void
compare_sums(struct helper_connection *connection, struct own_number *number)
{
    struct source_file *file = files_file(connection->stream->files, number->own);
    uint64_t sum = atomic_load_explicit(&file->content_sum, memory_order_relaxed);

    number->is_same = sum != 0 && sum == number->sum;
    if (sum != 0 && number->sum != 0 && !number->is_same)
        connection->different = file->name;
}

/* Those of which this side has made the sum since the last request. */
static void
compare_again(struct helper_connection *connection)
{
    uint64_t made = helper_sums_count(connection->stream->sums);
    struct numbers *files = &connection->files;

    if (connection->sums_seen == made)
        return;
    connection->sums_seen = made;
    for (size_t i = 0; i < files->room; i++)
        if (files->table[i].is_known && !files->table[i].is_same)
            compare_sums(connection, &files->table[i]);
}

static tundish_status
enter_sum(struct helper_connection *connection, const struct helper_name *name)
{
    struct own_number *number = find_number(&connection->files, name->number);

    if (number == NULL || !number->is_known || name->sum == 0)
        return helper_makes_no_sense();
    number->sum = name->sum;
    compare_sums(connection, number);
    return TUNDISH_OK;
}

static tundish_status
enter_file(struct helper_connection *connection, const struct plan_node *node,
           const struct helper_name *name, const char *text)
{
    const struct record_list *list;
    struct source_file *file =
        file_source_enter(node->state, connection->stream->files,
                          (struct byte_view){ (const uint8_t *)text, strlen(text) });
    struct own_number number = { .theirs = name->number,
                                 .own = file->number,
                                 .is_known = true,
                                 .rows = UINT64_MAX,
                                 .sum = name->sum };
    tundish_status status;

    if (file->format.packing != PACKING_NONE)
        return tnd_fail(TUNDISH_E_DATA, "%s is packed", file->name);
    status = find_size(file, name->size, &number.bytes);
    /* Rows of Parquet files are found by the footer, which a scan reads. */
    if (status == TUNDISH_OK && node->source->tells_records) {
        status = scan_complete(file, connection->server->options.stop, &list);
        if (status == TUNDISH_OK)
            number.rows = list->count;
    }
    if (status != TUNDISH_OK)
        return status;
    (void)helper_sums_want(connection->stream->sums, file);
    compare_sums(connection, &number);
    add_number(&connection->files, &number);
    return TUNDISH_OK;
}

static tundish_status
enter_path(struct helper_connection *connection, const struct helper_name *name, const char *text)
{
    struct own_number number = { .theirs = name->number, .is_known = true };

    number.own = files_enter_path(connection->stream->files, text);
    add_number(&connection->paths, &number);
    return TUNDISH_OK;
}

static tundish_status
enter_name(struct helper_connection *connection, const struct helper_name *name, const char *text)
{
    const struct plan_node *node = find_source(connection->stream->plan->graph, name->node);
    tundish_status status;

    if (name->node == HELPER_NO_NODE)
        return enter_sum(connection, name);
    if (node == NULL ||
        (node->source->words != WORDS_HAVE_FILE && node->source->words != WORDS_HAVE_PATH))
        return helper_makes_no_sense();
    status = allowed_files_check(connection->stream->allowed, text);
    if (status != TUNDISH_OK)
        return status;
    return node->source->words == WORDS_HAVE_FILE ? enter_file(connection, node, name, text)
                                                  : enter_path(connection, name, text);
}

tundish_status
helper_enter_names(struct helper_connection *connection, uint32_t count, struct byte_view *from)
{
    tundish_status status = TUNDISH_OK;

    compare_again(connection);
    while (count-- > 0 && status == TUNDISH_OK) {
        struct helper_name name;
        char *text;

        if (!portable_take(from, &name, sizeof name) || name.name_bytes > from->size)
            return helper_makes_no_sense();
        text = tnd_strndup((const char *)from->data, name.name_bytes);
        from->data += name.name_bytes;
        from->size -= name.name_bytes;
        status = enter_name(connection, &name, text);
        free(text);
    }
    if (status == TUNDISH_OK && connection->different != NULL)
        status = tnd_fail(TUNDISH_E_DATA, "%s has other bytes here than at the server",
                          connection->different);
    return status;
}

/* Does a record lie in its file, with what is read after it? */
static bool
lies_within(const struct plan_node *source, const uint64_t *words, const struct own_number *number)
{
    uint64_t bytes = (uint64_t)reference_length(words) + source->source->extra_bytes;

    if (!source->source->refers_to_records)
        return words[0] < number->rows;
    return reference_length(words) <= RECORD_BYTES_MAX && bytes <= number->bytes &&
           words[0] <= number->bytes - bytes;
}

/* Put our numbers into references. Each stands in one place, since runs that were read share
 * nothing. */
static tundish_status
translate(void *user, const struct plan_node *source, uint64_t *words)
{
    struct helper_connection *connection = user;
    const struct own_number *number;

    if (source->source->words == WORDS_ARE_THE_SAME)
        return TUNDISH_OK;
    if (source->source->words == WORDS_HAVE_PATH) {
        number = words[0] <= UINT32_MAX ? own_number(&connection->paths, (uint32_t)words[0]) : NULL;
        if (number == NULL)
            return helper_makes_no_sense();
        words[0] = number->own;
        return TUNDISH_OK;
    }
    number = own_number(&connection->files, reference_file(words));
    if (number == NULL || !lies_within(source, words, number) ||
        !file_source_reads(source->state, files_file(connection->stream->files, number->own)))
        return helper_makes_no_sense();
    connection->is_unsure |= !number->is_same;
    words[1] = (uint64_t)number->own << 32 | reference_length(words);
    return TUNDISH_OK;
}

tundish_status
helper_read_elements(struct helper_connection *connection, struct byte_view from, uint64_t *words)
{
    const struct plan_node *root = connection->stream->plan->graph->root;
    const struct portable_visit visit = { translate, connection };
    tundish_status status = portable_read(&from, 1, root->width, root->run_words, words);

    if (status != TUNDISH_OK)
        return status;
    status = from.size == 0 ? portable_visit(&visit, root, words, root->width, 1)
                            : helper_makes_no_sense();
    if (status != TUNDISH_OK)
        run_words_release(words, 1, root->width, root->run_words);
    return status;
}
