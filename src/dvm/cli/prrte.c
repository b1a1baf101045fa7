/* SPDX-License-Identifier: BSD-3-Clause */
/* URIs of DVMs and lists of hosts: prrte.h. */
#include "dvm/cli/prrte.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dvm/cli/die.h"
#include "libutil/decimal.h"

#define SLOTS_MAX (1 << 26)

/* ---- hosts ---- */

void prrte_hosts_add(struct prrte_hosts *hosts, const char *name, uint32_t slots)
{
	json_int_t now = json_integer_value(json_object_get(hosts->names, name)) + slots;

	if (json_object_size(hosts->names) && now != hosts->most)
		hosts->differ = true;
	if (!hosts->names)
		hosts->names = json_object();
	if (json_object_set_new(hosts->names, name, json_integer(now)))
		die("the name of a host is not UTF-8 text");
	hosts->most = now > hosts->most ? (uint32_t)now : hosts->most;
}

void prrte_hosts_take(struct prrte_hosts *hosts, const char *command, const char *list)
{
	char *copy = strdup(list), *rest = copy, *name;

	while (copy && (name = strsep(&rest, ","))) {
		char *colon = strchr(name, ':');
		uint32_t slots = 0;

		if (colon)
			*colon++ = '\0';
		if (!*name || (colon && !decimal_u32(colon, 1, SLOTS_MAX, &slots)))
			die_usage("%s: --host is a list of hosts, as n1:4,n2:2", command);
		prrte_hosts_add(hosts, name, slots);
	}
	free(copy);
}

char *prrte_hosts_option(const struct prrte_hosts *hosts)
{
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	const char *name, *separator = "--nodelist=";
	json_t *slots;

	if (!out)
		die("out of memory");
	json_object_foreach(hosts->names, name, slots) {
		fprintf(out, "%s%s", separator, name);
		separator = ",";
	}
	fclose(out);
	return text;
}

const char *prrte_hosts_elsewhere(const struct prrte_hosts *hosts)
{
	char machine[256] = "";
	const char *name;
	json_t *slots;

	gethostname(machine, sizeof(machine) - 1);
	json_object_foreach(hosts->names, name, slots)
		if (strcmp(name, "localhost") && strcmp(name, machine))
			return name;
	return NULL;
}

/* ---- the URI ---- */

static char *first_line(const char *command, const char *path)
{
	FILE *in = fopen(path, "re");
	char *line = NULL;
	size_t size = 0;

	if (!in || getline(&line, &size, in) < 0)
		die("%s: %s has no URI of a DVM: %s", command, path,
		    in ? "it is empty" : strerror(errno));
	fclose(in);
	line[strcspn(line, "\n")] = '\0';
	return line;
}

char *prrte_dvm_name(const char *command, const char *uri)
{
	bool file = !strncmp(uri, "file:", strlen("file:"));
	char *text = file ? first_line(command, uri + strlen("file:")) : strdup(uri);

	if (!text)
		die("out of memory");
	if (strncmp(text, PRRTE_SCHEME, strlen(PRRTE_SCHEME)))
		die_usage("%s: %s is not the URI of a DVM of this prte, which begins with %s",
			  command, text, PRRTE_SCHEME);
	memmove(text, text + strlen(PRRTE_SCHEME), strlen(text) - strlen(PRRTE_SCHEME) + 1);
	return text;
}
