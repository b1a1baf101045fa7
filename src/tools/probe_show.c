/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-probe without operations: prints what the server offers. */
#include <stdio.h>
#include <string.h>

#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"
#include "tools/probe.h"

#define TEXT_MAX 1024

/* Attributes of the job that programs ask for. */
static const char *const attributes[] = {
	"universeSize", "PMI_process_mapping", "hasNameServ", "physTopology",
	"mpi_reserved_ports", "PMI_netinfo_of_task",
};

static const char *capability(const char *name, char *text)
{
	if (PMIX_Capabilities(name, text, TEXT_MAX))
		snprintf(text, TEXT_MAX, "unknown");
	return text;
}

static void show_server(const struct probe *p)
{
	char wire[TEXT_MAX], extension[TEXT_MAX], build[TEXT_MAX];

	capability("wire", wire);
	capability("extension", extension);
	capability("server-build", build);
	if (!strcmp(wire, "none")) {
		probe_say(p, "server       none: this process is alone; in a step: "
			     "srun --mpi=pmi2x -N2 pmi2x probe");
		return;
	}
	probe_say(p, "server       %s, %s%s", wire,
		  *build ? "pmi2x " : "not pmi2x", build);
	probe_say(p, "extension    %s", strcmp(extension, "0") ? extension
				       : "none: collectives use put, fence, get");
}

static void show_region(const struct probe *p)
{
	char version[TEXT_MAX], size[TEXT_MAX], nodes[TEXT_MAX];

	capability("region", version);
	if (strcmp(version, "0"))
		probe_say(p, "results      mapped, layout %s, %s bytes reserved",
			  version, capability("region-size", size));
	else
		probe_say(p, "results      not mapped: read over the socket");
	if (strcmp(capability("nodes", nodes), "0"))
		probe_say(p, "nodes        %s", nodes);
}

static bool show_process(const struct probe *p)
{
	char jobid[TEXT_MAX] = "";
	int here;

	if (PMI2_Job_GetId(jobid, sizeof(jobid)))
		return probe_fail(p, "the job id cannot be read");
	if (PMI_Get_clique_size(&here))
		return probe_fail(p, "PMI_process_mapping is malformed");
	probe_say(p, "job          %s, %d process%s, %d on the node of rank 0",
		  jobid, p->size, probe_es(p->size), here);
	probe_say(p, "started by   %s, appnum %d",
		  p->spawned ? "a spawn" : "the launcher", p->appnum);
	return true;
}

static bool show_attributes(const struct probe *p)
{
	char value[TEXT_MAX];
	int found;

	for (size_t i = 0; i < sizeof(attributes) / sizeof(char *); i++) {
		if (PMI2_Info_GetJobAttr(attributes[i], value, sizeof(value),
					 &found))
			return probe_fail(p, "attribute %s cannot be read",
					  attributes[i]);
		probe_say(p, "attribute    %s = %s", attributes[i],
			  found ? value : "(none)");
	}
	return true;
}

bool probe_show(const struct probe *p)
{
	bool ok = true;

	probe_say(p, "library      libpmi2x %s", PMIX_Version());
	show_server(p);
	show_region(p);
	probe_say(p, "limits       key %d, value %d, attribute %d bytes",
		  PMI2_MAX_KEYLEN, PMI2_MAX_VALLEN, PMI2_MAX_ATTRVALUE);
	if (p->rank == 0)
		ok = show_process(p) && show_attributes(p);
	fflush(stdout);
	if (PMI2_KVS_Fence())
		return probe_fail(p, "a fence failed");
	probe_say(p, "fence        works");
	return ok;
}
