/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Hands log lines to Slurm. */
#include "slurm_compat.h"

#include "slurm_log.h"

static void slurm_log_line(void *arg, enum log_level level, const char *text)
{
	switch (level) {
	case LOG_LEVEL_ERROR:
		error("pmi2x: %s", text);
		break;
	case LOG_LEVEL_INFO:
		log_var(SLURM_LOG_LEVEL_INFO, "pmi2x: %s", text);
		break;
	case LOG_LEVEL_DEBUG:
		log_var(SLURM_LOG_LEVEL_DEBUG, "pmi2x: %s", text);
		break;
	}
}

const struct log_hook slurm_log = { .line = slurm_log_line };
