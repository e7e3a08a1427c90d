/* rows.c - a few files, each owned by one node, and rows drawn from them. */
#include "rows.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "fibers.h"
#include "source/files/files.h"
#include "source/files/files_private.h"
#include "source/peer/peer.h"
#include "source/peer/peer_link.h"
#include "source/scan/scan.h"

enum { FILES = 32, FILE_BYTES = 64 << 10, ROUNDS = 10, ROWS = 24, ROW_BYTES_MAX = 4000 };

static const uint64_t PAUSE_NS = 40000000;

/* A node's. */
struct rows_node {
    struct peer_link link;
    struct peers *peers;
    struct source_files *files;
    struct catalogue catalogue;
};

struct rows {
    char folder[64];
    uint32_t nodes;
    struct rows_node *of;
};

static uint8_t
byte_at(uint32_t file, uint64_t offset)
{
    return (uint8_t)((offset * 7 + offset / 251 + file * 13) % 61);
}

static void
write_name(uint32_t file, char name[16])
{
    snprintf(name, 16, "part-%02u", file);
}

static void
write_file(const struct rows *rows, uint32_t number)
{
    char path[96], name[16];
    FILE *file;

    write_name(number, name);
    snprintf(path, sizeof path, "%s/%s", rows->folder, name);
    file = fopen(path, "wb");
    for (uint64_t i = 0; i < FILE_BYTES; i++)
        putc(byte_at(number, i), file);
    fclose(file);
}

struct rows *
rows_open(uint32_t nodes)
{
    struct rows *rows = calloc(1, sizeof *rows);

    rows->nodes = nodes;
    rows->of = calloc(nodes, sizeof *rows->of);
    snprintf(rows->folder, sizeof rows->folder, "/tmp/tundish-rows-XXXXXX");
    if (mkdtemp(rows->folder) == NULL)
        abort();
    for (uint32_t i = 0; i < FILES; i++)
        write_file(rows, i);
    return rows;
}

void
rows_close(struct rows *rows)
{
    for (uint32_t i = 0; i < FILES; i++) {
        char path[96], name[16];

        write_name(i, name);
        snprintf(path, sizeof path, "%s/%s", rows->folder, name);
        unlink(path);
    }
    rmdir(rows->folder);
    free(rows->of);
    free(rows);
}

/* The owners are spread over the job. */
static uint32_t
owner_of(const struct rows *rows, uint32_t file)
{
    return file * (rows->nodes / FILES + 1) % rows->nodes;
}

tundish_status
rows_join(struct rows *rows, struct link *link)
{
    struct rows_node *node = &rows->of[link_rank(link)];
    struct peers_options options = { .catalogue = &node->catalogue,
                                     .root = rows->folder,
                                     .cache_folder = rows->folder };
    const char *name;
    uint32_t owners[2];
    tundish_status status;

    for (uint32_t i = 0; i < FILES; i++) {
        char text[16];

        write_name(i, text);
        catalogue_add(&node->catalogue, text, i, owner_of(rows, i),
                      owner_of(rows, i) == link_rank(link));
    }
    status = catalogue_finish(&node->catalogue, &name, owners);
    options.transport = peer_link_transport(link, &node->link);
    if (status == TUNDISH_OK)
        status = peers_open(&options, &node->peers);
    if (status == TUNDISH_OK)
        status = source_files_open(&(struct source_files_options){ .root = rows->folder,
                                                                   .cache_folder = rows->folder,
                                                                   .peers = node->peers,
                                                                   .are_local = true },
                                   &node->files);
    return status;
}

void
rows_leave(struct rows *rows, uint32_t rank)
{
    struct rows_node *node = &rows->of[rank];

    source_files_close(node->files);
    peers_close(node->peers);
    catalogue_close(&node->catalogue);
    *node = (struct rows_node){ 0 };
}

static bool
is_right(const struct peer_rows *asked, const struct peer_row *row, uint32_t file)
{
    const uint8_t *bytes = peer_rows_find(asked, row);

    for (uint32_t i = 0; i < row->bytes; i++)
        if (bytes[i] != byte_at(file, row->offset + i))
            return false;
    return true;
}

/* Some rows of some files that other nodes have, as of a batch. */
static tundish_status
ask_once(struct rows_node *node, uint32_t rank)
{
    struct peer_row wanted[ROWS], sorted[ROWS];
    uint32_t files[ROWS], count = 0;
    struct peer_rows *asked;
    tundish_status status;

    for (uint32_t i = 0; i < ROWS; i++) {
        struct record_format format = { .scanner = &scanner_text_line };
        uint32_t number = (uint32_t)fibers_draw(FILES);
        char name[16];

        write_name(number, name);
        if (catalogue_find(&node->catalogue, name)->owner == rank)
            continue;
        files[count] = number;
        wanted[count++] = (struct peer_row){ files_enter(node->files, name, strlen(name), &format),
                                             fibers_draw(FILE_BYTES - ROW_BYTES_MAX),
                                             (uint32_t)fibers_draw(ROW_BYTES_MAX) };
    }
    memcpy(sorted, wanted, sizeof sorted);
    asked = peer_ask(node->peers, sorted, count);
    status = peer_rows_wait(asked);
    for (uint32_t i = 0; status == TUNDISH_OK && i < count; i++)
        if (!is_right(asked, &wanted[i], files[i]))
            status = tnd_fail(TUNDISH_E_DATA, "other bytes came than lie in file %u", files[i]);
    peer_rows_close(asked);
    return status;
}

tundish_status
rows_ask(struct rows *rows, struct link *link, const _Atomic int *stop)
{
    uint32_t rank = link_rank(link);
    tundish_status status = TUNDISH_OK;

    for (int i = 0; status == TUNDISH_OK && i < ROUNDS && atomic_load(stop) == 0; i++) {
        status = ask_once(&rows->of[rank], rank);
        fibers_sleep((int64_t)fibers_draw(PAUSE_NS));
    }
    return status;
}
