/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The logging hook. A library never writes a log itself: it calls the hook
 * that its creator gave it. A line is one sentence without a final newline.
 */
#pragma once

enum log_level {
	LOG_LEVEL_ERROR, /* somebody has to act; names the remedy */
	LOG_LEVEL_INFO,  /* of interest to the job's user */
	LOG_LEVEL_DEBUG, /* for who looks for a fault */
};

struct log_hook {
	void (*line)(void *arg, enum log_level level, const char *text);
	void *arg;
};

#define LOG_LINE_MAX 1024 /* bytes; longer lines are cut */

/* Format a line and hand it to the hook; a NULL hook drops it. */
void log_line(const struct log_hook *hook, enum log_level level,
	      const char *fmt, ...) __attribute__((format(printf, 3, 4)));

#define log_error(hook, ...) log_line(hook, LOG_LEVEL_ERROR, __VA_ARGS__)
#define log_info(hook, ...) log_line(hook, LOG_LEVEL_INFO, __VA_ARGS__)
#define log_debug(hook, ...) log_line(hook, LOG_LEVEL_DEBUG, __VA_ARGS__)
