/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * libpmi2x-srun.so: srun's end as a private library. The plugin opens it in srun
 * alone, so that Slurm's daemons, which load the plugin as well, get neither an event
 * loop nor cryptography by it.
 *
 * Its one symbol is the table below. The records of srun_server.h, spawn.h, secret.h and
 * log.h that the calls exchange are part of the interface.
 */
#pragma once

#include "srun/srun_server.h"

/* Raise it by one for each change of the table or of those records. */
#define SRUN_LIBRARY_INTERFACE 1
#define SRUN_LIBRARY_SYMBOL "pmi2x_srun_library"

struct srun_library {
	uint32_t interface; /* first in every version: SRUN_LIBRARY_INTERFACE */
	const char *build;  /* for srun_server_options */
	/* As in srun_server.h. */
	int (*server_start)(struct srun_server **out,
			    const struct srun_server_options *o,
			    const struct srun_server_host *host,
			    const struct log_hook *log);
	uint16_t (*server_port)(const struct srun_server *h);
	void (*server_stop)(struct srun_server *h, uint32_t wait_ms);
};

extern const struct srun_library pmi2x_srun_library;
