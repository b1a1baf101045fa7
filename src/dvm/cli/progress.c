/* SPDX-License-Identifier: BSD-3-Clause */
/* How far the tasks of a command are: progress.h. */
#include "dvm/cli/progress.h"

#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define TTY_S 0.5
#define FILE_S 60.0
#define LONGEST_S 3.1e9 /* of a rest that is said */

void progress_begin(struct progress *p, bool tty, double now)
{
	*p = (struct progress){ .tty = tty, .began = now, .shown = now };
}

int progress_interval(const struct progress *p)
{
	return (int)(1000 * (p->tty ? TTY_S : FILE_S));
}

bool progress_due(struct progress *p, double now)
{
	if (now - p->shown < (p->tty ? TTY_S : FILE_S))
		return false;
	p->shown = now;
	return true;
}

/* ---- text ---- */

/* The two largest units of a time. */
static void add_rest(char *out, size_t size, double seconds)
{
	unsigned long long s = (unsigned long long)(seconds + 0.5);

	if (s < 60)
		snprintf(out, size, "; about %llu s left", s);
	else if (s < 3600)
		snprintf(out, size, "; about %llu min left", (s + 30) / 60);
	else if (s < 86400)
		snprintf(out, size, "; about %llu h %llu min left", s / 3600, s % 3600 / 60);
	else
		snprintf(out, size, "; about %llu d %llu h left", s / 86400, s % 86400 / 3600);
}

void progress_text(char out[PROGRESS_TEXT_MAX], const struct progress_counts *c)
{
	size_t ended = c->done + c->failed;
	size_t left = c->submitted > ended ? c->submitted - ended : 0;
	size_t running = c->running < left ? c->running : left;
	double rate = c->seconds > 0 ? (double)ended / c->seconds : 0;
	int n = snprintf(out, PROGRESS_TEXT_MAX, "%zu done, %zu failed, %zu running, %zu queued",
			 c->done, c->failed, running, left - running);

	if (rate > 0)
		n += snprintf(out + n, PROGRESS_TEXT_MAX - (size_t)n,
			      rate < 10 ? "; %.2f tasks/s" : "; %.0f tasks/s", rate);
	if (rate > 0 && left && (double)left / rate < LONGEST_S)
		add_rest(out + n, PROGRESS_TEXT_MAX - (size_t)n, (double)left / rate);
}

/* ---- output ---- */

/* A line that is as wide as the terminal would begin another one. */
static size_t columns(void)
{
	struct winsize w;

	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &w) < 0 || w.ws_col < 2)
		return 79;
	return w.ws_col - 1u;
}

void progress_show(struct progress *p, const struct progress_counts *c)
{
	char text[PROGRESS_TEXT_MAX];
	size_t len, most = columns();

	progress_text(text, c);
	len = strlen(text);
	if (!p->tty) {
		fprintf(stderr, "pmi2x-dvm: %s\n", text);
		return;
	}
	len = len < most ? len : most;
	fprintf(stderr, "\r%.*s%*s", (int)len, text,
		(int)(p->on_screen > len ? p->on_screen - len : 0), "");
	p->on_screen = len;
}

void progress_hide(struct progress *p)
{
	if (p->on_screen)
		fprintf(stderr, "\r%*s\r", (int)p->on_screen, "");
	p->on_screen = 0;
}
