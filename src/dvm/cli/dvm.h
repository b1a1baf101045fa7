/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of pmi2x-dvm. Each gets its own name as argv[0], reads its options, and
 * returns the exit status.
 */
#pragma once

#include <stdbool.h>

int cmd_up(int argc, char **argv);
/*
 * Start a DVM as up does, which ends with its last client; paused: nothing is started until a
 * client says so. False: another DVM has the name. up_joined: a client is connected.
 */
bool up_for_batch(int argc, char **argv, bool paused);
void up_joined(void);
int cmd_down(int argc, char **argv);
int cmd_run(int argc, char **argv);
int cmd_submit(int argc, char **argv);
int cmd_batch(int argc, char **argv);
int cmd_wait(int argc, char **argv);
int cmd_ps(int argc, char **argv);
int cmd_output(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_why(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_status(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_signal(int argc, char **argv);
int cmd_drain(int argc, char **argv);
int cmd_undrain(int argc, char **argv);
int cmd_grow(int argc, char **argv);
int cmd_shrink(int argc, char **argv);
int cmd_engines(int argc, char **argv);
/* This program as srun, or as a command of PRRTE: argv[0] is its name. */
int cmd_srun(int argc, char **argv);
int cmd_prte(int argc, char **argv);
int cmd_prun(int argc, char **argv);
int cmd_pterm(int argc, char **argv);
int cmd_prte_info(int argc, char **argv);
/*
 * The command run, for srun: on this DVM. If it has not a node that the task names,
 * no_node is called, and does not return.
 */
int run_task(int argc, char **argv, const char *dvm, void (*no_node)(void));

/*
 * Tasks have been cancelled: wait until their nodes know, and say which do not in ten
 * seconds. False: all do.
 */
struct conn;
bool cancel_is_unheard(struct conn *c);
