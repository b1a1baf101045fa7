/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The environment by which programs with hwloc read the node's topology from a file, and
 * do not take it for another machine's. It is valid on this node, in this step.
 */
#pragma once

#include <stdbool.h>

#define TOPOLOGY_FILE_PREFIX "pmi2x.topology." /* of the name of each such file */
#define TOPOLOGY_ENV_FILE "HWLOC_XMLFILE"
#define TOPOLOGY_ENV_HERE "HWLOC_THISSYSTEM"

/* Remove both where they name a file of ours: an outer step's. */
void topology_env_remove(char **env);
/* True: the user has set where hwloc looks. */
bool topology_env_is_chosen(char *const *env);
