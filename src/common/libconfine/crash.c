/* SPDX-License-Identifier: BSD-3-Clause */
/* The last words of an agent that crashes: one message, made without memory. */
#include "libconfine/crash.h"

#include <errno.h>
#include <unistd.h>

#include "libconfine/agent_fd.h"
#include "libconfine/host_msg.h"

#define SIGNAL_EXIT 128 /* plus the signal's number, as in shells */

static void last_words(int number, int call)
{
	const struct host_msg m = {
		.type = HOST_CRASHED,
		.number = (uint32_t)number,
		.code = call,
	};

	(void)host_msg_send_wait(AGENT_FD_HOST, &m);
	_exit(SIGNAL_EXIT + number);
}

static void on_signal(int number)
{
	last_words(number, 0);
}

void crash_denied(int number, siginfo_t *info, void *context)
{
	last_words(number, info->si_syscall);
}

int crash_watch(void)
{
	static const int faults[] = { SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL };
	struct sigaction action = { .sa_handler = on_signal };

	for (size_t i = 0; i < sizeof(faults) / sizeof(*faults); i++)
		if (sigaction(faults[i], &action, NULL))
			return -errno;
	return 0;
}
