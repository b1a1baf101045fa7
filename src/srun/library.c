/* SPDX-License-Identifier: BSD-3-Clause */
/* The table that libpmi2x-srun.so exports. */
#include "srun/library.h"

#include "pmi2x-build.h"

__attribute__((visibility("default")))
const struct srun_library pmi2x_srun_library = {
	.interface = SRUN_LIBRARY_INTERFACE,
	.build = PMI2X_BUILD,
	.server_start = srun_server_start,
	.server_port = srun_server_port,
	.server_stop = srun_server_stop,
};
