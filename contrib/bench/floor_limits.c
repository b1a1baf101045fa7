/* SPDX-License-Identifier: BSD-3-Clause */
/* Says before anything starts what this machine cannot hold, and what helps. */
#include "floor.h"

#include <inttypes.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

/*
 * Page tables, stack, kernel structures. Measured: 64 nodes x 16 ranks took 65 KB
 * each beside images and stamps (MemAvailable before and during the run).
 */
#define PROCESS_KB 96
#define PROCESSES_SPARE 256 /* of others on the machine */
#define FILES_SPARE 64

static bool read_number(const char *path, const char *format, uint64_t *number)
{
	FILE *file = fopen(path, "r");
	char line[256];
	bool found = false;

	if (!file)
		return false;
	while (!found && fgets(line, sizeof(line), file))
		found = sscanf(line, format, number) == 1;
	fclose(file);
	return found;
}

static bool memory_allows(const struct floor_options *o, uint64_t processes)
{
	uint64_t stamps = (uint64_t)sizeof(struct floor_stamp) * floor_size(o) *
			  (o->rounds + FLOOR_UNTIMED);
	uint64_t need = processes * PROCESS_KB +
			(floor_image_len(o) * o->nodes + stamps) / 1024;
	uint64_t free_kb;

	if (!read_number("/proc/meminfo", "MemAvailable: %" SCNu64, &free_kb) ||
	    free_kb >= need)
		return true;
	fprintf(stderr,
		"floor: %u nodes x %u ranks x %u bytes need about %" PRIu64
		" MB of memory, %" PRIu64 " MB are free\n", o->nodes, o->ranks,
		o->bytes, need / 1024, free_kb / 1024);
	return false;
}

/* kernel.* limits hold for the machine, so they must leave room for others. */
static bool kernel_allows(const char *name, uint64_t need)
{
	char path[64];
	uint64_t limit;

	snprintf(path, sizeof(path), "/proc/sys/kernel/%s", name);
	if (!read_number(path, "%" SCNu64, &limit) || limit >= need)
		return true;
	fprintf(stderr, "floor: kernel.%s is %" PRIu64 ", too low for %" PRIu64
		" processes; as root: sysctl -w kernel.%s=%" PRIu64 "\n", name,
		limit, need, name, need * 2);
	return false;
}

/* Raises the soft limit as far as needed; `how` is the option of ulimit. */
static bool process_allows(int resource, uint64_t need, const char *what,
			   const char *how)
{
	struct rlimit limit;

	if (getrlimit(resource, &limit) || limit.rlim_cur >= need)
		return true;
	if (limit.rlim_max >= need) {
		limit.rlim_cur = need;
		return setrlimit(resource, &limit) == 0;
	}
	fprintf(stderr, "floor: needs %" PRIu64 " %s, the limit is %" PRIu64
		"; as root: ulimit -%s %" PRIu64 "\n", need, what,
		(uint64_t)limit.rlim_max, how, need);
	return false;
}

bool floor_limits_allow(const struct floor_options *o)
{
	uint64_t processes = (uint64_t)floor_size(o) + o->nodes + 1;
	uint64_t links = (uint64_t)o->width * 8; /* pending ones of a path */
	uint64_t files = 2u * floor_most(o) + links + FILES_SPARE;

	return kernel_allows("pid_max", processes + PROCESSES_SPARE) &&
	       kernel_allows("threads-max", processes + PROCESSES_SPARE) &&
	       (geteuid() == 0 ||
		process_allows(RLIMIT_NPROC, processes + PROCESSES_SPARE,
			       "processes", "u")) &&
	       process_allows(RLIMIT_NOFILE, files, "open files", "n") &&
	       memory_allows(o, processes);
}
