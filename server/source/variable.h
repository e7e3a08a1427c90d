/* variable.h - $name where a source stands: a column of the outer element, or a word about the
 * distribution.
 *
 * The order side knows both from its instance. The content side gets outer elements in a frame, and
 * the distribution in one word that the order side puts into each reference.
 */
#ifndef SOURCE_VARIABLE_H
#define SOURCE_VARIABLE_H

#include "source/source.h"

/* The name of the only column: `name:`, else "value". */
const char *source_column_name(const struct stage_config *config);

/* The column that a variable means, described as an element's column: of the outer element, or an
 * int32 scalar for the variables of the distribution. Complains about a name that means nothing. */
tundish_status variable_spec(const struct stage_config *config, const struct spec_value *value,
                             struct column_spec *ret_spec);

/* Complain unless the variable is a scalar integer. */
tundish_status variable_check_integer(const struct stage_config *config,
                                      const struct spec_value *value);

/* The same for a string. */
tundish_status variable_check_text(const struct stage_config *config,
                                   const struct spec_value *value);

/* Does the variable mean something of the distribution, rather than a column of `outer` (may be
 * NULL)? */
bool variable_is_distribution(const struct spec_value *value, const struct schema *outer);

/* The part of the distribution that read needs, in one word; and a variable's value by it. */
uint64_t variable_pack(const struct order_services *services);
int32_t variable_unpack(const struct spec_value *value, uint64_t packed);

/* The outer column of that name for the elements of `frame`, from the nearest level that has one;
 * the plan has made sure that there is one. */
const struct column *variable_column(const struct frame *frame, const char *name);

#endif
