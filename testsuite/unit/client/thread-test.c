/* SPDX-License-Identifier: BSD-3-Clause */
/* Four threads in one session: every answer reaches who asked. */
#include "unit.h"

#include <pthread.h>
#include <stdio.h>

#include "server.h"
#include "pmi2.h"
#include "pmi2x.h"

#define THREADS 4
#define ROUNDS 20

struct job {
	int number;
	int wrong;
};

/* cmocka's assertions belong to the main thread: count what is wrong. */
static void check(struct job *j, bool right)
{
	j->wrong += !right;
}

static void put_and_get(struct job *j, int round)
{
	char key[32], value[32], text[64];
	int n, found;

	snprintf(key, sizeof(key), "key.%d.%d", j->number, round);
	snprintf(value, sizeof(value), "value %d of %d", round, j->number);
	check(j, !PMI2_KVS_Put(key, value));
	check(j, !PMI2_Info_PutNodeAttr(key, value));
	check(j, !PMI2_Info_GetNodeAttr(key, text, sizeof(text), &found, 0));
	check(j, found && !strcmp(text, value));
	check(j, !PMI2_KVS_Fence());
	check(j, !PMI2_KVS_Get(NULL, -1, key, text, sizeof(text), &n));
	check(j, !strcmp(text, value));
}

static void gather(struct job *j, int round)
{
	char all[FAKE_SIZE * 64], value[32];
	PMIX_Request fence, values;
	int flag = 0;

	snprintf(value, sizeof(value), "%d from %d", round, j->number);
	check(j, !PMIX_KVS_Ifence(&fence));
	check(j, !PMIX_Iallgather_n(value, strlen(value) + 1, all, 64, NULL,
				    &values));
	while (!flag)
		check(j, !PMIX_Test(values, &flag));
	check(j, !strcmp(all + 64 * FAKE_RANK, value));
	check(j, !PMIX_Wait(fence));
}

static void *work(void *arg)
{
	struct job *j = arg;

	for (int round = 0; round < ROUNDS; round++)
		put_and_get(j, round);
	return NULL;
}

static void *work_with_requests(void *arg)
{
	struct job *j = arg;

	for (int round = 0; round < ROUNDS; round++) {
		if (j->number % 2)
			put_and_get(j, round);
		else
			gather(j, round);
	}
	return NULL;
}

static void run_threads(const struct fake_options *options,
			void *(*work_of_thread)(void *))
{
	struct fake *f = fake_start(options);
	pthread_t threads[THREADS];
	struct job jobs[THREADS];

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	for (int i = 0; i < THREADS; i++) {
		jobs[i] = (struct job){ .number = i };
		pthread_create(&threads[i], NULL, work_of_thread, &jobs[i]);
	}
	for (int i = 0; i < THREADS; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(jobs[i].wrong, 0);
	}
	assert_int_equal(PMI2_Finalize(), 0);
	fake_stop(f);
}

TEST(threads_share_an_extended_session)
{
	run_threads(&(struct fake_options){ .extended = true },
		    work_with_requests);
}

TEST(threads_share_a_session_without_mapping)
{
	run_threads(&(struct fake_options){ .extended = true,
					    .no_region = true },
		    work_with_requests);
}

TEST(threads_share_a_plain_session)
{
	run_threads(&(struct fake_options){ 0 }, work);
}

/* One thread waits for a fence while another one calls get. */
static void *wait_for_it(void *arg)
{
	return PMIX_Wait(*(PMIX_Request *)arg) ? arg : NULL;
}

FAKE_TEST(gets_while_another_thread_waits, .hold_fences = true)
{
	PMIX_Request fence;
	pthread_t thread;
	void *failed;
	int found;
	char text[8];

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(PMIX_KVS_Ifence(&fence), 0);
	pthread_create(&thread, NULL, wait_for_it, &fence);
	for (int i = 0; i < 100; i++)
		assert_int_equal(PMI2_Info_GetNodeAttr("x", text, 8, &found, 0),
				 0);
	fake_release(f, 1);
	pthread_join(thread, &failed);
	assert_null(failed);
	assert_int_equal(PMI2_Finalize(), 0);
}
