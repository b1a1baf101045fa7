/* SPDX-License-Identifier: BSD-3-Clause */
/* Formats lines for the logging hook. */
#include "libutil/log.h"

#include <stdarg.h>
#include <stdio.h>

void log_line(const struct log_hook *hook, enum log_level level,
	      const char *fmt, ...)
{
	char text[LOG_LINE_MAX];
	va_list ap;

	if (!hook || !hook->line)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	hook->line(hook->arg, level, text);
}
