/* test_wake.c - who is woken for what: each case is a tale of events, and what they decide. */
#include "session/wake.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "unit/test_file.h"

/* The events: P a step is pushed; T a short part is taken, S one of a step that has more, L a long
 * one; M a part was made in 1 us, O in 10 us, D in 2 ms; W a worker waits, R the poller returns, Q
 * a sleeper; + a look for room finds it, - it does not, ! a worker comes in the middle of the look
 * that follows; 0 no step waits for room; d the ring drops to half, f to more; u the lock is
 * released, z by a worker that goes to sleep; k looks wait for workers; j the time passes in which
 * a long part is recent; 2 asks if two are enough.
 *
 * The answers: letters of those that are woken (w sleeper, p poller, d dealer), or '.' for nobody.
 * W answers p or w: as what the worker waits; - answers a if the worker has to look again. */
enum { HALF = 4, WORKERS = 2 };

struct tale {
    struct wake wake;
    int64_t now_ns;
    bool misses;
    char *answers;
};

static void
answer(struct tale *tale, struct wake_whom whom)
{
    if (whom.sleeper)
        *tale->answers++ = 'w';
    if (whom.poller)
        *tale->answers++ = 'p';
    if (whom.dealer)
        *tale->answers++ = 'd';
    if (!whom.sleeper && !whom.poller && !whom.dealer)
        *tale->answers++ = '.';
}

static void
made(struct tale *tale, int64_t busy_ns)
{
    tale->now_ns += busy_ns;
    wake_on_made(&tale->wake, busy_ns, busy_ns, tale->now_ns);
}

static void
look(struct tale *tale, bool has_room)
{
    wake_on_look(&tale->wake);
    if (tale->misses)
        wake_on_missed(&tale->wake);
    if (!has_room && wake_must_look_again(&tale->wake))
        *tale->answers++ = 'a';
    wake_on_looked(&tale->wake, has_room);
    tale->misses = false;
}

static void
happen(struct tale *tale, char event)
{
    static const struct wake_whom nobody, sleeper = { .sleeper = true };
    struct wake *wake = &tale->wake;

    switch (event) {
    case 'P':
        answer(tale, wake_on_push(wake) ? wake_a_worker(wake) : nobody);
        break;
    case 'T':
        answer(tale, wake_on_take(WAKE_WORTH_NS, false) ? sleeper : nobody);
        break;
    case 'S':
        answer(tale, wake_on_take(WAKE_WORTH_NS, true) ? sleeper : nobody);
        break;
    case 'L':
        answer(tale, wake_on_take(WAKE_WORTH_NS + 1, false) ? sleeper : nobody);
        break;
    case 'M':
        made(tale, 1000);
        break;
    case 'O':
        made(tale, 10000);
        break;
    case 'D':
        made(tale, 2 * WAKE_LONG_NS);
        break;
    case 'j':
        tale->now_ns += WAKE_CALM_TIMES * 2 * WAKE_LONG_NS;
        break;
    case 'W':
        *tale->answers++ = wake_on_wait(wake) ? 'p' : 'w';
        break;
    case 'R':
        wake_on_return(wake, true);
        break;
    case 'Q':
        wake_on_return(wake, false);
        break;
    case '+':
        look(tale, true);
        break;
    case '-':
        look(tale, false);
        break;
    case '!':
        tale->misses = true;
        break;
    case '0':
        wake_on_none(wake);
        break;
    case 'd':
        wake_on_drop(wake, HALF);
        break;
    case 'f':
        wake_on_drop(wake, HALF + 1);
        break;
    case 'u':
        answer(tale, wake_due(wake));
        break;
    case 'z':
        *tale->answers++ = wake_due_dealer(wake) ? 'd' : '.';
        break;
    case 'k':
        wake_on_looks(wake);
        break;
    case '2':
        *tale->answers++ = wake_has_enough(wake, 2) ? 'y' : 'n';
        break;
    default:
        fail_msg("no event '%c'", event);
    }
}

static void
tell(const char *events, uint32_t lanes, char answers[32])
{
    struct tale tale = { .answers = answers };

    wake_open(&tale.wake, WORKERS, lanes);
    tale.wake.dealer_wakes_at = HALF;
    tale.now_ns = 1;
    for (; *events != '\0'; events++)
        happen(&tale, *events);
    *tale.answers = '\0';
}

static void
each_event_wakes_those_it_concerns(void **state)
{
    static const struct {
        const char *name, *events, *answers;
        uint32_t lanes;
    } cases[] = {
        { "a dealt step wakes a sleeper", "P", "w", 1 },
        { "and the poller too, where there is one", "WP", "pwp", 1 },
        { "the second idle worker sleeps", "WW", "pw", 1 },
        { "once the poller is back, the next one polls", "WRW", "pp", 1 },
        { "a sleeper that is back leaves the poller", "WWQW", "pww", 1 },
        { "one worker is enough for short parts", "MP", ".", 1 },
        { "and no second one stays awake", "M2W2", "ywn", 1 },
        { "nor does the last one sleep: it polls", "MWW", "wp", 1 },
        { "which then comes alone", "MWWP", "wpp", 1 },
        { "short parts of several lanes are for all", "MPWP", "wpwp", 2 },
        { "parts that are not short are for all", "OP", "w", 1 },
        { "one part that is not short calls all again", "MPOP", ".w", 1 },
        { "a long part keeps all awake", "DMP", "w", 1 },
        { "for twenty times as long, and one moment", "DjMP", ".", 1 },
        { "but no less", "DMMMP", "w", 1 },
        { "a short part that leaves nothing wakes nobody", "T", ".", 1 },
        { "one that leaves parts wakes a worker", "S", "w", 1 },
        { "and so does a part that is worth it", "L", "w", 1 },
        { "a step without room makes the next ones wake nobody", "-PP", "..", 1 },
        { "one that finds room is not enough", "-+P", ".", 1 },
        { "two are", "-++P", "w", 1 },
        { "or a ring in which no step waits", "-0P", "w", 1 },
        { "steps that find room wake nobody themselves", "+u", ".", 1 },
        { "a worker missed the room that there was: it is called", "!+uu", "w.", 1 },
        { "and by the wakeup, where one polls", "W!+u", "pwp", 1 },
        { "it missed a look in vain: look again, and call nobody", "!-u", "a.", 1 },
        { "what was missed before the last look is forgotten", "!-+u", "a.", 1 },
        { "the dealer is woken at half", "du", "d", 1 },
        { "and once", "duu", "d.", 1 },
        { "not above", "fu", ".", 1 },
        { "nor is it forgotten when steps were added since", "dfu", "d", 1 },
        { "both are due", "d!+u", "wd", 1 },
        { "who goes to sleep wakes the dealer only", "d!+zu", "dw", 1 },
        { "a look calls nobody where nobody is idle", "ku", ".", 1 },
        { "an idle one that polls, and one that sleeps", "WWku", "pwwp", 1 },
        { "also where one is enough for short parts", "MWWku", "wpp", 1 },
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char answers[32];

        tell(cases[i].events, cases[i].lanes, answers);
        if (strcmp(answers, cases[i].answers) != 0)
            fail_msg("%s: \"%s\" is answered by \"%s\", not \"%s\"", cases[i].name, cases[i].events,
                     answers, cases[i].answers);
    }
}

/* Whatever happens: nobody waits for room that a release has made and nobody looks for. As long as
 * no worker is awake, one of them polls. */
static void
one_idle_worker_polls_when_none_is_awake(void **state)
{
    (void)state;
    for (uint32_t short_parts = 0; short_parts < 2; short_parts++)
        for (uint32_t lanes = 1; lanes < 3; lanes++) {
            struct wake wake;

            wake_open(&wake, 3, lanes);
            wake_on_made(&wake, short_parts ? 1000 : 10000, 1000, 1);
            for (uint32_t i = 0; i < 3; i++)
                wake_on_wait(&wake);
            assert_int_equal(wake.idle_workers, 3);
            assert_true(wake.a_worker_polls);
        }
}

TEST_FILE(test_wake)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_event_wakes_those_it_concerns),
        cmocka_unit_test(one_idle_worker_polls_when_none_is_awake),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
