/* SPDX-License-Identifier: BSD-3-Clause */
/* pmi2x-dvm report --csv: a line for each task. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/cli/dvm.h"
#include "dvm/cli/report.h"
#include "dvm/cli/task_text.h"

static void put_quoted(const char *text, size_t len)
{
	putchar('"');
	for (size_t i = 0; i < len; i++) {
		if (text[i] == '"')
			putchar('"');
		putchar(text[i]);
	}
	putchar('"');
}

/* Seconds, or nothing where it has not happened. */
static void put_time(uint64_t ns)
{
	if (ns)
		printf("%llu.%09llu", (unsigned long long)ns / 1000000000,
		       (unsigned long long)ns % 1000000000);
	putchar(',');
}

static void put_result(const struct history_task *t)
{
	const struct journal_end *e = &t->end;

	if (t->state < HISTORY_DONE) {
		printf(",,,,,");
		return;
	}
	printf("%d,%u,%.6f,%.6f,%llu,", history_code(t), e->rank,
	       (double)e->user_us / 1e6, (double)e->system_us / 1e6,
	       (unsigned long long)e->peak_kib);
}

static void print_line(const struct report_journal *j, const struct history_task *t)
{
	json_t *task = report_submitted(t), *name = json_object_get(task, "name");
	char *command = command_of(task);

	printf("%llu,%s,%u,%u,", (unsigned long long)t->submit.task,
	       history_state_name(t->state), t->start.instance, t->start.slots);
	put_time(t->submit.submitted_ns);
	put_time(t->start.placed_ns);
	put_time(t->end.started_ns);
	put_time(t->end.ended_ns);
	put_result(t);
	put_quoted(t->end.node.data, t->end.node.len);
	putchar(',');
	put_quoted(json_string_value(name), json_string_length(name));
	putchar(',');
	put_quoted(t->end.why.data, t->end.why.len);
	printf(",%zu,%d,", line_of_task(task), t->state < HISTORY_DONE ? 0 : report_signal(t));
	printf("%u,", t->start.gpus);
	put_time(t->end.told_ns);
	if (history_ran(t))
		printf("%.9f", t->setup_s);
	printf(",%u,", j->member);
	put_quoted(command ? command : "", command ? strlen(command) : 0);
	putchar('\n');
	free(command);
	json_decref(task);
}

void report_csv(const struct report *r)
{
	puts("id,state,instance,slots,submitted,placed,started,ended,code,rank,user,system,peak_kib,node,name,why,line,signal,gpus,told,setup,dvm,command");
	for (size_t i = 0; i < r->n; i++)
		for (size_t j = 0; j < r->histories[i].ntasks; j++)
			print_line(&r->journals[i], &r->histories[i].tasks[j]);
}
