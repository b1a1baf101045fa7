/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the resources of a node in the affinity, sysfs, and the environment. */
#include "dvm/zygote/resources.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/decimal.h"

bool resources_parse_slots(struct resources_options *o, const char *text)
{
	if (!strcmp(text, "core"))
		o->slots = SLOTS_CORES;
	else if (!strcmp(text, "thread"))
		o->slots = SLOTS_THREADS;
	else if (decimal_u32(text, 1, DVM_CORES_MAX, &o->number))
		o->slots = SLOTS_NUMBER;
	else
		return false;
	return true;
}

/* ---- cores ---- */

/* Add the CPUs of a list such as "0,4-6". */
static void add_list(cpu_set_t *set, const char *text)
{
	unsigned long first, last;
	char *end;

	while (*text >= '0' && *text <= '9') {
		first = last = strtoul(text, &end, 10);
		if (*end == '-')
			last = strtoul(end + 1, &end, 10);
		for (; first <= last && first < CPU_SETSIZE; first++)
			CPU_SET(first, set);
		text = *end == ',' ? end + 1 : end;
	}
}

/* The hardware threads of the core of `cpu`; only `cpu` when they are not known. */
static void siblings(unsigned cpu, cpu_set_t *out)
{
	char path[96], text[256] = "";
	FILE *f;

	CPU_ZERO(out);
	CPU_SET(cpu, out);
	snprintf(path, sizeof(path),
		 "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list",
		 cpu);
	f = fopen(path, "re");
	if (!f)
		return;
	if (fgets(text, sizeof(text), f))
		add_list(out, text);
	fclose(f);
}

static int find_slots(struct resources *r, enum slot_kind kind)
{
	cpu_set_t mine, core;
	uint32_t n = 0;

	if (sched_getaffinity(0, sizeof(mine), &mine) < 0)
		return -errno;
	for (unsigned cpu = 0; cpu < CPU_SETSIZE && n < DVM_CORES_MAX; cpu++) {
		if (!CPU_ISSET(cpu, &mine))
			continue;
		CPU_ZERO(&core);
		if (kind == SLOTS_CORES)
			siblings(cpu, &core);
		CPU_SET(cpu, &core);
		CPU_AND(&r->cpus[n], &core, &mine);
		CPU_XOR(&mine, &mine, &r->cpus[n++]);
	}
	r->has.cores = n;
	r->bound = true;
	return 0;
}

/* ---- the rest ---- */

static uint64_t find_memory(void)
{
	const char *limit = getenv("SLURM_MEM_PER_NODE");
	uint64_t mib;

	if (limit && decimal_u64(limit, 1, UINT32_MAX, &mib))
		return mib << 20;
	return (uint64_t)sysconf(_SC_PHYS_PAGES) *
	       (uint64_t)sysconf(_SC_PAGESIZE);
}

int resources_find(struct resources *r, const struct resources_options *o)
{
	const char *dev = getenv("PMI2X_DVM_DEV"); /* set by tests */
	int rc = 0;

	memset(r, 0, sizeof(*r));
	if (o->slots == SLOTS_NUMBER)
		r->has.cores = o->number;
	else
		rc = find_slots(r, o->slots);
	rc = rc ? rc : gpus_find(&r->gpus, dev ? dev : "/dev");
	if (o->gpus != RESOURCES_GPUS_FOUND)
		r->gpus = (struct gpus){ .count = o->gpus, .variable = r->gpus.variable };
	r->has.gpus = r->gpus.count;
	r->has.memory = find_memory();
	return rc;
}

bool resources_cpus(const struct resources *r, const struct dvm_cores *slots, cpu_set_t *out)
{
	CPU_ZERO(out);
	for (uint32_t i = cores_next(slots, 0); r->bound && i < r->has.cores;
	     i = cores_next(slots, i + 1))
		CPU_OR(out, out, &r->cpus[i]);
	return CPU_COUNT(out);
}
