/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: how far the tasks of a command are, as one line: on a terminal twice a second
 * in place of the last one, elsewhere once a minute. Times are seconds of a clock that
 * nobody sets.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define PROGRESS_TEXT_MAX 200

struct progress {
	bool tty;
	double began, shown;
	size_t running; /* when the head was asked last */
	size_t on_screen; /* bytes of the line on the terminal */
};

struct progress_counts {
	size_t submitted, done, failed, running;
	double seconds; /* since the command began */
};

void progress_begin(struct progress *p, bool tty, double now);
/* Milliseconds between two lines. */
int progress_interval(const struct progress *p);
/* True: the next line is due, and counts as shown. */
bool progress_due(struct progress *p, double now);
void progress_text(char out[PROGRESS_TEXT_MAX], const struct progress_counts *c);
/* Print the line; hide: remove it from the terminal, before another line is printed. */
void progress_show(struct progress *p, const struct progress_counts *c);
void progress_hide(struct progress *p);
