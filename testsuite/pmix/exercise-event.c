/* SPDX-License-Identifier: BSD-3-Clause */
/* Events of PMIx. */
#include "exercise.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

enum { TO_SESSION, TO_NAMESPACE, TO_ONE, EVENTS };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static unsigned seen[EVENTS];

static pmix_status_t code_of(int event)
{
	return PMIX_EXTERNAL_ERR_BASE - 1 - event;
}

static uint32_t sender_of(int event)
{
	return event == TO_NAMESPACE ? size - 1 : 0;
}

static void on_event(size_t id, pmix_status_t code, const pmix_proc_t *source,
		     pmix_info_t info[], size_t ninfo, pmix_info_t results[],
		     size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		     void *done_arg)
{
	int event = code_of(0) - code;
	uint32_t said = 0;

	for (size_t i = 0; i < ninfo; i++)
		if (!strcmp(info[i].key, "said"))
			said = info[i].value.data.uint32;
	check(said == (uint32_t)event + 1 && source->rank == sender_of(event),
	      "event %d of %u says %u", event, source->rank, said);
	pthread_mutex_lock(&lock);
	seen[event]++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

static void notify(int event, pmix_data_range_t range)
{
	pmix_proc_t last = proc_of(size - 1);
	pmix_data_array_t array = { .type = PMIX_PROC, .size = 1, .array = &last };
	const pmix_info_t infos[] = {
		{ .key = "said", .value = { .type = PMIX_UINT32,
					    .data.uint32 = (uint32_t)event + 1 } },
		{ .key = PMIX_EVENT_CUSTOM_RANGE,
		  .value = { .type = PMIX_DATA_ARRAY, .data.darray = &array } },
	};
	pmix_status_t rc;

	if (me.rank != sender_of(event))
		return;
	rc = PMIx_Notify_event(code_of(event), &me, range, infos,
			       range == PMIX_RANGE_CUSTOM ? 2 : 1, NULL, NULL);
	check(rc == PMIX_SUCCESS || rc == PMIX_OPERATION_SUCCEEDED, "notify: %s",
	      PMIx_Error_string(rc));
}

static void wait_for(int event)
{
	pthread_mutex_lock(&lock);
	while (!seen[event])
		pthread_cond_wait(&changed, &lock);
	pthread_mutex_unlock(&lock);
}

void do_events(int argc, char **argv)
{
	pmix_status_t codes[EVENTS];

	for (int i = 0; i < EVENTS; i++)
		codes[i] = code_of(i);
	PMIx_Register_event_handler(codes, EVENTS, NULL, 0, on_event, NULL, NULL);
	fence_all(false);
	notify(TO_ONE, PMIX_RANGE_CUSTOM);
	notify(TO_SESSION, PMIX_RANGE_SESSION);
	notify(TO_NAMESPACE, PMIX_RANGE_NAMESPACE);
	wait_for(TO_SESSION);
	wait_for(TO_NAMESPACE);
	if (me.rank == size - 1)
		wait_for(TO_ONE);
	fence_all(false);
	for (int i = 0; i < EVENTS; i++)
		check(seen[i] == (i != TO_ONE || me.rank == size - 1),
		      "event %d has come %u times", i, seen[i]);
}

static void on_death(size_t id, pmix_status_t code, const pmix_proc_t *source,
		     pmix_info_t info[], size_t ninfo, pmix_info_t results[],
		     size_t nresults, pmix_event_notification_cbfunc_fn_t done,
		     void *done_arg)
{
	check(source->rank == size - 1, "%u is told to be dead", source->rank);
	pthread_mutex_lock(&lock);
	seen[TO_ONE]++;
	pthread_cond_broadcast(&changed);
	pthread_mutex_unlock(&lock);
	done(PMIX_EVENT_ACTION_COMPLETE, NULL, 0, NULL, NULL, done_arg);
}

/* One rank dies: the others, which asked for that event, get it, and end well. */
void do_outlive(int argc, char **argv)
{
	pmix_status_t code = PMIX_ERR_PROC_ABORTED;

	PMIx_Register_event_handler(&code, 1, NULL, 0, on_death, NULL, NULL);
	fence_all(false);
	if (me.rank == size - 1)
		raise(SIGKILL);
	wait_for(TO_ONE);
	printf("outlived\n");
}
