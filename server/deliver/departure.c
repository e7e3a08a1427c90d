/* departure.c - the tables of departure.h. */
#include "deliver/departure.h"

const struct departure departures_of_replicas[] = {
    [DEPARTED_FINISHED] = { .in_order = true },
    [DEPARTED_CLOSED] = { .in_order = true },
    [DEPARTED_EARLY] = { .in_order = true,
                         .awaits = true,
                         .warning = "has closed its reader before the end; the other replicas of "
                                    "its group can take only as many batches as there are slots, "
                                    "and the group ends if no replacement attaches within ",
                         .tells_of_rejoin = true },
    [DEPARTED_KILLED] = { .warns_group = true,
                          .awaits = true,
                          .warning = "has died; its batches wait for a replacement" },
};

const struct departure departures_of_queue[] = {
    [DEPARTED_FINISHED] = { .in_order = true },
    [DEPARTED_CLOSED] = { .in_order = true },
    [DEPARTED_EARLY] = { .in_order = true },
    [DEPARTED_KILLED] = { .warning = "has died; the batches it held are offered to the others" },
};

const struct departure departures_of_evaluation[] = {
    [DEPARTED_FINISHED] = { .in_order = true },
    [DEPARTED_CLOSED] = { .in_order = true },
    [DEPARTED_EARLY] = { .in_order = true },
    [DEPARTED_KILLED] = { .warning = "has died; its unfinished shards go to others" },
};

const struct group_departure group_departures[] = {
    [GROUP_GONE] = { TND_LOST, TUNDISH_E_PEER_LOST },
    [GROUP_SILENT] = { TND_DETACHED, TUNDISH_E_DETACHED },
    [GROUP_MOVED] = { TND_LOST, TUNDISH_E_PEER_LOST },
    [GROUP_YIELDS] = { TND_LOST, TUNDISH_E_PEER_LOST },
};
