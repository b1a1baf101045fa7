/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts about ranks that have not used PMI. */
#include "agent/unspoken.h"

void unspoken_say(const struct log_hook *log, uint32_t ranks)
{
	log_error(log,
		  "none of the %u ranks used PMI, although the program needs an MPI library: if it used MPI, each rank ran as a singleton; \"pmi2x check --mpi PROGRAM\" shows which PMI the program uses",
		  ranks);
}
