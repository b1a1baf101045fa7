/* SPDX-License-Identifier: BSD-3-Clause */
/* In place of pmi2x-topology: does what the name of the step says. */
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "helpers/topology/topology.h"
#include "libconfine/host_msg.h"

#define TEXT "<topology/>"

static int say(enum host_type type, uint32_t number, const char *text)
{
	const struct host_msg m = { type, number, 0, text, strlen(text) };

	return host_msg_send(TOPOLOGY_FD_HOST, &m);
}

int main(int argc, char **argv)
{
	const char *what = argc > 3 ? argv[3] : "";

	if (!strcmp(what, "silent"))
		return 0;
	say(HOST_READY, HOST_VERSION, "");
	if (!strcmp(what, "nonsense"))
		return send(TOPOLOGY_FD_HOST, "\377\377", 2, 0) != 2;
	if (!strcmp(what, "crashes"))
		return say(HOST_CRASHED, SIGSEGV, "");
	if (!strcmp(what, "refuses"))
		return say(HOST_KILL, 0, "no hwloc\nhere");
	if (!strcmp(what, "hangs"))
		pause();
	if (strcmp(what, "empty") && write(TOPOLOGY_FD_FILE, TEXT,
					   sizeof(TEXT) - 1) < 0)
		return 1;
	return say(HOST_END, 0, "");
}
