/* services.c - see services.h. */
#include "source/files/services.h"

#include <stdlib.h>
#include <unistd.h>

#include "core/cache_folder.h"
#include "core/memory.h"

void
services_open(struct source_services *services, const char *cache_folder, uint32_t reader_count)
{
    *services = (struct source_services){ .cache_folder = -1 };
    pthread_mutex_init(&services->lock, NULL);
    services->cache_path = cache_folder == NULL ? NULL : tnd_strdup(cache_folder);
    doors_open(&services->doors);
    read_ahead_open(&services->ahead, reader_count);
}

void
services_stop(struct source_services *services)
{
    read_ahead_close(&services->ahead);
}

void
services_close(struct source_services *services)
{
    doors_close(&services->doors);
    if (services->cache_folder >= 0)
        close(services->cache_folder);
    free(services->cache_text);
    free(services->cache_path);
    pthread_mutex_destroy(&services->lock);
}

tundish_status
services_cache_folder(struct source_services *services, int *ret_folder)
{
    tundish_status status;

    pthread_mutex_lock(&services->lock);
    if (services->cache_folder < 0 && services->cache_status == TUNDISH_OK) {
        services->cache_status =
            tnd_cache_folder_open(services->cache_path, &services->cache_folder);
        if (services->cache_status != TUNDISH_OK)
            services->cache_text = tnd_strdup(tnd_error_text());
    }
    status = services->cache_status;
    if (status == TUNDISH_OK)
        *ret_folder = services->cache_folder;
    else
        (void)tnd_fail(status, "%s", services->cache_text);
    pthread_mutex_unlock(&services->lock);
    return status;
}

void
services_add_damaged(struct source_services *services, const char *text)
{
    pthread_mutex_lock(&services->lock);
    services->damaged++;
    services->damage = text;
    pthread_mutex_unlock(&services->lock);
}

uint64_t
services_damaged(struct source_services *services, const char **ret_text)
{
    uint64_t damaged;

    pthread_mutex_lock(&services->lock);
    damaged = services->damaged;
    *ret_text = services->damage;
    pthread_mutex_unlock(&services->lock);
    return damaged;
}
