/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * PMIx for the tasks of a node: whether it is offered, and the variables that say so.
 * They are known before a server is: most steps never have one.
 */
#pragma once

#include "launch_env.h"
#include "libutil/log.h"
#include "options.h"
#include "supervisor/pmix_library.h"
#include "supervisor/supervisor.h"

struct pmix_offer {
	struct pmix_library library;
	char *dir; /* of the server; NULL: PMIx is not offered */
	const char *gds;
	const char *collect;
	enum supervisor_pmix when;
	bool tasks_wait;
	char *lacks;   /* what the node lacks, as a text; NULL: nothing */
	char *failure; /* of the step: PMIx was asked for, and is not there; or NULL */
};

/* Description of the step; `program`: what srun has found of its program. */
struct pmix_step {
	const char *jobid;
	const char *node;
	uint32_t node_id;
	bool shares_machine; /* the node, with another of the step */
	enum launch_program program;
};

/* Decide; release with pmix_offer_free in any case. */
void pmix_offer_make(struct pmix_offer *o, const struct conf *conf,
		     const struct pmix_step *step);
/*
 * Notes for the user what keeps a program that needs PMIx from it: a terminal (--pty), or
 * a variable of the job's environment.
 */
void pmix_offer_note_hindrance(bool terminal, char **env, const struct log_hook *notes);
/* The supervisor's options; they point into *o. */
void pmix_offer_describe(const struct pmix_offer *o,
			 struct supervisor_pmix_options *out);
/*
 * Adds the variables that all tasks of the node share to Slurm's array; once the
 * supervisor listens. `position` is that of the node.
 */
void pmix_offer_set_env(const struct pmix_offer *o, const struct supervisor *supervisor,
			const struct pmix_step *step, uint32_t position,
			char ***env);
/* For a task that has waited for the server in vain: it asks it, when it comes. */
void pmix_offer_set_late(const struct pmix_offer *o, char ***env);
void pmix_offer_free(struct pmix_offer *o);
