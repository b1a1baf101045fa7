/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Turns a spawn request into an srun inside the same allocation, and starts it.
 *
 * One command becomes srun's command. Several, or one that wants a directory or
 * a search path, become one shell script argument that chooses by PMI_RANK.
 * Info keys: wdir, path, host; others are ignored.
 */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "libpmi/spawn.h"
#include "libutil/log.h"

/*
 * The bytes that one word of a command line or environment may have; Linux'
 * MAX_ARG_STRLEN is 32 pages.
 */
#define SPAWN_WORD_MAX (128u << 10)

struct spawn_place {
	const char *srun;     /* path of srun, or a name to look for in PATH */
	uint32_t job_id;      /* the job in which the step runs */
	const char *jobid;    /* of the spawning step */
	char *const *nodes;   /* of the spawning step, for commands without host */
	uint32_t nnodes;
	uint32_t universe_size; /* more processes share processors; 0: unknown */
	/* Expand a host list like n[1-3] to malloc'ed names; NULL on error. */
	char **(*expand)(const char *list, uint32_t *count);
};

/*
 * srun's argument vector for a request (strvec.h). 0, -EINVAL
 * (an info value is no host list), -E2BIG, or -ENOMEM.
 */
int spawn_srun_args(const struct spawn_request *r, const struct spawn_place *p,
		    char ***args);

/*
 * The environment of the new srun: `env` without the variables of the spawning step, and
 * with those of the new one; `fd` is its end of the socket pair. Errors as above.
 */
int spawn_srun_env(const struct spawn_request *r, const struct spawn_place *p,
		   char *const *env, int fd, char ***out);

/* A line for each info key that is ignored. */
void spawn_srun_unknown(const struct spawn_request *r,
			const struct log_hook *log);


/*
 * Start srun. Returns its pid and in *fd our end of the pair (CLOEXEC), or a
 * negative errno.
 */
pid_t spawn_srun_start(const struct spawn_request *r,
		       const struct spawn_place *p, int *fd);
