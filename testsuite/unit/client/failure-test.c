/* SPDX-License-Identifier: BSD-3-Clause */
/* Servers that die, lie or babble: every call returns an error, none hangs. */
#include "unit.h"

#include <pthread.h>

#include "server.h"
#include "libpmi/extension.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"

/* After the server has failed a fence no call works, and all return. */
static void fails_at_the_fence(const char *bytes, size_t len, bool hang_up)
{
	struct fake *f = fake_start(&(struct fake_options){
		.garbage = bytes,
		.garbage_len = len,
		.garbage_cmd = "kvs-fence",
		.hang_up = hang_up,
	});
	PMIX_Request r;
	char text[8];
	int n;

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(PMIX_KVS_Ifence(&r), 0);
	assert_int_equal(PMIX_Wait(r), PMI2_FAIL);
	assert_int_equal(PMI2_KVS_Put("a", "b"), PMI2_FAIL);
	assert_int_equal(PMI2_KVS_Fence(), PMI2_FAIL);
	assert_int_equal(PMI2_KVS_Get(NULL, -1, "a", text, 8, &n), PMI2_FAIL);
	assert_int_equal(PMI2_Finalize(), PMI2_FAIL);
	assert_int_equal(PMI2_Initialized(), 0);
	fake_stop(f);
}

TEST(server_dies_before_its_answer)
{
	fails_at_the_fence("", 0, true);
}

TEST(server_dies_within_its_answer)
{
	static const char whole[] = "33    cmd=kvs-fence-response;rc=0;xx=y;";

	for (size_t len = 1; len < sizeof(whole) - 1; len += 3)
		fails_at_the_fence(whole, len, true);
}

/* Nothing comes over the socket while a rank waits for its slot's reply. */
FAKE_TEST(server_dies_with_entries_in_its_slots, .extended = true, .mute_slots = true)
{
	PMIX_Request fence[2], gather;
	char buffer[FAKE_SIZE * 8], text[8];
	int flag;

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(PMIX_Capabilities("slots", text, sizeof(text)), 0);
	assert_string_equal(text, "4");
	assert_int_equal(PMIX_KVS_Ifence(&fence[0]), 0);
	assert_int_equal(PMIX_Iallgather_n("x", 1, buffer, 8, NULL, &gather),
			 0);
	assert_int_equal(PMIX_KVS_Ifence(&fence[1]), 0);
	assert_int_equal(PMIX_Test(gather, &flag), 0);
	assert_int_equal(flag, 0);
	assert_int_equal(fake_entered(f), 3);
	assert_int_equal(fake_seen(f, EXT_CMD_FENCE), 0);
	fake_hang_up(f);
	assert_int_equal(PMIX_Wait(fence[1]), PMI2_FAIL);
	assert_int_equal(PMIX_Wait(gather), PMI2_FAIL);
	assert_int_equal(PMI2_KVS_Fence(), PMI2_FAIL);
	assert_int_equal(PMI2_Finalize(), PMI2_FAIL);
}

static void *ring_that_fails(void *arg)
{
	char left[8], right[8];
	int rank, size;

	assert_int_equal(PMIX_Ring("slot", &rank, &size, left, right, 8),
			 PMI2_FAIL);
	return NULL;
}

/* The board has room for one answer; nobody waits for the other thread. */
FAKE_TEST(a_ring_beside_another_uses_the_socket, .extended = true, .mute_slots = true)
{
	char left[8], right[8];
	pthread_t thread;
	int rank, size;

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(pthread_create(&thread, NULL, ring_that_fails, NULL),
			 0);
	while (fake_entered(f) == 0)
		sched_yield();
	assert_int_equal(fake_seen(f, "ring"), 0);
	assert_int_equal(PMIX_Ring("socket", &rank, &size, left, right, 8), 0);
	assert_string_equal(left, "socket");
	assert_int_equal(fake_seen(f, "ring"), 1);
	fake_hang_up(f);
	pthread_join(thread, NULL);
	assert_int_equal(PMI2_Finalize(), PMI2_FAIL);
}

TEST(server_sends_garbage)
{
	static const char *const garbage[] = {
		"hello, world\n",
		"-1    cmd=x;",
		"0     ",
		"5     xxxxx",
		"16    cmd=surprising;x",
		"31    cmd=kvs-fence-response;rc=nine;",
		"26    cmd=kvs-get-response;rc=0;",
	};

	for (size_t i = 0; i < sizeof(garbage) / sizeof(garbage[0]); i++)
		fails_at_the_fence(garbage[i], 0, true);
	fails_at_the_fence("\0\0\0\0\0\0\0\0", 8, false);
}

TEST(server_lies_at_init)
{
	static const char *const lies[] = {
		"41    cmd=fullinit-response;rc=0;rank=9;size=4;",
		"42    cmd=fullinit-response;rc=0;rank=-1;size=4;",
		"41    cmd=fullinit-response;rc=0;rank=0;size=0;",
		"27    cmd=fullinit-response;rc=0;",
		"27    cmd=fullinit-response;rc=3;",
	};

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct fake *f = fake_start(&(struct fake_options){
			.garbage = lies[i],
			.garbage_cmd = "fullinit",
			.hang_up = true,
		});

		assert_int_not_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
		assert_int_equal(PMI2_Initialized(), 0);
		fake_stop(f);
	}
}

/* A PMI error code is no number of ranks. */
TEST(server_refuses_the_mapping)
{
	static const char refusal[] =
		"35    cmd=info-getjobattr-response;rc=14;";
	struct fake *f = fake_start(&(struct fake_options){
		.garbage = refusal,
		.garbage_len = sizeof(refusal) - 1,
		.garbage_cmd = "info-getjobattr",
	});
	int size = -1, ranks[16];

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(PMI_Get_clique_size(&size), PMI_FAIL);
	assert_int_equal(size, -1);
	assert_int_equal(PMI_Get_clique_ranks(ranks, 16), PMI_FAIL);
	PMI2_Finalize();
	fake_stop(f);
}

/* An agent that names places outside the region, or too few values. */
/* The error of a collective names the process that made it fail. */
TEST(the_words_of_a_refusal_are_kept)
{
	static const char refusal[] = "60    cmd=kvs-fence-response;rc=14;"
				      "errmsg=rank 3 (node n1) exited;";
	struct fake *f = fake_start(&(struct fake_options){
		.garbage = refusal,
		.garbage_len = sizeof(refusal) - 1,
		.garbage_cmd = "kvs-fence",
	});
	char text[64];

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(PMIX_Capabilities("refusal", text, sizeof(text)), 0);
	assert_string_equal(text, "");
	assert_int_equal(PMI2_KVS_Fence(), 14);
	assert_int_equal(PMIX_Capabilities("refusal", text, sizeof(text)), 0);
	assert_string_equal(text, "rank 3 (node n1) exited");
	PMI2_Finalize();
	fake_stop(f);
}

TEST(server_lies_about_a_gather)
{
	static const char *const lies[] = {
		"56    cmd=pmi2x-allgather-response;rc=0;"
		"offset=4096;length=64;",
		"60    cmd=pmi2x-allgather-response;rc=0;"
		"offset=99999999;length=64;",
		"60    cmd=pmi2x-allgather-response;rc=0;"
		"offset=64;length=99999999;",
		"44    cmd=pmi2x-allgather-response;rc=0;length=64;",
		"57    cmd=pmi2x-allgather-response;rc=0;"
		"offset=-4096;length=64;",
	};
	char all[FAKE_SIZE * PMI2X_MAXLENGTH];

	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		struct fake *f = fake_start(&(struct fake_options){
			.extended = true,
			.garbage = lies[i],
			.garbage_cmd = "pmi2x-allgather",
			.hang_up = true,
		});

		assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
		assert_int_equal(PMIX_Allgather("x", all), PMI2_FAIL);
		PMI2_Finalize();
		fake_stop(f);
	}
}

/* All threads that wait get the news, whichever of them reads. */
static void *fence(void *arg)
{
	*(int *)arg = PMI2_KVS_Fence();
	return NULL;
}

FAKE_TEST(death_reaches_every_thread,
	  .extended = true, .hold_fences = true, .garbage_cmd = "kvs-get", .garbage = "", .hang_up = true)
{
	pthread_t threads[4];
	int codes[4];

	setenv("PMI2X_NOSHM", "1", 1);
	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, fence, &codes[i]);
	assert_int_equal(PMI2_KVS_Get(NULL, -1, "a", NULL, 0, NULL), PMI2_FAIL);
	for (int i = 0; i < 4; i++) {
		pthread_join(threads[i], NULL);
		assert_int_equal(codes[i], PMI2_FAIL);
	}
	PMI2_Finalize();
	unsetenv("PMI2X_NOSHM");
}
