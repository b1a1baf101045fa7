/* SPDX-License-Identifier: BSD-3-Clause */
/* How the process of a rank has ended, as text, and srun's exit code from it. */
#include "libpmi/cause.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>

#include "libutil/decimal.h"

#define WITH_CODE "exited with exit code "
#define BY_SIGNAL "exited by signal "
#define SIGNALLED 128 /* a shell adds it to the number of a signal */
#define CODE_MAX 255
#define MPICH_CODE 15 /* of a program of MPICH that cannot start */
#define WRAPPER_CODES 124 /* and above: of timeout, env or a shell that fails itself */

void cause_text(const struct pmi_exit *end, char out[CAUSE_MAX])
{
	int signal = end ? WTERMSIG(end->status) : 0;

	if (end && WIFEXITED(end->status))
		snprintf(out, CAUSE_MAX, WITH_CODE "%d",
			 WEXITSTATUS(end->status));
	else if (end && WIFSIGNALED(end->status))
		snprintf(out, CAUSE_MAX, BY_SIGNAL "%d (%s)%s", signal,
			 strsignal(signal),
			 end->by_launcher ? " of the launcher" : "");
	else
		snprintf(out, CAUSE_MAX, "exited");
}

/* The number behind the phrase that comes first, or NULL; *base is added to it. */
static const char *find_number(const char *text, int *base)
{
	const char *code = strstr(text, WITH_CODE);
	const char *signal = strstr(text, BY_SIGNAL);
	bool by_signal = signal && (!code || signal < code);

	*base = by_signal ? SIGNALLED : 0;
	if (by_signal)
		return signal + strlen(BY_SIGNAL);
	return code ? code + strlen(WITH_CODE) : NULL;
}

int cause_exit_code(const char *text)
{
	int base = 0;
	const char *number = find_number(text, &base);
	uint64_t code;

	if (!number || !decimal_take(&number, CODE_MAX - base, &code) ||
	    code + base == 0)
		return 1;
	return (int)code + base;
}

/* slurmstepd could not start the program, and exits with the error number. */
static bool was_not_started(int code)
{
	return code == ENOENT || code == EACCES || code == ENOEXEC;
}

bool cause_may_lack_fd(const struct pmi_exit *end, enum cause_wrapper wrapper)
{
	int code = WIFEXITED(end->status) ? WEXITSTATUS(end->status) : 0;

	return !end->by_launcher && wrapper != WRAPPER_NONE &&
	       (code == MPICH_CODE ||
		(wrapper == WRAPPER_OF_MPICH && code > 0 && code < WRAPPER_CODES &&
		 !was_not_started(code)));
}
