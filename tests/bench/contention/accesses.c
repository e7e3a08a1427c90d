/* accesses.c - what the compiler calls at each access of a program built with -fsanitize=thread:
 * counts atomic read-modify-writes, and cache lines that go from one thread to another.
 *
 * Each line remembers the thread that wrote it last, which bytes that wrote, and which threads have
 * had it since. A line that a thread does not have has to come from the one that wrote it: a move.
 * If it never uses a byte that was written, the line moved for nothing: it lies beside something of
 * another thread's. Two addresses 256 MiB apart share an entry, and the later one takes it: a few
 * moves are missed then. Not seen are libraries, what the kernel writes (pread), and other
 * processes.
 */
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

#include "sites.h"

enum { LINE = 64, LINES = 1 << 22, THREADS = 64 };

struct line {
    _Atomic uint64_t number; /* of the line; 0: unused; UINT64_MAX: being changed */
    uint64_t written;        /* bit i: the last writer wrote byte i */
    uint64_t has, used;      /* bit i: thread i has it; has used a byte that was written */
    const void *writer_place;
    struct count_site *last_move;
    uint32_t writer; /* 0: nobody wrote it yet */
};

static struct line *lines;
static _Atomic uint32_t thread_count;

static _Thread_local __attribute__((tls_model("initial-exec"))) struct {
    uint32_t id; /* 1 .. THREADS - 1 */
    uintptr_t stack, stack_end;
} mine;

__attribute__((constructor(102))) static void
open_lines(void)
{
    void *bytes = mmap(NULL, LINES * sizeof *lines, PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

    if (bytes != MAP_FAILED && sites_all() != NULL)
        lines = bytes;
}

static void
begin_thread(void)
{
    pthread_attr_t attributes;
    void *stack;
    size_t bytes;

    mine.id = 1 + atomic_fetch_add(&thread_count, 1) % (THREADS - 1);
    if (pthread_getattr_np(pthread_self(), &attributes) != 0)
        return;
    if (pthread_attr_getstack(&attributes, &stack, &bytes) == 0) {
        mine.stack = (uintptr_t)stack;
        mine.stack_end = mine.stack + bytes;
    }
    pthread_attr_destroy(&attributes);
}

struct access {
    uintptr_t address;
    uint64_t bytes; /* bit i: byte i of the line */
    bool writes;
    const void *place;
};

static void
count_move(struct line *line, const struct access *access, bool apart)
{
    struct count_site *move = sites_count(SITE_MOVE, access->place, line->writer_place);

    line->last_move = move;
    if (move == NULL)
        return;
    sites_add(&move->count, 1);
    sites_add(&move->apart, apart);
    sites_add(&move->to_write, access->writes);
}

/* The line is taken from those that have it: some of them may never have used what it came for. */
static void
take_from_all(struct line *line, const struct access *access)
{
    uint64_t in_vain = line->has & ~line->used & ~(UINT64_C(1) << line->writer);

    if (in_vain != 0 && line->writer != 0 && line->last_move != NULL)
        sites_add(&line->last_move->apart, (uint64_t)__builtin_popcountll(in_vain));
    line->writer = mine.id;
    line->writer_place = access->place;
    line->written = access->bytes;
    line->has = line->used = UINT64_C(1) << mine.id;
}

static void
look_at_line(struct line *line, const struct access *access)
{
    uint64_t me = UINT64_C(1) << mine.id;
    bool uses = (line->written & access->bytes) != 0;

    if (line->writer != 0 && (line->has & me) == 0)
        count_move(line, access, access->writes && !uses);
    if (access->writes && line->has == me && line->writer == mine.id)
        line->written |= access->bytes;
    else if (access->writes)
        take_from_all(line, access);
    line->has |= me;
    line->used |= uses ? me : 0;
}

static void
look_at(const struct access *access)
{
    uint64_t number = access->address / LINE;
    struct line *line = &lines[number % LINES];
    uint64_t old;

    do
        old = atomic_exchange_explicit(&line->number, UINT64_MAX, memory_order_acquire);
    while (old == UINT64_MAX);
    if (old != number) {
        line->writer = 0;
        line->written = line->has = line->used = 0;
        line->last_move = NULL;
    }
    look_at_line(line, access);
    atomic_store_explicit(&line->number, number, memory_order_release);
}

static inline void
see(const volatile void *pointer, size_t size, bool writes, const void *place)
{
    uintptr_t address = (uintptr_t)pointer, end = address + size;

    if (lines == NULL || mine.id == 0)
        return;
    if (address >= mine.stack && address < mine.stack_end)
        return;
    while (address < end) {
        uintptr_t line_end = (address / LINE + 1) * LINE;
        uintptr_t part_end = end < line_end ? end : line_end;
        uint64_t bits =
            part_end - address == LINE ? UINT64_MAX : (UINT64_C(1) << (part_end - address)) - 1;

        look_at(&(struct access){ address, bits << address % LINE, writes, place });
        address = part_end;
    }
}

static void
count_atomic(const void *place)
{
    struct count_site *site = lines == NULL ? NULL : sites_count(SITE_ATOMIC, place, NULL);

    if (site != NULL)
        sites_add(&site->count, 1);
}

#define PLACE __builtin_return_address(0)
#define HOOK __attribute__((visibility("default"))) void

#define PLAIN(size)                                                                                \
    HOOK __tsan_read##size(void *p);                                                               \
    HOOK __tsan_write##size(void *p);                                                              \
    HOOK __tsan_unaligned_read##size(void *p);                                                     \
    HOOK __tsan_unaligned_write##size(void *p);                                                    \
    HOOK __tsan_volatile_read##size(void *p);                                                      \
    HOOK __tsan_volatile_write##size(void *p);                                                     \
    HOOK __tsan_read##size(void *p)                                                                \
    {                                                                                              \
        see(p, size, false, PLACE);                                                                \
    }                                                                                              \
    HOOK __tsan_write##size(void *p)                                                               \
    {                                                                                              \
        see(p, size, true, PLACE);                                                                 \
    }                                                                                              \
    HOOK __tsan_unaligned_read##size(void *p)                                                      \
    {                                                                                              \
        see(p, size, false, PLACE);                                                                \
    }                                                                                              \
    HOOK __tsan_unaligned_write##size(void *p)                                                     \
    {                                                                                              \
        see(p, size, true, PLACE);                                                                 \
    }                                                                                              \
    HOOK __tsan_volatile_read##size(void *p)                                                       \
    {                                                                                              \
        see(p, size, false, PLACE);                                                                \
    }                                                                                              \
    HOOK __tsan_volatile_write##size(void *p)                                                      \
    {                                                                                              \
        see(p, size, true, PLACE);                                                                 \
    }

PLAIN(1)
PLAIN(2)
PLAIN(4)
PLAIN(8)
PLAIN(16)

HOOK __tsan_init(void);
HOOK __tsan_func_entry(void *caller);
HOOK __tsan_func_exit(void);
HOOK __tsan_read_range(void *p, size_t size);
HOOK __tsan_write_range(void *p, size_t size);
HOOK __tsan_atomic_thread_fence(int order);
HOOK __tsan_atomic_signal_fence(int order);

HOOK
__tsan_init(void)
{
}

/* A thread begins here and not at its first access, which may be an allocator's: this allocates. */
HOOK
__tsan_func_entry(void *caller)
{
    (void)caller;
    if (lines != NULL && mine.id == 0)
        begin_thread();
}

HOOK
__tsan_func_exit(void)
{
}
HOOK
__tsan_read_range(void *p, size_t size)
{
    see(p, size, false, PLACE);
}
HOOK
__tsan_write_range(void *p, size_t size)
{
    see(p, size, true, PLACE);
}
HOOK
__tsan_atomic_signal_fence(int order)
{
    (void)order;
}

HOOK
__tsan_atomic_thread_fence(int order)
{
    (void)order;
    count_atomic(PLACE);
    atomic_thread_fence(memory_order_seq_cst);
}

/* A store that is sequentially consistent is an exchange on x86-64, and counts as one. */
#define CHANGE(bits, name, call)                                                                   \
    __attribute__((visibility("default"))) uint##bits##_t __tsan_atomic##bits##_##name(            \
        volatile _Atomic uint##bits##_t *p, uint##bits##_t value, int order);                      \
    uint##bits##_t __tsan_atomic##bits##_##name(volatile _Atomic uint##bits##_t *p,                \
                                                uint##bits##_t value, int order)                   \
    {                                                                                              \
        (void)order;                                                                               \
        see(p, sizeof value, true, PLACE);                                                         \
        count_atomic(PLACE);                                                                       \
        return call(p, value);                                                                     \
    }

#define COMPARE(bits, name)                                                                        \
    __attribute__((visibility("default"))) int __tsan_atomic##bits##_##name(                       \
        volatile _Atomic uint##bits##_t *p, uint##bits##_t *old, uint##bits##_t value, int order,  \
        int order_of_failure);                                                                     \
    int __tsan_atomic##bits##_##name(volatile _Atomic uint##bits##_t *p, uint##bits##_t *old,      \
                                     uint##bits##_t value, int order, int order_of_failure)        \
    {                                                                                              \
        (void)order;                                                                               \
        (void)order_of_failure;                                                                    \
        see(p, sizeof value, true, PLACE);                                                         \
        count_atomic(PLACE);                                                                       \
        return atomic_compare_exchange_strong(p, old, value);                                      \
    }

#define ATOMIC(bits)                                                                               \
    __attribute__((visibility("default"))) uint##bits##_t __tsan_atomic##bits##_load(              \
        const volatile _Atomic uint##bits##_t *p, int order);                                      \
    uint##bits##_t __tsan_atomic##bits##_load(const volatile _Atomic uint##bits##_t *p, int order) \
    {                                                                                              \
        (void)order;                                                                               \
        see(p, sizeof *p, false, PLACE);                                                           \
        return atomic_load(p);                                                                     \
    }                                                                                              \
    HOOK __tsan_atomic##bits##_store(volatile _Atomic uint##bits##_t *p, uint##bits##_t value,     \
                                     int order);                                                   \
    HOOK __tsan_atomic##bits##_store(volatile _Atomic uint##bits##_t *p, uint##bits##_t value,     \
                                     int order)                                                    \
    {                                                                                              \
        see(p, sizeof value, true, PLACE);                                                         \
        if (order == __ATOMIC_SEQ_CST)                                                             \
            count_atomic(PLACE);                                                                   \
        atomic_store(p, value);                                                                    \
    }                                                                                              \
    CHANGE(bits, exchange, atomic_exchange)                                                        \
    CHANGE(bits, fetch_add, atomic_fetch_add)                                                      \
    CHANGE(bits, fetch_sub, atomic_fetch_sub)                                                      \
    CHANGE(bits, fetch_and, atomic_fetch_and)                                                      \
    CHANGE(bits, fetch_or, atomic_fetch_or)                                                        \
    CHANGE(bits, fetch_xor, atomic_fetch_xor)                                                      \
    COMPARE(bits, compare_exchange_strong)                                                         \
    COMPARE(bits, compare_exchange_weak)

ATOMIC(8)
ATOMIC(16)
ATOMIC(32)
ATOMIC(64)

/* The compiler leaves these to libraries. Not by memcpy itself, or the loop would become a call. */
__attribute__((visibility("default"))) void *
memcpy(void *restrict to, const void *restrict from, size_t size)
{
    void *result = to;

    see(from, size, false, PLACE);
    see(to, size, true, PLACE);
    __asm__ __volatile__("rep movsb" : "+D"(to), "+S"(from), "+c"(size) : : "memory");
    return result;
}

__attribute__((visibility("default"))) void *
memset(void *to, int value, size_t size)
{
    void *result = to;

    see(to, size, true, PLACE);
    __asm__ __volatile__("rep stosb" : "+D"(to), "+c"(size) : "a"(value) : "memory");
    return result;
}
