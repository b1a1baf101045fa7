/* SPDX-License-Identifier: BSD-3-Clause */
/* The node's topology by hwloc, as XML. */
#include "helpers/topology/topology.h"

#include <errno.h>
#include <hwloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libutil/hwloc_plugins.h"

/* Components of hwloc that are no plugins: libutil/hwloc_plugins.h. */
static const char *const left_out[] = {
	"cuda", "gl", "levelzero", "nvml", "opencl", "rsmi",
};

static int failed(char why[TOPOLOGY_WHY_MAX], int error, const char *what)
{
	snprintf(why, TOPOLOGY_WHY_MAX, "%s: %s", what,
		 strerror(error ? error : EIO));
	return error ? -error : -EIO;
}

static void leave_out(hwloc_topology_t topology)
{
#if HWLOC_API_VERSION >= 0x00020100
	for (size_t i = 0; i < sizeof(left_out) / sizeof(*left_out); i++)
		(void)hwloc_topology_set_components(
			topology, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
			left_out[i]);
#else
	(void)topology;
	(void)left_out;
#endif
}

static int write_all(int fd, const char *data, size_t len)
{
	while (len) {
		ssize_t n = write(fd, data, len);

		if (n < 0 && errno != EINTR)
			return -1;
		data += n > 0 ? n : 0;
		len -= n > 0 ? (size_t)n : 0;
	}
	return 0;
}

static int load(hwloc_topology_t topology, char why[TOPOLOGY_WHY_MAX])
{
	leave_out(topology);
	/* I/O too; who reads it leaves out what he would not have looked for. */
	if (hwloc_topology_set_all_types_filter(topology,
						HWLOC_TYPE_FILTER_KEEP_ALL))
		return failed(why, errno, "hwloc cannot keep all objects");
	if (hwloc_topology_load(topology))
		return failed(why, errno, "hwloc cannot load the topology");
	return 0;
}

/* hwloc 3 writes by itself what 2.11 and older cannot read, and MPI libraries hold these. */
#if HWLOC_API_VERSION >= 0x00030000
#define XML_FORM HWLOC_TOPOLOGY_EXPORT_XML_FLAG_V2
#else
#define XML_FORM 0
#endif

static int export(hwloc_topology_t topology, int fd,
		  char why[TOPOLOGY_WHY_MAX])
{
	char *xml;
	int len, rc = 0;

	if (hwloc_topology_export_xmlbuffer(topology, &xml, &len, XML_FORM))
		return failed(why, errno, "hwloc cannot export the topology");
	if (write_all(fd, xml, strnlen(xml, (size_t)len)))
		rc = failed(why, errno, "cannot write the topology");
	hwloc_free_xmlbuffer(topology, xml);
	return rc;
}

int topology_export(int fd, char why[TOPOLOGY_WHY_MAX])
{
	hwloc_topology_t topology;
	int rc;

	setenv(HWLOC_PLUGINS_LEFT_OUT, HWLOC_PLUGINS_OF_GPUS, 0);
	setenv("HWLOC_LIBXML_EXPORT", "0", 0); /* its own writer is the quicker */
	setenv("HWLOC_HIDE_ERRORS", "2", 0);   /* no user would read them */
	if (hwloc_topology_init(&topology))
		return failed(why, errno, "hwloc cannot start");
	rc = load(topology, why);
	rc = rc ? rc : export(topology, fd, why);
	hwloc_topology_destroy(topology);
	return rc;
}
