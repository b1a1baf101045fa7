/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the environment of another process in /proc. */
#include "agent/environ.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "libutil/decimal.h"

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
	found = found && decimal_u32(text + len + 1, 0, UINT32_MAX, out);
	free(text);
	fclose(file);
	return found;
}
