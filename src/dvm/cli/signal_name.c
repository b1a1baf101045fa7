/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals as people name them: signal_name.h. */
#include "dvm/cli/signal_name.h"

#include <signal.h>
#include <stddef.h>
#include <strings.h>

#include "libutil/decimal.h"

#define SIGNAL_MAX 64

static const struct {
	const char *name;
	int number;
} names[] = {
	{ "HUP", SIGHUP },   { "INT", SIGINT },       { "QUIT", SIGQUIT }, { "ILL", SIGILL },
	{ "TRAP", SIGTRAP }, { "ABRT", SIGABRT },     { "BUS", SIGBUS },   { "FPE", SIGFPE },
	{ "KILL", SIGKILL }, { "USR1", SIGUSR1 },     { "SEGV", SIGSEGV }, { "USR2", SIGUSR2 },
	{ "PIPE", SIGPIPE }, { "ALRM", SIGALRM },     { "TERM", SIGTERM }, { "CHLD", SIGCHLD },
	{ "CONT", SIGCONT }, { "STOP", SIGSTOP },     { "TSTP", SIGTSTP }, { "TTIN", SIGTTIN },
	{ "TTOU", SIGTTOU }, { "URG", SIGURG },       { "XCPU", SIGXCPU }, { "XFSZ", SIGXFSZ },
	{ "PROF", SIGPROF }, { "VTALRM", SIGVTALRM }, { "WINCH", SIGWINCH }, { "IO", SIGIO },
	{ "SYS", SIGSYS },
};

bool signal_take(const char *text, uint32_t *number)
{
	const char *name = strncasecmp(text, "SIG", 3) ? text : text + 3;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcasecmp(name, names[i].name)) {
			*number = (uint32_t)names[i].number;
			return true;
		}
	return decimal_u32(text, 1, SIGNAL_MAX, number);
}
