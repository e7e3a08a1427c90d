/* json_paths.h - which members lead to features: a and a.b, if a.b.c is wanted. */
#ifndef CONTENT_RECORDS_JSON_PATHS_H
#define CONTENT_RECORDS_JSON_PATHS_H

#include "content/records/example.h"

struct json_paths;

/* NULL: no feature's name has a dot. The features' names must live as long. */
struct json_paths *json_paths_open(const struct example_feature *features, uint32_t count);
void json_paths_close(struct json_paths *paths); /* accepts NULL */
uint32_t json_paths_count(const struct json_paths *paths);

/* The index of a path, or -1: nothing that is wanted lies below it. */
int32_t json_paths_find(const struct json_paths *paths, struct byte_view path);

/* A feature below a path. */
int32_t json_paths_feature(const struct json_paths *paths, uint32_t path);

#endif
