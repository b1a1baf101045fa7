/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Options of srun, as those of pmi2x-dvm run: those that RADICAL-Pilot, executorlib and
 * libEnsemble give a step.
 */
#pragma once

#define SRUN_RUN_MAX 32 /* words for options, and "--" */

/*
 * The arguments of run for the step of this srun, to be freed, NULL at the end; *count: how
 * many. NULL: the step has other options, or is wrong: a real srun must read them.
 */
char **srun_options_read(int argc, char **argv, int *count);
