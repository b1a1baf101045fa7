/* SPDX-License-Identifier: BSD-3-Clause */
/* Texts about ranks that have not used PMI. */
#include "agent/unspoken.h"

void unspoken_say(const struct log_hook *log, uint32_t ranks)
{
	log_error(log,
		  "none of the %u ranks has spoken PMI, although the program needs an MPI library: each was alone, if it has used that; \"pmi2x check --mpi PROGRAM\" says what it speaks",
		  ranks);
}
