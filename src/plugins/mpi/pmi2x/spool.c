/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths in slurmd's spool directory. */
#include "slurm_compat.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "slurm_log.h"
#include "spool.h"

/* PMI-1 ends a value there. */
#define BLANKS " \t\r\n;="

/* Users who may write there can put another directory in the place of one of ours. */
static bool is_safe(const char *spool)
{
	struct stat st;

	if (stat(spool, &st))
		return true; /* creating a file there fails, with its reason */
	return (!st.st_uid || st.st_uid == geteuid() ||
		st.st_uid == slurm_conf.slurm_user_id) &&
	       !(st.st_mode & S_IWOTH);
}

char *spool_path(const char *prefix, const char *node, uint32_t node_id,
		 const char *jobid, const char *suffix)
{
	char *spool = slurm_conf_expand_slurmd_path(slurm_conf.slurmd_spooldir,
						    (char *)node, (char *)node);
	char *path = NULL;

	if (strpbrk(spool, BLANKS) || spool[0] != '/')
		log_info(&slurm_log,
			 "ranks on node %s get no files in SlurmdSpoolDir: clients cannot read the name %s",
			 node, spool);
	else if (!is_safe(spool))
		log_error(&slurm_log,
			  "ranks on node %s get no files in SlurmdSpoolDir: other users than root and SlurmUser can write to %s: chown root, chmod o-w",
			  node, spool);
	else if (asprintf(&path, "%s/%s%s.%u%s", spool, prefix, jobid, node_id,
			  suffix) < 0)
		path = NULL;
	xfree(spool);
	return path;
}
