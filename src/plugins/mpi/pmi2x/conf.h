/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * mpi.conf, and what a job may override by its environment. options.h has the options.
 * One thread at a time.
 */
#pragma once

#include "options.h"
#include "slurm_compat.h"

/* Add our options to Slurm's list of keys (xmalloc'ed). */
void conf_options(s_p_options_t **options, int *count);

/*
 * Defaults, then the values of `table` (may be NULL). A bad value is one error
 * line and the default stays.
 */
void conf_set(struct conf *c, s_p_hashtbl_t *table);

/* An error line for each Pmi2x* key of mpi.conf that is no option. */
void conf_warn_unknown(void);

/* The values in use, as a table that Slurm sends to slurmstepd and destroys. */
s_p_hashtbl_t *conf_table(const struct conf *c);

/* The values in use for `scontrol show config`; the caller destroys the list. */
slurm_list conf_printable(const struct conf *c);

/*
 * In srun, which knows no mpi.conf: apply the job's environment (PMI2X_TREE_WIDTH and
 * others) to defaults. A bad value is an error line, where the user sees it.
 */
void conf_check(struct conf *c, char **env);

/*
 * On a node: apply the same to the values of mpi.conf, as far as the site lets a
 * job; see option_override.
 */
void conf_override(struct conf *c, char **env, const struct log_hook *log);

/*
 * The trace directory of mpi.conf, which Slurm does not give to srun: read
 * from the file, if it is here. malloc'ed; NULL: none.
 */
char *conf_trace_dir(void);

/*
 * The ports that agents listen on: Pmi2xPorts, else SrunPortRange, else a constant
 * range. All nodes that have the same mpi.conf and slurm.conf have the same ports.
 */
void conf_ports(const struct conf *c, uint16_t *first, uint16_t *last);

/* options_agreed, with the ports in use. */
void conf_agreed(const struct conf *c, char out[OPTION_TEXT_MAX]);
