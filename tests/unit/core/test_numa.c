/* test_numa.c - nodes as a folder tells them: the right one for a process, and threads spread. */
#include <linux/mempolicy.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/numa.h"
#include "unit/test_file.h"

static void
write_file(const char *folder, const char *name, const char *text)
{
    char path[250];
    FILE *file;

    snprintf(path, sizeof path, "%.120s/%.120s", folder, name);
    file = fopen(path, "w");
    assert_non_null(file);
    fputs(text, file);
    fclose(file);
}

static void
remove_file(const char *folder, const char *name)
{
    char path[250];

    snprintf(path, sizeof path, "%.120s/%.120s", folder, name);
    assert_return_code(remove(path), 0);
}

/* Nodes 0, 2 and 3 of a machine: 2 has no processors, only memory. */
static void
read_three(struct tnd_numa *ret_numa)
{
    static const char *const lists[][2] = { { "node0", "0-3,8-11\n" },
                                            { "node2", "\n" },
                                            { "node3", "4-7,12\n" } };
    char folder[] = "/tmp/tundish-numa-XXXXXX";

    assert_non_null(mkdtemp(folder));
    write_file(folder, "online", "0,2-3\n");
    for (size_t i = 0; i < 3; i++) {
        char name[100];

        snprintf(name, sizeof name, "%s/%s", folder, lists[i][0]);
        assert_return_code(mkdir(name, 0700), 0);
        write_file(name, "cpulist", lists[i][1]);
    }
    tnd_numa_read(folder, ret_numa);
    for (size_t i = 0; i < 3; i++) {
        char name[100];

        snprintf(name, sizeof name, "%s/cpulist", lists[i][0]);
        remove_file(folder, name);
        remove_file(folder, lists[i][0]);
    }
    remove_file(folder, "online");
    assert_return_code(rmdir(folder), 0);
}

static cpu_set_t
set_of(size_t first, size_t last)
{
    cpu_set_t set;

    CPU_ZERO(&set);
    for (size_t i = first; i <= last; i++)
        CPU_SET(i, &set);
    return set;
}

static void
nodes_with_processors_are_found(void **state)
{
    struct tnd_numa numa;
    char text[TND_NUMA_TEXT_BYTES];

    (void)state;
    read_three(&numa);
    tnd_numa_text(&numa, text);
    assert_string_equal(text, "2: 0 (processors 0-3,8-11), 3 (processors 4-7,12)");
}

static void
a_process_is_of_the_node_that_has_all_its_processors(void **state)
{
    struct tnd_numa numa;
    cpu_set_t one = set_of(5, 6), both = set_of(3, 4), none = set_of(13, 14), all = set_of(0, 12);

    (void)state;
    read_three(&numa);
    assert_int_equal(tnd_numa_node_of(&numa, &one), 3);
    assert_int_equal(tnd_numa_node_of(&numa, &both), -1);
    assert_int_equal(tnd_numa_node_of(&numa, &none), -1);
    assert_int_equal(tnd_numa_node_of(&numa, &all), -1);
    numa.count = 1; /* where there is one node, nothing is to choose */
    one = set_of(0, 1);
    assert_int_equal(tnd_numa_node_of(&numa, &one), -1);
}

static void
threads_are_spread_over_the_nodes_that_are_allowed(void **state)
{
    struct tnd_numa numa;
    cpu_set_t allowed = set_of(2, 5), near, wanted;

    (void)state;
    read_three(&numa);
    for (uint32_t i = 0; i < 4; i++) {
        tnd_numa_spread(&numa, &allowed, i, &near);
        wanted = i % 2 == 0 ? set_of(2, 3) : set_of(4, 5);
        assert_true(CPU_EQUAL(&near, &wanted));
    }
    allowed = set_of(0, 1); /* of one node: bound to no less than they were */
    tnd_numa_spread(&numa, &allowed, 1, &near);
    assert_true(CPU_EQUAL(&near, &allowed));
}

static void
a_kernel_that_tells_nothing_has_no_nodes(void **state)
{
    struct tnd_numa numa = { .count = 3 };
    char text[TND_NUMA_TEXT_BYTES];

    (void)state;
    tnd_numa_read("/nonexistent", &numa);
    assert_int_equal(numa.count, 0);
    tnd_numa_text(&numa, text);
    assert_string_equal(text, "0");
}

static void
moved_pages_keep_their_bytes_and_have_the_policy(void **state)
{
    enum { BYTES = 1 << 20 };
    struct tnd_numa numa;
    unsigned long nodes[16] = { 0 };
    int policy = -1;
    uint8_t *bytes = mmap(NULL, BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

    (void)state;
    assert_ptr_not_equal(bytes, MAP_FAILED);
    tnd_numa_read(TND_NUMA_FOLDER, &numa);
    memset(bytes, 7, BYTES);
    if (numa.count == 0 || !tnd_numa_move(bytes, BYTES, numa.nodes[0].id))
        skip(); /* the kernel has no nodes, or a filter refuses the call */
    assert_int_equal(
        syscall(SYS_get_mempolicy, &policy, nodes, 8 * sizeof nodes, bytes, MPOL_F_ADDR), 0);
    assert_int_equal(policy, MPOL_PREFERRED);
    assert_true(nodes[numa.nodes[0].id / 64] >> numa.nodes[0].id % 64 & 1);
    for (size_t i = 0; i < BYTES; i += 4096)
        assert_int_equal(bytes[i], 7);
    munmap(bytes, BYTES);
}

static void *
bind_and_look(void *ret_processors)
{
    tnd_numa_bind_thread(1);
    assert_int_equal(sched_getaffinity(0, sizeof(cpu_set_t), ret_processors), 0);
    return NULL;
}

static void
a_bound_thread_has_one_node_or_what_it_had(void **state)
{
    struct tnd_numa numa;
    cpu_set_t allowed, bound, wanted;
    pthread_t thread;

    (void)state;
    assert_int_equal(sched_getaffinity(0, sizeof allowed, &allowed), 0);
    assert_int_equal(pthread_create(&thread, NULL, bind_and_look, &bound), 0);
    pthread_join(thread, NULL);
    tnd_numa_read(TND_NUMA_FOLDER, &numa);
    tnd_numa_spread(&numa, &allowed, 1, &wanted);
    assert_true(CPU_EQUAL(&bound, &wanted));
}

static void
no_node_is_that_far(void **state)
{
    char byte;

    (void)state;
    assert_false(tnd_numa_move(&byte, 1, 100000));
}

TEST_FILE(test_numa)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nodes_with_processors_are_found),
        cmocka_unit_test(a_process_is_of_the_node_that_has_all_its_processors),
        cmocka_unit_test(threads_are_spread_over_the_nodes_that_are_allowed),
        cmocka_unit_test(a_kernel_that_tells_nothing_has_no_nodes),
        cmocka_unit_test(moved_pages_keep_their_bytes_and_have_the_policy),
        cmocka_unit_test(a_bound_thread_has_one_node_or_what_it_had),
        cmocka_unit_test(no_node_is_that_far),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
