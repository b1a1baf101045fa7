/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library without memory, or on a system that refuses: whichever
 * call fails, every function returns, the session can be ended, and no memory
 * (LeakSanitizer looks) and no descriptor is left behind.
 */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "server.h"
#include "pmi2.h"
#include "pmi2x.h"
#include "refusal.h"

#define LIMIT_S 300 /* a call that hangs ends the test */

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void kvs(void)
{
	char text[PMI2_MAX_VALLEN];
	PMIX_Request request;
	int n = 0;

	PMI2_KVS_Put("a", "1");
	PMI2_KVS_Fence();
	PMI2_KVS_Get(NULL, -1, "a", text, sizeof(text), &n);
	if (!PMIX_KVS_Ifence(&request))
		PMIX_Wait(request);
}

static void gathers(void)
{
	static char all[FAKE_SIZE * PMI2X_MAXLENGTH];
	PMIX_Request request;
	PMIX_View *view;
	int len;

	PMIX_Allgather("x", all);
	if (!PMIX_Iallgather_view("abc", 3, &view, &request) &&
	    !PMIX_Wait(request)) {
		PMIX_View_value(view, 0, &len);
		PMIX_View_free(view);
	}
}

static void others(void)
{
	char text[PMI2_MAX_ATTRVALUE], left[16], right[16];
	int found, rank, size;

	PMI2_Info_GetJobAttr("PMI_process_mapping", text, sizeof(text), &found);
	PMI2_Job_GetId(text, sizeof(text));
	PMIX_Ring("value", &rank, &size, left, right, sizeof(left));
}

static void session(void)
{
	if (PMI2_Init(NULL, NULL, NULL, NULL))
		return;
	kvs();
	gathers();
	others();
	PMI2_Finalize();
	assert_int_equal(PMI2_Initialized(), 0);
}

/* With the nth call refused; false: there are not as many. */
static bool refuse_one(const struct fake_options *options, enum refusal what,
		       uint32_t nth)
{
	int before = open_descriptors();
	struct fake *f = fake_start(options);
	uint32_t count;

	refusal_arm(what, nth, false);
	session();
	count = refusal_disarm();
	fake_stop(f);
	assert_int_equal(open_descriptors(), before);
	return count >= nth;
}

static void refuse_each(const struct fake_options *options, enum refusal what)
{
	uint32_t nth = 1;

	while (refuse_one(options, what, nth))
		nth++;
	assert_true(nth > 20); /* there were some */
}

static const struct fake_options plain, extended = { .extended = true },
	no_region = { .extended = true, .no_region = true };

TEST(survives_without_memory)
{
	refuse_each(&plain, REFUSE_MEMORY);
	refuse_each(&extended, REFUSE_MEMORY);
	refuse_each(&no_region, REFUSE_MEMORY);
}

TEST(survives_a_system_that_refuses)
{
	refuse_each(&plain, REFUSE_SYSTEM);
	refuse_each(&extended, REFUSE_SYSTEM);
	refuse_each(&no_region, REFUSE_SYSTEM);
}

/* ---- what was put is there ---- */

#define BIG (PMI2X_MAX_VALLEN / 8) /* bytes; a few of them fill a batch */
#define PUTS 26

static int put_big(int i)
{
	static char bytes[BIG];
	char key[16];

	memset(bytes, 'a' + i, sizeof(bytes));
	snprintf(key, sizeof(key), "big%d", i);
	return PMIX_KVS_Put_n(key, bytes, sizeof(bytes));
}

static void check_big(int i)
{
	static char bytes[BIG + 1];
	int len;
	char key[16];

	snprintf(key, sizeof(key), "big%d", i);
	assert_int_equal(PMIX_KVS_Get_n(key, bytes, sizeof(bytes), &len),
			 0);
	assert_int_equal(len, BIG);
	assert_int_equal(bytes[0], 'a' + i);
	assert_int_equal(bytes[BIG - 1], 'a' + i);
}

/*
 * Put what fills some batches, and fence: with the nth allocation refused, and
 * what is refused done again. False: the connection did not outlive it.
 */
static bool put_and_fence(uint32_t nth, uint32_t *count)
{
	int rc = 0;

	refusal_arm(REFUSE_MEMORY, nth, false);
	for (int i = 0; i < PUTS && !rc; i++)
		if (put_big(i))
			rc = put_big(i);
	if (!rc && PMI2_KVS_Fence())
		rc = PMI2_KVS_Fence();
	*count = refusal_disarm();
	return rc == 0;
}

static void fence_after(const struct fake_options *options)
{
	uint32_t nth = 1, count = 1;
	int outlived = 0;

	for (; nth <= count; nth++) {
		struct fake *f = fake_start(options);

		assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
		if (put_and_fence(nth, &count)) {
			outlived++;
			for (int i = 0; i < PUTS; i++)
				check_big(i);
		}
		PMI2_Finalize();
		fake_stop(f);
	}
	assert_true(outlived > 3);
}

TEST(puts_are_found_after_the_fence)
{
	fence_after(&extended);
	fence_after(&no_region);
}

int main(void)
{
	alarm(LIMIT_S);
	/* Every refusal is reported; nobody wants to read them all. */
	if (!freopen("/dev/null", "w", stderr))
		return 1;
	return unit_run(NULL, NULL, NULL);
}
