/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Actions of a PMIx client in pmix-exercise: each action is given the arguments behind
 * its name. A process that finds something wrong says so, and ends with 5.
 */
#pragma once

#include <pmix.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

extern pmix_proc_t me;
extern uint32_t size; /* of the job */

void check(bool good, const char *format, ...) __attribute__((format(printf, 2, 3)));
#define CHECK(call) check((call) == PMIX_SUCCESS, "%s fails", #call)

pmix_proc_t proc_of(uint32_t rank);
uint32_t get_u32(const pmix_proc_t *p, const char *key);

/* A value of this rank and round; another rank's. */
void put(int round);
void get(uint32_t rank, int round);
void fence(const pmix_proc_t procs[], size_t n, bool collect);
void fence_all(bool collect);

/* ---- exercise-group.c ---- */

void do_groups(int argc, char **argv);
void do_die_in_group(int argc, char **argv);
void do_connect(int argc, char **argv);

/* ---- exercise-event.c ---- */

void do_events(int argc, char **argv);
void do_outlive(int argc, char **argv);

/* ---- exercise-name.c ---- */

void do_names(int argc, char **argv);
void do_ranges(int argc, char **argv);
void do_wait(int argc, char **argv);
void do_limits(int argc, char **argv);

/* ---- exercise-spawn.c ---- */

void do_held(int argc, char **argv);
void do_deserted(int argc, char **argv);
void do_unspawned(int argc, char **argv);
void do_forsake(int argc, char **argv);
void do_forsaken(int argc, char **argv);
void do_strand(int argc, char **argv);
void do_stranded(int argc, char **argv);
