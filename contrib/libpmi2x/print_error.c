/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on standard error that raise no SIGPIPE. */
#include "print_error.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static bool is_pending(void)
{
	sigset_t pending;

	return sigpending(&pending) == 0 && sigismember(&pending, SIGPIPE) == 1;
}

/* SIGPIPE is sent to the thread that writes, so that it alone has to hide it. */
static void write_quietly(const char *text, size_t len)
{
	const struct timespec at_once = { 0, 0 };
	sigset_t pipe_only, old;
	bool was_pending;
	ssize_t n;

	sigemptyset(&pipe_only);
	sigaddset(&pipe_only, SIGPIPE);
	was_pending = is_pending();
	if (pthread_sigmask(SIG_BLOCK, &pipe_only, &old))
		return;
	do {
		n = write(STDERR_FILENO, text, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0 && errno == EPIPE && !was_pending)
		while (sigtimedwait(&pipe_only, NULL, &at_once) < 0 &&
		       errno == EINTR)
			;
	pthread_sigmask(SIG_SETMASK, &old, NULL);
}

void print_error(const char *fmt, ...)
{
	char text[ERROR_TEXT_MAX];
	int error = errno, n;
	va_list args;

	va_start(args, fmt);
	n = vsnprintf(text, sizeof(text), fmt, args);
	va_end(args);
	if (n >= (int)sizeof(text)) {
		n = sizeof(text) - 1;
		text[n - 1] = '\n';
	}
	if (n > 0)
		write_quietly(text, (size_t)n);
	errno = error;
}
