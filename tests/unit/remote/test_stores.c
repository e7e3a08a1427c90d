/* test_stores.c - the list of stores: names, and threads that find them at the same time. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "remote/stores.h"
#include "unit/test_file.h"

enum { THREADS = 4, NAMES = 40, STORES_MOST = 16 };

static struct store *
find(const char *name)
{
    struct remote_url url;
    struct store *store;

    assert_int_equal(remote_url_open(name, strlen(name), &url), TUNDISH_OK);
    store = stores_find(&url);
    remote_url_close(&url);
    return store;
}

static void *
find_all(void *context)
{
    struct store **found = context;

    for (unsigned i = 0; i < NAMES; i++) {
        char name[64];

        snprintf(name, sizeof name, "s3://bucket-%u/key", i);
        found[i] = find(name);
    }
    return NULL;
}

static void
all_threads_find_the_same_stores(void **state)
{
    static struct store *found[THREADS][NAMES];
    pthread_t threads[THREADS];
    unsigned count = 0;

    (void)state;
    for (unsigned i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, find_all, found[i]), 0);
    for (unsigned i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    for (unsigned i = 0; i < THREADS; i++)
        assert_memory_equal(found[i], found[0], sizeof found[0]);
    for (struct store *store = stores_next(NULL); store != NULL; store = stores_next(store)) {
        count++;
        for (struct store *other = stores_next(store); other != NULL; other = stores_next(other))
            assert_string_not_equal(store->name, other->name);
    }
    assert_in_range(count, 2, STORES_MOST);
    assert_string_equal(found[0][NAMES - 1]->name, "others");
    assert_ptr_equal(found[0][NAMES - 1], found[0][NAMES - 2]);
}

static void
names_end_with_the_host_and_early(void **state)
{
    char host[201], name[300], got[STORE_NAME_BYTES];
    struct remote_url url = { .name = name };

    (void)state;
    strcpy(name, "http://user:secret@host:81/a@b");
    store_name(&url, got);
    assert_string_equal(got, "http://host:81");
    memset(host, 'h', 200);
    host[200] = '\0';
    snprintf(name, sizeof name, "s3://%s/key", host);
    store_name(&url, got);
    assert_int_equal(strlen(got), STORE_NAME_BYTES - 1);
    assert_memory_equal(got, name, STORE_NAME_BYTES - 1);
}

TEST_FILE(test_stores)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_threads_find_the_same_stores),
        cmocka_unit_test(names_end_with_the_host_and_early),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
