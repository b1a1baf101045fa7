/* SPDX-License-Identifier: BSD-3-Clause */
/* Signals that ask a command to end: interrupt.h. */
#include "dvm/cli/interrupt.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>

#include "dvm/cli/client.h"
#include "libio/clock.h"

#define SECOND_MS 300 /* timeout(1) sends its signal twice: the second counts after this */

static const int numbers[] = { SIGINT, SIGHUP, SIGQUIT, SIGTERM, SIGPIPE };
static volatile sig_atomic_t came;
static volatile uint64_t came_ms;
static int ends[2] = { -1, -1 };

static void on_signal(int number)
{
	int error = errno;

	if (!came) {
		came = number;
		came_ms = clock_ms(CLOCK_MONOTONIC);
		(void)!write(ends[1], "", 1);
	} else if ((number == SIGINT || number == SIGQUIT || number == SIGTERM) &&
		   clock_ms(CLOCK_MONOTONIC) - came_ms > SECOND_MS) {
		signal(number, SIG_DFL);
		raise(number); /* when this handler returns */
	}
	errno = error;
}

void interrupt_catch(void)
{
	const struct sigaction action = { .sa_handler = on_signal };
	struct sigaction old;

	if (ends[0] >= 0)
		return;
	if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
		die("no pipe can be made");
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!sigaction(numbers[i], NULL, &old) && old.sa_handler != SIG_IGN)
			sigaction(numbers[i], &action, NULL);
}

/* In the child the handler would swallow a signal, as exec drops what it has noted. */
static void forget_handlers(void)
{
	struct sigaction now;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (!sigaction(numbers[i], NULL, &now) && now.sa_handler == on_signal)
			signal(numbers[i], SIG_DFL);
}

pid_t interrupt_fork(void)
{
	sigset_t all, old;
	pid_t child;

	sigfillset(&all);
	sigprocmask(SIG_BLOCK, &all, &old);
	child = fork();
	if (!child)
		forget_handlers();
	sigprocmask(SIG_SETMASK, &old, NULL);
	return child;
}

int interrupt_number(void)
{
	return came;
}

int interrupt_fd(void)
{
	return ends[0];
}

void interrupt_die(void)
{
	sigset_t all;

	fflush(NULL);
	signal(came, SIG_DFL);
	raise(came);
	sigemptyset(&all);
	sigprocmask(SIG_SETMASK, &all, NULL);
	_exit(128 + came);
}
