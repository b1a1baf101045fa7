/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Paths in slurmd's spool directory. */
#include "slurm_compat.h"

#include <stdio.h>
#include <string.h>

#include "slurm_log.h"
#include "spool.h"

/* PMI-1 ends a value there. */
#define BLANKS " \t\r\n;="

char *spool_path(const char *prefix, const char *node, uint32_t node_id,
		 const char *jobid, const char *suffix)
{
	char *spool = slurm_conf_expand_slurmd_path(slurm_conf.slurmd_spooldir,
						    (char *)node, (char *)node);
	char *path = NULL;

	if (strpbrk(spool, BLANKS) || spool[0] != '/')
		log_info(&slurm_log,
			 "nothing can be shared on node %s: clients cannot read the name of SlurmdSpoolDir, %s",
			 node, spool);
	else if (asprintf(&path, "%s/%s%s.%u%s", spool, prefix, jobid, node_id,
			  suffix) < 0)
		path = NULL;
	xfree(spool);
	return path;
}
