/* sentence.c - names of readers, shares in percent, and a verdict filled in. */
#include "watch/sentence.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
watch_percent(double of_one)
{
    return (int)(of_one * 100 + 0.5) > 100 ? 100 : (int)(of_one * 100 + 0.5);
}

const char *
watch_node(const struct watch_snapshot *snapshot)
{
    return snapshot->copy.header->node;
}

/* "replica 2 on node b". */
void
watch_name_reader(const struct watch_scene *scene, const struct watch_set *reader,
                  char text[WATCH_NAME_BYTES])
{
    char replica[16], group[64];
    bool is_default;

    watch_label(reader, "replica", replica, sizeof replica);
    watch_label(reader, "group", group, sizeof group);
    is_default = group[0] == '\0' || strcmp(group, "default") == 0;
    snprintf(text, WATCH_NAME_BYTES, "replica %s%s%s on node %.63s", replica,
             is_default ? "" : " of group ", is_default ? "" : group, watch_node(scene->now));
}

/* "replica 2 on node b waits 38% of its time", with which every sentence about waiting begins. */
void
watch_name_waiting(const struct watch_scene *scene, char text[WATCH_WAITING_BYTES])
{
    char who[WATCH_NAME_BYTES];

    watch_name_reader(scene, scene->waits_most, who);
    snprintf(text, WATCH_WAITING_BYTES, "%s waits %d%% of its time", who,
             watch_percent(scene->wait_share));
}

void
watch_say(struct watch_verdict *verdict, enum watch_level level, enum watch_cause cause,
          const char *advice, const char *format, ...)
{
    va_list arguments;

    verdict->level = level;
    verdict->cause = cause;
    va_start(arguments, format);
    vsnprintf(verdict->sentence, sizeof verdict->sentence, format, arguments);
    va_end(arguments);
    snprintf(verdict->advice, sizeof verdict->advice, "%s", advice);
}

/* How busy it is that others wait for. */
void
watch_blame(struct watch_verdict *verdict, const char *culprit, double share_of_time)
{
    snprintf(verdict->culprit, sizeof verdict->culprit, "%s", culprit);
    verdict->share = share_of_time < 1 ? share_of_time : 1; /* runs are counted when they end */
}

void
watch_blame_replica(struct watch_verdict *verdict, const struct watch_set *reader,
                    double share_of_time)
{
    char replica[16];

    watch_label(reader, "replica", replica, sizeof replica);
    watch_blame(verdict, replica, share_of_time);
}
