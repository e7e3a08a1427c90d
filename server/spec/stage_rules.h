/* stage_rules.h - the rules that parameters in stages.def name, RULE(limits, name).
 *
 * A rule looks at its parameter's value once all arguments of the stage are checked and filled in,
 * so it may compare it with the others. It is not called for a parameter without a value. The
 * value's kind may still be wrong: that has been complained about, and the rule keeps silent.
 */
#ifndef SPEC_STAGE_RULES_H
#define SPEC_STAGE_RULES_H

#include "spec/stages.h"

/* stage_rules.c */
stage_rule rule_bucket_batch_sizes;
stage_rule rule_cycle_length;
stage_rule rule_dataset_weights;
stage_rule rule_datasets;
stage_rule rule_exclude_cols;
stage_rule rule_extensions;
stage_rule rule_field_delim;
stage_rule rule_num_shards;
stage_rule rule_padded_shapes;
stage_rule rule_padding_values;
stage_rule rule_pair;
stage_rule rule_parallel_calls;
stage_rule rule_parallel_reads;
stage_rule rule_salt;
stage_rule rule_select_cols;
stage_rule rule_shuffle_buffer;
stage_rule rule_step;

/* check_features.c: mappings whose entries have parameters of their own */
stage_rule rule_features;
stage_rule rule_program_spec;
stage_rule rule_record_defaults;
stage_rule rule_tensors;
stage_rule rule_values;

#endif
