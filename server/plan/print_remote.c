/* print_remote.c - in a plan, the stores that files at URLs are read from, and how. */
#include "plan/print.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/memory.h"
#include "core/redact.h"
#include "remote/stores.h"

enum { STORES_SHOWN = 8 };

struct named_stores {
    char names[STORES_SHOWN][STORE_NAME_BYTES];
    uint32_t count, more;
};

static void
add_store(struct named_stores *stores, const char *text)
{
    struct remote_url url;
    char name[STORE_NAME_BYTES];

    if (remote_url_open(text, strlen(text), &url) != TUNDISH_OK)
        return;
    store_name(&url, name);
    remote_url_close(&url);
    for (uint32_t i = 0; i < stores->count; i++)
        if (strcmp(stores->names[i], name) == 0)
            return;
    if (stores->count < STORES_SHOWN)
        tnd_redact(strcpy(stores->names[stores->count++], name));
    else
        stores->more++;
}

static void
find_in_value(const struct spec_value *value, struct named_stores *stores)
{
    if (value == NULL)
        return;
    if (value->kind == SPEC_TEXT && spec_is_url(value->text))
        add_store(stores, value->text);
    for (uint32_t i = 0; i < value->count; i++)
        find_in_value(&value->items[i], stores);
}

static void
find_in_node(const struct plan_node *node, struct named_stores *stores)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        find_in_node(node->inputs[i], stores);
    if (node->body != NULL)
        find_in_node(node->body->root, stores);
    for (uint32_t i = 0; node->stage != NULL && i < node->stage->info->parameter_count; i++)
        if ((node->stage->info->parameters[i].types & (TYPE_PATHS | TYPE_ENTRIES)) != 0)
            find_in_value(node->stage->arguments[i], stores);
}

/* In the unit that gives a short number without a fraction. */
static void
print_size(FILE *file, uint64_t bytes)
{
    static const char *const units[] = { "B", "KiB", "MiB", "GiB", "TiB" };
    unsigned unit = 0;

    for (; bytes >= 1024 && bytes % 1024 == 0 && unit < 4; unit++)
        bytes /= 1024;
    fprintf(file, "%" PRIu64 " %s", bytes, units[unit]);
}

static void
print_fetch(const struct plan *plan, FILE *file)
{
    /* Its files every node fetches for itself: whole files are rows, which one node delivers. */
    const struct plan_node *whole = plan_find_whole_files(plan->graph);

    fputs("fetch: once: ", file);
    if (plan->options.worker_count == 1)
        fputs("there is one node, which fetches everything\n", file);
    else if (!plan_fetches_once(plan))
        fputs("files are sharded, so each has one reader anyway\n", file);
    else
        fprintf(file, "one of the %u nodes fetches a file, and sends its rows to the others\n",
                plan->options.worker_count);
    if (plan->options.worker_count > 1 && plan_fetches_once(plan) && whole != NULL)
        fprintf(file, "fetch: once: what %s reads is fetched by the nodes that deliver it\n",
                whole->name);
}

void
print_remote(const struct plan *plan, FILE *file)
{
    const struct spec_remote *remote = &plan->file->remote;
    struct named_stores stores = { .count = 0 };

    find_in_node(plan->graph->root, &stores);
    if (stores.count == 0)
        return;
    fputs("files at URLs: from", file);
    for (uint32_t i = 0; i < stores.count; i++)
        fprintf(file, "%s %s", i > 0 ? "," : "", stores.names[i]);
    if (stores.more > 0)
        fprintf(file, " and %u more", stores.more);
    fputs("; parts of ", file);
    print_size(file, remote->part_bytes);
    fprintf(file, ", at most %u requests at a time; up to ", remote->connections);
    print_size(file, remote->cache_bytes);
    if (remote->cache != NULL)
        fprintf(file, " of what came is kept in %s, for all servers of the user\n", remote->cache);
    else
        fputs(" of what came is kept until the server ends\n", file);
    if (remote->fetch_once)
        print_fetch(plan, file);
}

void
print_remote_json(const struct plan *plan, struct json *json)
{
    const struct spec_remote *remote = &plan->file->remote;
    struct named_stores stores = { .count = 0 };

    find_in_node(plan->graph->root, &stores);
    if (stores.count == 0)
        return;
    json_key(json, "remote");
    json_object(json);
    json_key(json, "stores");
    json_array(json);
    for (uint32_t i = 0; i < stores.count; i++)
        json_text(json, stores.names[i]);
    json_array_end(json);
    json_key_int(json, "part_bytes", remote->part_bytes);
    json_key_int(json, "connections", remote->connections);
    if (remote->cache != NULL)
        json_key_text(json, "cache", remote->cache);
    json_key_int(json, "cache_bytes", (int64_t)remote->cache_bytes);
    json_key_text(json, "fetch",
                  plan_fetches_once(plan) && plan->options.worker_count > 1 ? "once" : "each");
    json_object_end(json);
}
