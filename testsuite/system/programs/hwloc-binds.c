/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Load the topology with hwloc, of release 1 or 2, and bind to each PU in turn. Prints
 * "WHO pus N bound L": who found it out, as the topology says, and the PUs to which
 * the kernel says that it was bound. Says so when nothing can be loaded, and fails.
 */
#define _GNU_SOURCE
#include <hwloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>

static int only_cpu(void)
{
	cpu_set_t set;
	int cpu = 0;

	if (sched_getaffinity(0, sizeof(set), &set) || CPU_COUNT(&set) != 1)
		return -1;
	while (!CPU_ISSET(cpu, &set))
		cpu++;
	return cpu;
}

static void bind_to(hwloc_topology_t topology, hwloc_obj_t pu)
{
	if (hwloc_set_cpubind(topology, pu->cpuset, HWLOC_CPUBIND_PROCESS) ||
	    only_cpu() != (int)pu->os_index) {
		printf("hwloc does not bind to PU %u\n", pu->os_index);
		exit(1);
	}
	printf(" %u", pu->os_index);
}

int main(void)
{
	hwloc_topology_t topology;
	const char *who;
	int n;

	if (hwloc_topology_init(&topology) || hwloc_topology_load(topology)) {
		puts("hwloc cannot load the topology");
		return 1;
	}
	who = hwloc_obj_get_info_by_name(hwloc_get_root_obj(topology),
					 "ProcessName");
	n = hwloc_get_nbobjs_by_type(topology, HWLOC_OBJ_PU);
	printf("%s pus %d bound", who ? who : "?", n);
	for (int i = 0; i < n; i++)
		bind_to(topology, hwloc_get_obj_by_type(topology, HWLOC_OBJ_PU,
							(unsigned)i));
	putchar('\n');
	hwloc_topology_destroy(topology);
	return 0;
}
