/* SPDX-License-Identifier: BSD-3-Clause */
/* Shared by the commands prte, prun and pterm: the URI of a DVM, and lists of hosts. */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#define PRRTE_SCHEME "pmi2x-dvm://" /* the name of the DVM follows */

/* Hosts, and how many ranks each may have; errors end the program. */
struct prrte_hosts {
	json_t *names;   /* NULL: none was named */
	uint32_t most;   /* of a host; 0: no number was given */
	bool differ;     /* not all have the same number */
};

/* Add a host; `slots` is 0 if no number was given, and adds up if the host is named again. */
void prrte_hosts_add(struct prrte_hosts *hosts, const char *name, uint32_t slots);
/* Add those of a list, as in a:2,b; `command` is for messages. */
void prrte_hosts_take(struct prrte_hosts *hosts, const char *command, const char *list);
/* An option with the names, to be freed: --nodelist=a,b. */
char *prrte_hosts_option(const struct prrte_hosts *hosts);
/* One that is not this machine, or NULL. */
const char *prrte_hosts_elsewhere(const struct prrte_hosts *hosts);

/*
 * The name of a DVM from --dvm-uri: the URI, or file:PATH with the URI in its first line. To
 * be freed. Another URI ends the program.
 */
char *prrte_dvm_name(const char *command, const char *uri);
