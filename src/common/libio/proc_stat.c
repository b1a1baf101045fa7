/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the kernel's line about a process: proc_stat.h. */
#include "libio/proc_stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FIELDS 6 /* of struct proc_stat */

bool proc_stat_read(uint64_t process, struct proc_stat *out)
{
	unsigned long long started = 0;
	char path[64], text[2048];
	const char *after; /* the name before it may have any characters */
	const char *last;
	size_t n = 0;
	FILE *file;

	*out = (struct proc_stat){ 0 };
	snprintf(path, sizeof(path), "/proc/%llu/stat", (unsigned long long)process);
	file = fopen(path, "re");
	if (file) {
		n = fread(text, 1, sizeof(text) - 1, file);
		fclose(file);
	}
	text[n] = '\0';
	after = strrchr(text, ')');
	if (!after ||
	    sscanf(after,
		   ") %c %d %d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu %*d %*d %*d %*d %*d %*d %llu",
		   &out->state, &out->parent, &out->group, &out->user, &out->system,
		   &started) != FIELDS) {
		*out = (struct proc_stat){ 0 };
		return false;
	}
	out->started = started;
	last = strrchr(after, ' ');
	out->status = last ? atoi(last) : 0;
	return true;
}
