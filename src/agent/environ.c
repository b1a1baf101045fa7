/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the environment of another process in /proc. */
#include "agent/environ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_number(const char *text, uint32_t *out)
{
	char *end;
	unsigned long value = strtoul(text, &end, 10);

	if (text[0] < '0' || text[0] > '9' || *end || value > UINT32_MAX)
		return false;
	*out = (uint32_t)value;
	return true;
}

bool environ_number(pid_t pid, const char *name, uint32_t *out)
{
	size_t len = strlen(name), room = 0;
	char path[32], *text = NULL;
	bool found = false;
	FILE *file;

	snprintf(path, sizeof(path), "/proc/%d/environ", (int)pid);
	file = fopen(path, "re");
	if (!file)
		return false;
	while (!found && getdelim(&text, &room, '\0', file) > 0)
		found = !strncmp(text, name, len) && text[len] == '=';
	found = found && is_number(text + len + 1, out);
	free(text);
	fclose(file);
	return found;
}
