/* SPDX-License-Identifier: GPL-2.0-or-later */
/* Variables by which the server of another launcher has described itself. */
#pragma once

/*
 * Take them out of `env`, whose last entry is NULL; strings are not freed. A rank
 * that finds them beside PMI_FD would go to a server that does not know it, or
 * refuse to start.
 */
void foreign_env_remove(char **env);
