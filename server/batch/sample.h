/* sample.h - the first elements of a stage's input, made while the plan is: for stages that must
 * see some to say what they give.
 */
#ifndef BATCH_SAMPLE_H
#define BATCH_SAMPLE_H

#include "plan/plan.h"

/* For plan_options.sample. Plans the stages before this one as one worker, whatever the job, so
 * that all nodes see the same elements; refuses where that would wait for others (URLs, files:
 * local). Reads what the first elements take, and keeps nothing. */
stage_sample sample_input;

#endif
