/* yaml_reader.h - YAML text to a tree of values with positions.
 *
 * Mappings, lists, scalars, quotes and !!binary of YAML 1.2; anchors, aliases, merges, other tags,
 * directives and several documents are refused. Text that cannot be understood is complained about
 * and SPEC_BROKEN stands for it, so that everything else can still be checked.
 */
#ifndef SPEC_YAML_READER_H
#define SPEC_YAML_READER_H

#include "spec/spec.h"
#include "spec/spec_memory.h"

enum { YAML_BYTES_MAX = 16 << 20, YAML_DEPTH_MAX = 64, YAML_VALUES_MAX = 1 << 20 };

/* E_PIPELINE: the text breaks YAML's rules or a limit, so that there is no tree. Complaints about
 * single values leave the status OK: look at errors->count. */
tundish_status yaml_read(const char *text, size_t text_bytes, struct spec_memory *memory,
                         struct spec_errors *errors, struct spec_value *ret_root);

#endif
