/* SPDX-License-Identifier: BSD-3-Clause */
/* The time, and words for pmi2x-dvm up. */
#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "dvm/head/head_main.h"
#include "libio/clock.h"

#define SAY_MAX 1024

struct dvm_time head_now(const struct head_main *h)
{
	return (struct dvm_time){
		.wall_ns = (uint64_t)clock_ns(CLOCK_REALTIME),
		.ms = uv_now(loop_uv(h->loop)),
	};
}

static void say(struct head_main *h, const char *fmt, va_list ap)
{
	char text[SAY_MAX];
	int n = vsnprintf(text, sizeof(text) - 1, fmt, ap);

	n = n < (int)sizeof(text) - 2 ? n : (int)sizeof(text) - 2;
	text[n++] = '\n';
	if (h->hold >= 0)
		(void)!write(h->hold, text, (size_t)n); /* stop.c sees when the reader goes */
}

void head_say(struct head_main *h, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say(h, fmt, ap);
	va_end(ap);
}

void head_fail(struct head_main *h, const char *fmt, ...)
{
	char why[SAY_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(why, sizeof(why), fmt, ap);
	va_end(ap);
	if (h->hold < 0)
		log_error(&h->log, "%s", why);
	head_say(h, "failed %s", why);
	h->status = 1;
	h->hooks->failed(h);
}
