/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The job attribute PMI_netinfo_of_task, in the form of Slurm's mpi/pmi2:
 * (host,(interface,IP_V4,address),(interface,IP_V6,address),...)
 */
#pragma once

#include <ifaddrs.h>
#include <stddef.h>

#define NETINFO_MAX 1024 /* bytes, NUL included: a value of PMI-2 */

/*
 * Write what `list` holds but loopback interfaces. Entries that do not fit are
 * left out whole.
 */
void netinfo_format(const char *host, const struct ifaddrs *list,
		    char out[NETINFO_MAX]);
/* The networks of this host, as text; the caller frees it. NULL: they cannot be read. */
char *netinfo_create(void);
