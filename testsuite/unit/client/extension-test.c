/* SPDX-License-Identifier: BSD-3-Clause */
/* The client library with a server that knows the extension. */
#include "unit.h"

#include <fcntl.h>
#include <unistd.h>

#include "server.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"

static void stop(void *fake)
{
	assert_int_equal(PMI2_Finalize(), 0);
	fake_stop(fake);
}

static struct fake *start(const struct fake_options *options)
{
	struct fake *f = unit_at_end(stop, fake_start(options));

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	return f;
}

/* A test in a session with a server of these options. */
#define SESSION_TEST(name, ...) \
	TEST_ON(name, struct fake *f, start(&(struct fake_options){ __VA_ARGS__ }))

static void assert_capability(const char *name, const char *want)
{
	char text[64];

	assert_int_equal(PMIX_Capabilities(name, text, sizeof(text)), 0);
	assert_string_equal(text, want);
}

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void get(const char *key, const char *want)
{
	char text[PMI2_MAX_VALLEN];
	int n;

	assert_int_equal(PMI2_KVS_Get(NULL, -1, key, text, sizeof(text), &n),
			 0);
	assert_string_equal(text, want);
	assert_int_equal(n, strlen(want));
}

SESSION_TEST(gets_without_a_message, .extended = true)
{
	assert_capability("extension", "1");
	assert_capability("region", "1");
	assert_capability("server-build", "fake-1");
	assert_capability("nodes", "2");
	assert_int_equal(PMI2_KVS_Put("a", "1;2"), 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMI2_KVS_Put("b", "3"), 0);
	assert_int_equal(PMI2_KVS_Get(NULL, -1, "b", NULL, 0, NULL),
			 PMI2_ERR_INVALID_KEY);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	get("a", "1;2");
	get("b", "3");
	assert_int_equal(fake_seen(f, "kvs-put"), 0);
	assert_int_equal(fake_seen(f, "kvs-get"), 0);
}

TEST(pmi1_gets_without_a_message)
{
	struct fake *f = fake_start(&(struct fake_options){ .extended = true });
	char name[256], text[64];
	int spawned;

	assert_int_equal(PMI_Init(&spawned), 0);
	assert_int_equal(PMI_KVS_Get_my_name(name, sizeof(name)), 0);
	assert_int_equal(PMI_KVS_Put(name, "a", "1"), 0);
	assert_int_equal(PMI_Barrier(), 0);
	assert_int_equal(PMI_KVS_Get(name, "a", text, sizeof(text)), 0);
	assert_string_equal(text, "1");
	assert_int_equal(PMI_KVS_Get(name, "a", text, 1),
			 PMI_ERR_INVALID_LENGTH);
	assert_int_equal(PMI_KVS_Get(name, "b", text, sizeof(text)),
			 PMI_ERR_INVALID_KEY);
	assert_int_equal(fake_seen(f, "info-getjobattr"), 0);
	assert_int_equal(PMI_KVS_Get(name, "PMI_process_mapping", text,
				     sizeof(text)), 0);
	assert_string_equal(text, "(vector,(0,2,2))");
	assert_int_equal(PMI_KVS_Get(name, "PMI_none", text, sizeof(text)),
			 PMI_ERR_INVALID_KEY);
	assert_int_equal(fake_seen(f, "kvs-get"), 0);
	assert_int_equal(PMI_Finalize(), 0);
	fake_stop(f);
}

TEST(works_without_a_mapping)
{
	struct fake *f;
	char all[FAKE_SIZE * PMI2X_MAXLENGTH];

	setenv("PMI2X_NOSHM", "1", 1);
	f = start(&(struct fake_options){ .extended = true });
	assert_capability("region", "0");
	assert_int_equal(PMI2_KVS_Put("a", "1"), 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	get("a", "1");
	assert_int_equal(fake_seen(f, "kvs-get"), 1);
	assert_int_equal(PMIX_Allgather("x", all), 0);
	assert_string_equal(all + 3 * PMI2X_MAXLENGTH, "x@3");
	assert_true(fake_seen(f, "pmi2x-read") > 0);
	unit_end(f);
	unsetenv("PMI2X_NOSHM");
}

TEST(can_be_told_to_be_plain)
{
	struct fake *f;

	setenv("PMI2X_DISABLE", "1", 1);
	f = start(&(struct fake_options){ .extended = true });
	assert_capability("extension", "0");
	assert_int_equal(PMI2_KVS_Put("a", "1"), 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	get("a", "1");
	assert_int_equal(fake_seen(f, "kvs-fence"), 1);
	unit_end(f);
	unsetenv("PMI2X_DISABLE");
}

TEST(keeps_no_descriptor)
{
	int before = open_descriptors();
	struct fake *f = fake_start(&(struct fake_options){
		.extended = true, .extra_fds = true });
	int with_server = open_descriptors();

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	assert_int_equal(open_descriptors(), with_server);
	stop(f);
	assert_int_equal(open_descriptors(), before);
}

SESSION_TEST(sends_large_batches_early, .extended = true)
{
	char *value = malloc(PMI2X_MAX_VALLEN);
	char *back = malloc(PMI2X_MAX_VALLEN);
	int n;

	memset(value, ';', PMI2X_MAX_VALLEN); /* doubled on the wire */
	assert_int_equal(PMIX_KVS_Put_n("a", value, PMI2X_MAX_VALLEN), 0);
	assert_int_equal(fake_seen(f, "pmi2x-put"), 0);
	assert_int_equal(PMIX_KVS_Put_n("b", value, PMI2X_MAX_VALLEN), 0);
	assert_int_equal(fake_seen(f, "pmi2x-put"), 1);
	assert_int_equal(PMIX_KVS_Put_n("c", value, PMI2X_MAX_VALLEN + 1),
			 PMI2_ERR_INVALID_VAL_LENGTH);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	for (const char *key = "ab"; *key; key++) {
		char name[2] = { *key, '\0' };

		assert_int_equal(PMIX_KVS_Get_n(name, back, PMI2X_MAX_VALLEN,
						&n), 0);
		assert_int_equal(n, PMI2X_MAX_VALLEN);
		assert_memory_equal(back, value, n);
	}
	free(value);
	free(back);
}

/* The process that inherited PMI_FD first may have made it non-blocking. */
TEST(works_on_a_non_blocking_descriptor)
{
	struct fake *f = fake_start(&(struct fake_options){ .extended = true });
	char *value = calloc(1, PMI2X_MAX_VALLEN);
	int fd = atoi(getenv("PMI_FD"));

	assert_int_equal(fcntl(fd, F_SETFL, O_NONBLOCK), 0);
	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	for (int i = 0; i < 4; i++)
		assert_int_equal(PMIX_KVS_Put_n("a", value, PMI2X_MAX_VALLEN),
				 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	free(value);
	stop(f);
}

/* ---- gathers ---- */

SESSION_TEST(gathers_into_slots, .extended = true)
{
	char all[FAKE_SIZE * PMI2X_MAXLENGTH], small[FAKE_SIZE * 2];
	int lengths[FAKE_SIZE];

	memset(all, '?', sizeof(all));
	assert_int_equal(PMIX_Allgather("val;ue", all), 0);
	assert_string_equal(all, "val;ue@0");
	assert_string_equal(all + PMI2X_MAXLENGTH, "val;ue");
	assert_int_equal(all[2 * PMI2X_MAXLENGTH - 1], 0);
	assert_int_equal(PMIX_Allgather_n("abc", 3, small, 2, lengths), 0);
	assert_memory_equal(small, "abababab", 8);
	assert_int_equal(lengths[0], 5);
	assert_int_equal(lengths[1], 3);
	assert_int_equal(PMIX_Allgather_n(NULL, 0, small, 2, lengths), 0);
	assert_int_equal(lengths[1], 0);
}

SESSION_TEST(invalid_gathers_and_values_have_their_error, .extended = true)
{
	PMIX_Request request;
	PMIX_View *view;
	char to[FAKE_SIZE], value;
	int len;

	assert_int_equal(PMIX_Allgather_n("x", -1, to, 1, NULL),
			 PMI2_ERR_INVALID_VAL_LENGTH);
	assert_int_equal(PMIX_Iallgather_view("x", -1, &view, &request),
			 PMI2_ERR_INVALID_VAL_LENGTH);
	assert_int_equal(PMIX_Allgather_n(NULL, -1, to, 1, NULL),
			 PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_Allgather_n("x", 1, to, 0, NULL),
			 PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_KVS_Put_n("k", "v", -1), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_KVS_Put_n("", "v", 1), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_KVS_Get_n("", &value, 1, &len),
			 PMI2_ERR_INVALID_KEY);
}

TEST(views_without_a_region_are_private_copies)
{
	static const struct fake_options without[] = {
		{ .extended = true, .no_region = true }, { .extended = false },
	};

	for (int i = 0; i < 2; i++) {
		struct fake *f = start(&without[i]);
		PMIX_View *view;
		PMIX_Request request;
		int len;

		assert_capability("region", "0");
		assert_int_equal(PMIX_Iallgather_view("one", 3, &view, &request), 0);
		assert_int_equal(PMIX_Wait(request), 0);
		assert_memory_equal(PMIX_View_value(view, FAKE_RANK, &len),
				    "one", 3);
		assert_int_equal(len, 3);
		/* Memory of this process alone: writing there is no fault. */
		*(char *)PMIX_View_value(view, FAKE_RANK, NULL) = 'O';
		assert_int_equal(PMIX_View_free(view), 0);
		unit_end(f);
	}
}

TEST(shows_gathers_in_place)
{
	struct fake *f = start(&(struct fake_options){ .extended = true });
	PMIX_View *view, *other;
	PMIX_Request a, b;
	int len;

	assert_int_equal(PMIX_Iallgather_view("one", 3, &view, &a), 0);
	assert_int_equal(PMIX_Iallgather_view("two", 3, &other, &b), 0);
	assert_int_equal(PMIX_Wait(b), 0);
	assert_int_equal(PMIX_Wait(a), 0);
	assert_memory_equal(PMIX_View_value(view, FAKE_RANK, &len), "one", 3);
	assert_int_equal(len, 3);
	assert_memory_equal(PMIX_View_value(other, 2, &len), "two@2", 5);
	assert_null(PMIX_View_value(other, FAKE_SIZE, &len));
	assert_null(PMIX_View_value(other, -1, &len));
	assert_int_equal(PMIX_View_free(view), 0);
	unit_end(f);
	assert_null(PMIX_View_value(other, 2, &len));
	assert_int_equal(PMIX_View_free(other), 0);
}

SESSION_TEST(rings, .extended = true)
{
	char left[4], right[4];
	int rank, size;

	assert_int_equal(PMIX_Ring("a;bcd", &rank, &size, left, right, 4), 0);
	assert_int_equal(rank, 2);
	assert_int_equal(size, FAKE_SIZE);
	assert_string_equal(left, "a;b");
}

/* ---- requests ---- */

static void completes_in_any_order(struct fake_options options)
{
	struct fake *f;
	char all[FAKE_SIZE * PMI2X_MAXLENGTH];
	PMIX_Request fence[3], gather;
	int flag = -1;

	options.hold_fences = true;
	f = start(&options);
	for (int i = 0; i < 3; i++)
		assert_int_equal(PMIX_KVS_Ifence(&fence[i]), 0);
	if (options.extended) {
		assert_int_equal(PMIX_Iallgather("x", all, &gather), 0);
		assert_int_equal(PMIX_Wait(gather), 0);
	}
	assert_int_equal(PMIX_Test(fence[0], &flag), 0);
	assert_int_equal(flag, 0);
	if (options.extended) {
		fake_release(f, 3);
	} else { /* one on the wire at a time */
		for (int i = 0; i < 3; i++) {
			assert_int_equal(PMIX_Test(fence[2], &flag), 0);
			fake_release(f, 1);
			while (i == 0 && !flag)
				assert_int_equal(PMIX_Test(fence[0], &flag), 0);
			if (i == 1)
				assert_int_equal(PMIX_Wait(fence[1]), 0);
		}
		assert_int_equal(PMIX_Wait(fence[2]), 0);
		unit_end(f);
		return;
	}
	assert_int_equal(PMIX_Wait(fence[1]), 0);
	assert_int_equal(PMIX_Wait(fence[0]), 0);
	while (!flag)
		assert_int_equal(PMIX_Test(fence[2], &flag), 0);
	assert_int_equal(PMIX_Test(fence[2], &flag), PMI2_ERR_INVALID_ARG);
	unit_end(f);
}

TEST(extended_requests_complete_in_any_order)
{
	completes_in_any_order((struct fake_options){ .extended = true,
						      .reverse = true });
}

TEST(plain_requests_complete_in_any_order)
{
	completes_in_any_order((struct fake_options){ 0 });
}

TEST(refuses_stale_and_made_up_requests)
{
	struct fake *f = start(&(struct fake_options){ .extended = true });
	PMIX_Request stale, next;
	int flag = -1;

	assert_int_equal(PMIX_KVS_Ifence(&stale), 0);
	assert_int_equal(PMIX_Wait(stale), 0);
	assert_int_equal(PMIX_Wait(stale), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_Test(stale, &flag), PMI2_ERR_INVALID_ARG);
	assert_int_equal(flag, -1);
	assert_int_equal(PMIX_KVS_Ifence(&next), 0);
	assert_int_not_equal(next, stale);
	assert_int_equal(PMIX_Wait(stale), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_Wait(0), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_Wait(~(PMIX_Request)0), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMIX_Wait(next), 0);
	assert_int_equal(PMIX_KVS_Ifence(&stale), 0);
	unit_end(f);
	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0); /* alone */
	assert_int_equal(PMIX_KVS_Ifence(&next), 0);
	assert_int_equal(PMIX_Wait(stale), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_Finalize(), 0);
}

SESSION_TEST(finalize_completes_what_nobody_waited_for, .extended = true)
{
	char *all = malloc(FAKE_SIZE * PMI2X_MAXLENGTH);
	PMIX_Request r;

	for (int i = 0; i < 20; i++)
		assert_int_equal(PMIX_KVS_Ifence(&r), 0);
	assert_int_equal(PMIX_Iallgather("x", all, &r), 0);
	free(all); /* not written to */
	assert_int_equal(PMI2_SHMEM_Iallgather("x"), 0);
}

TEST(limits_requests)
{
	PMIX_Request r;
	int n = 0;

	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	while (n < 10000 && PMIX_KVS_Ifence(&r) == 0)
		n++;
	assert_int_equal(n, 4096);
	assert_int_equal(PMIX_Wait(r), 0);
	assert_int_equal(PMIX_KVS_Ifence(&r), 0);
	assert_int_equal(PMI2_Finalize(), 0);
}

SESSION_TEST(reports_a_refused_fence, .extended = true, .refuse_fence = true)
{
	PMIX_Request r;

	assert_int_equal(PMI2_KVS_Fence(), PMI2_ERR_OTHER);
	assert_int_equal(PMIX_KVS_Ifence(&r), 0);
	assert_int_equal(PMIX_Wait(r), PMI2_ERR_OTHER);
	assert_int_equal(PMI_Barrier(), PMI_FAIL);
}

/* Values of a put that succeeded are in the next fence, or there is none. */
TEST(no_fence_without_what_was_put)
{
	static char big[PMI2X_MAX_VALLEN];
	struct fake *f = start(&(struct fake_options){ .extended = true,
						       .refuse_puts = true });

	assert_int_equal(PMIX_KVS_Put_n("a", big, sizeof(big)), 0);
	assert_int_not_equal(PMIX_KVS_Put_n("b", big, sizeof(big)), 0);
	assert_int_not_equal(PMI2_KVS_Fence(), 0);
	assert_int_not_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(fake_seen(f, "pmi2x-fence"), 0);
}

/* ---- MVAPICH2's names ---- */

static void mvapich_gathers(const struct fake_options *options)
{
	struct fake *f = start(options);
	char all[FAKE_SIZE * 1024];
	void *shared, *again;

	memset(all, '?', sizeof(all));
	assert_int_equal(PMI2_Iallgather_wait(all), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_Iallgather("mine"), 0);
	assert_int_equal(PMI2_Iallgather("mine"), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_Iallgather_wait(all), 0);
	assert_string_equal(all + 1024 * FAKE_RANK, "mine");
	assert_int_equal(all[1024 * FAKE_SIZE - 1], 0);
	assert_int_equal(PMI2_SHMEM_Iallgather("shared"), 0);
	assert_int_equal(PMI2_SHMEM_Iallgather_wait(&shared), 0);
	assert_string_equal((char *)shared + 1024 * FAKE_RANK, "shared");
	assert_int_equal(PMI2_SHMEM_Iallgather_wait(&again), 0);
	assert_ptr_equal(shared, again);
	assert_int_equal(PMI_Ibarrier(), 0);
	assert_int_equal(PMI2_KVS_Ifence(), 0);
	assert_int_equal(PMI2_KVS_Ifence(), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_KVS_Wait(), 0);
	assert_int_equal(PMI_Wait(), 0);
	assert_int_equal(PMI_Wait(), 0);
	unit_end(f);
}

TEST(mvapich_names_work)
{
	mvapich_gathers(&(struct fake_options){ .extended = true });
	mvapich_gathers(&(struct fake_options){ 0 });
}
