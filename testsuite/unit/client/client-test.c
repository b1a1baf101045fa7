/* SPDX-License-Identifier: BSD-3-Clause */
/* The client library's session: alone, with a stock server, with PMI-1 only. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "server.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"

static void init_pmi2(int want_rank, int want_size)
{
	int spawned = -1, size = -1, rank = -1, appnum = -2;

	assert_int_equal(PMI2_Init(&spawned, &size, &rank, &appnum), 0);
	assert_int_equal(spawned, 0);
	assert_int_equal(size, want_size);
	assert_int_equal(rank, want_rank);
	assert_int_equal(appnum, -1);
}

static void assert_wire(const char *want)
{
	char wire[16];

	assert_int_equal(PMIX_Capabilities("wire", wire, sizeof(wire)), 0);
	assert_string_equal(wire, want);
}

/* ---- alone ---- */

TEST(alone_puts_and_gets)
{
	char value[8], left[8], right[8], buffer[PMI2X_MAXLENGTH];
	int len, rank, size, found;

	init_pmi2(0, 1);
	assert_wire("none");
	assert_int_equal(PMI2_KVS_Put("a", "1234567890"), 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMI2_KVS_Get(NULL, PMI2_ID_NULL, "a", value,
				      sizeof(value), &len), 0);
	assert_string_equal(value, "1234567");
	assert_int_equal(len, -10);
	assert_int_equal(PMI2_KVS_Get(NULL, PMI2_ID_NULL, "b", value,
				      sizeof(value), &len),
			 PMI2_ERR_INVALID_KEY);
	assert_int_equal(PMIX_Ring("me", &rank, &size, left, right, 8), 0);
	assert_int_equal(size, 1);
	assert_string_equal(left, "me");
	assert_int_equal(PMIX_Allgather("all", buffer), 0);
	assert_string_equal(buffer, "all");
	assert_int_equal(PMI2_Info_GetJobAttr("universeSize", value, 8, &found),
			 0);
	assert_int_equal(found, 1);
	assert_int_equal(PMI2_Info_GetNodeAttr("x", value, 8, &found, 0), 0);
	assert_int_equal(found, 0);
	assert_int_equal(PMI2_Finalize(), 0);
}

TEST(alone_serves_pmi1)
{
	char name[256], other[256], value[64], options[4];
	int spawned, n, ranks[1];
	PMI_BOOL is;

	assert_int_equal(PMI_Init(&spawned), 0);
	assert_int_equal(PMI_Initialized(&is), 0);
	assert_int_equal(is, PMI_TRUE);
	assert_int_equal(PMI_KVS_Get_my_name(name, sizeof(name)), 0);
	assert_int_equal(PMI_KVS_Put(name, "k", "v"), 0);
	assert_int_equal(PMI_KVS_Commit(name), 0);
	assert_int_equal(PMI_Barrier(), 0);
	assert_int_equal(PMI_KVS_Get(name, "k", value, 64), 0);
	assert_string_equal(value, "v");
	assert_int_equal(PMI_KVS_Create(other, sizeof(other)), 0);
	assert_int_equal(PMI_KVS_Get(other, "k", value, 64),
			 PMI_ERR_INVALID_KEY);
	assert_int_equal(PMI_KVS_Put(other, "k", "w"), 0);
	assert_int_equal(PMI_KVS_Get(other, "k", value, 64), 0);
	assert_string_equal(value, "w");
	assert_int_equal(PMI_KVS_Put("nonsense", "k", "w"),
			 PMI_ERR_INVALID_KVS);
	assert_int_equal(PMI_Get_clique_size(&n), 0);
	assert_int_equal(n, 1);
	assert_int_equal(PMI_Get_clique_ranks(ranks, 1), 0);
	assert_int_equal(ranks[0], 0);
	assert_int_equal(PMI_Publish_name("s", "port"), 0);
	assert_int_equal(PMI_Publish_name("s", "port"), PMI_FAIL);
	assert_int_equal(PMI_Unpublish_name("s"), 0);
	n = sizeof(options);
	assert_int_equal(PMI_Get_options(options, &n), 0);
	assert_int_equal(PMI_Finalize(), 0);
}

/* ---- what must fail, and how ---- */

/* Each function of pmi2x.h that needs a session says that there is none. */
static bool has_no_session(void)
{
	char text[PMI2X_MAXLENGTH], right[8];
	size_t len = sizeof(text);
	PMIX_Request r;
	PMIX_View *view;
	int n, size;
	const int codes[] = {
		PMIX_Ring("v", &n, &size, text, right, sizeof(right)),
		PMIX_Allgather("v", text),
		PMIX_Iallgather("v", text, &r),
		PMIX_Allgather_n("v", 1, text, 1, NULL),
		PMIX_Iallgather_n("v", 1, text, 1, NULL, &r),
		PMIX_Iallgather_view("v", 1, &view, &r),
		PMIX_KVS_Ifence(&r),
		PMIX_KVS_Fetch(0, "k", text, &len, 0),
		PMIX_KVS_Ifetch(0, "k", text, &len, 0, &r),
		PMIX_KVS_Put_n("k", "v", 1),
		PMIX_KVS_Get_n("k", text, 1, &n),
		PMIX_Wait(1),
		PMIX_Test(1, &n),
		PMIX_Capabilities("wire", text, sizeof(text)),
	};

	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
		if (codes[i] != PMI2_ERR_INIT)
			return false;
	return PMIX_Version()[0] != '\0' && PMIX_View_free(NULL) == 0;
}

TEST(refuses_calls_outside_a_session)
{
	char text[8];
	int n;

	assert_int_equal(PMI2_Initialized(), 0);
	assert_int_equal(PMI2_Finalize(), PMI2_ERR_INIT);
	assert_int_equal(PMI2_KVS_Put("a", "b"), PMI2_ERR_INIT);
	assert_int_equal(PMI2_KVS_Get(NULL, 0, "a", text, 8, &n),
			 PMI2_ERR_INIT);
	assert_int_equal(PMI_Get_rank(&n), PMI_ERR_INIT);
	assert_int_equal(PMI_Barrier(), PMI_ERR_INIT);
	assert_true(has_no_session());
	assert_int_equal(PMI2_KVS_Wait(), PMI2_ERR_INIT);
	init_pmi2(0, 1);
	assert_int_equal(PMI2_Init(NULL, NULL, NULL, NULL), PMI2_ERR_INIT);
	assert_int_equal(PMI_Init(&n), PMI_ERR_INIT);
	assert_int_equal(PMI2_Finalize(), 0);
	assert_int_equal(PMI2_KVS_Fence(), PMI2_ERR_INIT);
	assert_true(has_no_session());
	init_pmi2(0, 1);
	assert_int_equal(PMI2_Finalize(), 0);
}

TEST(refuses_a_bad_pmi_fd)
{
	static const char *const bad[] = { "", "x", "3x", "-1", "99999999999",
					   "1000000" };
	char text[16];
	int fd = open("/dev/null", O_RDONLY);

	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		setenv("PMI_FD", bad[i], 1);
		assert_int_not_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	}
	snprintf(text, sizeof(text), "%d", fd);
	setenv("PMI_FD", text, 1);
	assert_int_not_equal(PMI2_Init(NULL, NULL, NULL, NULL), 0);
	unsetenv("PMI_FD");
	close(fd);
	assert_int_equal(PMI2_Initialized(), 0);
}

TEST(checks_its_arguments)
{
	char value[PMI2_MAX_VALLEN + 1], text[8];
	int n;

	memset(value, 'x', sizeof(value));
	value[PMI2_MAX_VALLEN] = '\0';
	init_pmi2(0, 1);
	assert_int_equal(PMI2_KVS_Put("k", value), PMI2_ERR_INVALID_VAL_LENGTH);
	assert_int_equal(PMI2_KVS_Put(value, "v"), PMI2_ERR_INVALID_KEY_LENGTH);
	assert_int_equal(PMI2_KVS_Put("k", value + 1), 0);
	assert_int_equal(PMI2_KVS_Put(NULL, "v"), PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_KVS_Get(NULL, 0, "k", NULL, 0, &n), 0);
	assert_int_equal(n, -(PMI2_MAX_VALLEN - 1));
	assert_int_equal(PMI2_KVS_Get(NULL, 0, "k", NULL, 3, &n),
			 PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_Job_GetId(text, 3), PMI2_ERR_INVALID_LENGTH);
	assert_int_equal(PMIX_Allgather(value, value),
			 PMI2_ERR_INVALID_VAL_LENGTH);
	assert_int_equal(PMIX_Capabilities("none such", text, 8),
			 PMI2_ERR_INVALID_KEY);
	assert_int_equal(PMI2_Finalize(), 0);
}

FAKE_TEST(a_forked_child_is_refused, .extended = true)
{
	int status;
	pid_t pid;

	init_pmi2(FAKE_RANK, FAKE_SIZE);
	pid = fork();
	if (pid == 0) {
		char v[8];
		int bad = PMI2_KVS_Fence() != PMI2_ERR_INIT ||
			  PMI2_KVS_Get(NULL, -1, "a", v, 8, NULL) !=
				  PMI2_ERR_INIT ||
			  PMI2_Finalize() != PMI2_ERR_INIT ||
			  PMI2_Initialized() || !has_no_session();

		_exit(bad);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMI2_Finalize(), 0);
}

/* True: a program that is executed now finds PMI_FD open. */
static bool passed_on(void)
{
	return system("test -S /proc/self/fd/$PMI_FD") == 0;
}

static bool open_in_a_child(void)
{
	pid_t pid = fork();
	int status;

	if (pid == 0)
		_exit(fcntl(atoi(getenv("PMI_FD")), F_GETFD) < 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return status == 0;
}

FAKE_TEST(agent_sees_a_second_program_that_a_program_starts, .extended = true)
{
	init_pmi2(FAKE_RANK, FAKE_SIZE);
	assert_true(passed_on());
	assert_int_equal(PMI2_Finalize(), 0);
}

FAKE_TEST(answer_to_a_second_program_is_not_taken_for_its_own,
	  .garbage_cmd = "kvs-fence",
	  .garbage = "cmd=response_to_init pmi_version=2 rc=14 msg=taken\n"
		     "28    cmd=kvs-fence-response;rc=0;")
{
	init_pmi2(FAKE_RANK, FAKE_SIZE);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMI2_KVS_Put("k", "v"), 0);
	assert_int_equal(PMI2_Finalize(), 0);
}

FAKE_TEST(no_other_program_gets_the_connection_of_a_session, .cuts_values = true)
{
	assert_true(passed_on());
	init_pmi2(FAKE_RANK, FAKE_SIZE);
	assert_false(passed_on());
	assert_true(open_in_a_child());
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMI2_Finalize(), 0);
	assert_true(passed_on());
}

/* ---- with servers that know no extension ---- */

FAKE_TEST(speaks_to_a_stock_server, .cuts_values = true)
{
	char text[256];
	int n, found, array[4], ranks[4];

	init_pmi2(FAKE_RANK, FAKE_SIZE);
	assert_wire("pmi-2");
	assert_int_equal(PMIX_Capabilities("extension", text, 8), 0);
	assert_string_equal(text, "0");
	assert_int_equal(PMI2_KVS_Put("k", "v"), 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMI2_KVS_Get("77.0", -1, "k", text, 256, &n), 0);
	assert_string_equal(text, "v");
	assert_int_equal(n, 1);
	assert_int_equal(PMI2_Info_PutNodeAttr("ints", "3,-4,5"), 0);
	assert_int_equal(PMI2_Info_GetNodeAttrIntArray("ints", array, 2, &n,
						       &found), 0);
	assert_int_equal(n, 2);
	assert_int_equal(array[1], -4);
	assert_int_equal(PMI2_Nameserv_publish("s", NULL, "p"), 0);
	assert_int_equal(PMI2_Nameserv_lookup("s", NULL, text, 256), 0);
	assert_string_equal(text, "p");
	assert_int_equal(PMI2_Nameserv_lookup("t", NULL, text, 256),
			 PMI2_ERR_INVALID_KEY);
	assert_int_equal(PMI2_Job_Connect("9.9", &(PMI2_Connect_comm_t){ 0 }),
			 PMI2_FAIL);
	assert_int_equal(PMI_Get_clique_size(&n), 0);
	assert_int_equal(n, 2);
	assert_int_equal(PMI_Get_clique_ranks(ranks, 4), 0);
	assert_int_equal(ranks[1], 1);
	assert_int_equal(PMI_Get_universe_size(&n), 0);
	assert_int_equal(n, 64);
	assert_int_equal(PMI2_Finalize(), 0);
}

FAKE_TEST(starts_again_on_the_same_descriptor, .extended = true)
{
	for (int i = 0; i < 3; i++) {
		init_pmi2(FAKE_RANK, FAKE_SIZE);
		assert_int_equal(PMI2_KVS_Put("k", "v"), 0);
		assert_int_equal(PMI2_KVS_Fence(), 0);
		assert_int_equal(PMI2_Finalize(), 0);
	}
	assert_int_equal(fake_seen(f, "fullinit"), 3);
}

/* Tests the extensions with a server that cuts and limits values. */
static void gathers_with_keys(const char *value, size_t len)
{
	char *all = malloc(FAKE_SIZE * 5000);
	int lengths[FAKE_SIZE];

	memset(all, '?', FAKE_SIZE * 5000);
	assert_int_equal(PMIX_Allgather_n(value, len, all, 5000, lengths), 0);
	for (int r = 0; r < FAKE_SIZE; r++) {
		assert_int_equal(lengths[r], len);
		assert_memory_equal(all + r * 5000, value, len);
		assert_int_equal(all[r * 5000 + 4999], 0);
	}
	free(all);
}

FAKE_TEST(extensions_fall_back, .cuts_values = true)
{
	char binary[4000], left[32], right[32], back[4000];
	int rank, size, n;

	for (size_t i = 0; i < sizeof(binary); i++)
		binary[i] = (char)(i * 7);
	init_pmi2(FAKE_RANK, FAKE_SIZE);
	gathers_with_keys("plain", 5);
	gathers_with_keys("semi;colon", 10);
	gathers_with_keys("", 0);
	gathers_with_keys("%b64:1:AA", 9);
	gathers_with_keys(binary, sizeof(binary));
	assert_int_equal(PMIX_KVS_Put_n("bin", binary, sizeof(binary)), 0);
	assert_int_equal(PMI2_KVS_Fence(), 0);
	assert_int_equal(PMIX_KVS_Get_n("bin", back, sizeof(back), &n), 0);
	assert_int_equal(n, sizeof(binary));
	assert_memory_equal(back, binary, sizeof(binary));
	assert_int_equal(PMIX_Ring("a;b", &rank, &size, left, right, 32), 0);
	assert_int_equal(rank, 2);
	assert_string_equal(left, "a;b");
	assert_int_equal(fake_seen(f, "ring"), 1);
	assert_int_equal(PMI2_Finalize(), 0);
}

FAKE_TEST(speaks_pmi1_where_pmi2_is_refused, .pmi1_only = true)
{
	const char *argv[] = { "-x", NULL };
	const char **argvs[] = { argv, argv };
	const char *cmds[] = { "one", "two" };
	char name[256], text[256], left[32], right[32];
	int spawned, n, rank, size, errors[3];

	unsetenv("PMI_JOBID"); /* only Slurm sets it: say init again */
	assert_int_equal(PMI_Init(&spawned), 0);
	assert_wire("pmi-1");
	assert_int_equal(fake_seen(f, "init"), 2);
	assert_int_equal(PMI_Get_rank(&n), 0);
	assert_int_equal(n, FAKE_RANK);
	assert_int_equal(PMI_Get_universe_size(&n), 0);
	assert_int_equal(n, 64);
	assert_int_equal(PMI_KVS_Get_my_name(name, sizeof(name)), 0);
	assert_string_equal(name, "77.0");
	assert_int_equal(PMI_KVS_Put(name, "k", "a value"), 0);
	assert_int_equal(PMI_Barrier(), 0);
	assert_int_equal(PMI_KVS_Get(name, "k", text, sizeof(text)), 0);
	assert_string_equal(text, "a value");
	assert_int_equal(PMI_KVS_Get(name, "q", text, sizeof(text)),
			 PMI_ERR_INVALID_KEY);
	assert_int_equal(PMIX_Ring("a;b c", &rank, &size, left, right, 32), 0);
	assert_string_equal(right, "a;b c");
	gathers_with_keys("with space", 10);
	assert_int_equal(PMI_Publish_name("s", "p"), 0);
	assert_int_equal(PMI_Lookup_name("s", text), PMI_FAIL);
	assert_int_equal(PMI_Spawn_multiple(2, cmds, argvs, (int[]){ 1, 2 },
					    NULL, NULL, 0, NULL, errors), 0);
	assert_int_equal(fake_seen(f, "spawn"), 2);
	assert_int_equal(PMI_Finalize(), 0);
}

FAKE_TEST(can_be_told_to_speak_pmi1, .extended = true)
{
	int spawned;

	setenv("PMI2X_PMI1_WIRE", "1", 1);
	assert_int_equal(PMI_Init(&spawned), 0);
	assert_wire("pmi-1");
	assert_int_equal(PMI_Barrier(), 0);
	assert_int_equal(PMI_Finalize(), 0);
	unsetenv("PMI2X_PMI1_WIRE");
}

FAKE_TEST(spawns, 0)
{
	const char *argv[] = { "-x;y", "" };
	const char **argvs[] = { argv, NULL };
	const char *cmds[] = { "one", "two" };
	MPID_Info info[] = { { .key = "wdir", .value = "/tmp" } };
	const MPID_Info *infos[] = { info, NULL };
	const MPID_Info *preput[] = { info };
	char jobid[64];
	int errors[3];

	init_pmi2(FAKE_RANK, FAKE_SIZE);
	assert_int_equal(PMI2_Job_Spawn(2, cmds, (int[]){ 2, 0 }, argvs,
					(int[]){ 1, 2 }, (int[]){ 1, 0 }, infos,
					1, preput, jobid, sizeof(jobid),
					errors), 0);
	assert_string_equal(jobid, "78.0");
	assert_int_equal(errors[1], 7);
	assert_int_equal(errors[2], 0);
	assert_int_equal(PMI2_Job_Spawn(0, cmds, NULL, NULL, (int[]){ 1 }, NULL,
					NULL, 0, NULL, NULL, 0, NULL),
			 PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_Job_Spawn(1, cmds, NULL, NULL, (int[]){ 0 }, NULL,
					NULL, 0, NULL, NULL, 0, NULL),
			 PMI2_ERR_INVALID_ARG);
	assert_int_equal(PMI2_Finalize(), 0);
}
