/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ports that the first node keeps for PyTorch and JAX, on the other nodes: ranks wait for
 * them before they begin. Each of these children of slurmstepd looks at the same message, and
 * leaves it for the others.
 */
#include "supervisor/supervisor_internal.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

int torch_ports_open(struct supervisor *s)
{
	int ends[2];

	s->torch_ports.known = s->torch_ports.tell = -1;
	if (!s->options.agent.torch_ports_wanted)
		return 0;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
		return -errno;
	s->torch_ports.known = ends[0];
	s->torch_ports.tell = ends[1];
	return 0;
}

void torch_ports_known(struct supervisor *s, const struct host_msg *m)
{
	const uint16_t ports[TORCH_PORTS] = { (uint16_t)(m->number >> 16), (uint16_t)m->number };

	if (s->torch_ports.tell >= 0 && !ports[0] == !ports[1])
		(void)send(s->torch_ports.tell, ports, sizeof(ports),
			   MSG_DONTWAIT | MSG_NOSIGNAL);
}

/* Ports that have come before can still be read: the rank begins, and is ended with the step. */
void torch_ports_refuse(const struct supervisor *s)
{
	if (s->torch_ports.tell >= 0)
		(void)shutdown(s->torch_ports.tell, SHUT_RDWR);
}

void torch_ports_close(struct supervisor *s)
{
	torch_ports_refuse(s);
	fd_close(&s->torch_ports.known);
	fd_close(&s->torch_ports.tell);
}

bool supervisor_torch_ports(const struct supervisor *s, int ms, uint16_t ports[TORCH_PORTS])
{
	uint16_t known[TORCH_PORTS];

	if (!supervisor_wait_event(s->torch_ports.known, ms) ||
	    recv(s->torch_ports.known, known, sizeof(known), MSG_PEEK | MSG_DONTWAIT) !=
		    (ssize_t)sizeof(known))
		return false;
	if (known[0])
		memcpy(ports, known, sizeof(known));
	return true;
}
