/* json_parse.h - JSON objects (RFC 8259) into the arrays that example.h describes.
 *
 * A feature's name is a path: a.b is the member b of the object a, or the list of these members if
 * a is a list of objects, each of which must then have it. The values' lists have the form of the
 * feature's shape (json_form.h). null counts as missing. int64 takes integers, true and false;
 * float32 takes any number, NaN, Infinity and -Infinity; string takes strings, as UTF-8. The last
 * of two members of one name counts; where they lie on the way to a feature, and where two paths
 * lead to one, the record is bad. Members that are not asked for must still be JSON, as Python's
 * json reads it (json_scan.h).
 *
 * json_parse_printed reads the JSON that tundish prints (core/json.h): features of
 * any dtype, "nan", "inf" and "-inf" for floats, {"base64": "..."} for a string.
 */
#ifndef CONTENT_RECORDS_JSON_PARSE_H
#define CONTENT_RECORDS_JSON_PARSE_H

#include "content/records/feature_columns.h"

feature_parse json_parse, json_parse_printed;

/* The same, of objects that have no members but those asked for, each once: else they are rejected.
 */
feature_parse json_parse_exactly;

#endif
