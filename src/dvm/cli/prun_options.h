/* SPDX-License-Identifier: BSD-3-Clause */
/* Options of prun, as those of pmi2x-dvm run: those that RADICAL-Pilot gives, and a few more. */
#pragma once

/*
 * The arguments of run for the program of this prun, NULL at the end; *count: how many. The
 * caller frees the array and the words. Errors end the program, with status 2. *dvm: the name
 * of the DVM, to be freed, or NULL: it was not given.
 */
char **prun_options_read(int argc, char **argv, int *count, char **dvm);
