/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The PMI-2 of Slurm's own libpmi2.so.0 beside that of our drop-in: the same
 * calls, each library in a process of its own, on the engine. The messages that
 * both send decode to the same commands and fields, with the values that the
 * program gave, and both get the same results. Skipped without Slurm's library.
 */
#include "unit.h"

#include <dlfcn.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "libengine/pmi_server.h"
#include "libpmi/message.h"

#define STOCK "libpmi2.so.0"
#define OWN "contrib/libpmi2x/.libs/libpmi2.so.0"
#define ODD_VALUE "a;b;;=c d"
#define MESSAGES_MAX 64
#define RESULTS_MAX 4096
#define BYTES_MAX 65536

/* ---- the program, in a process of its own ---- */

static void *library;
static char results[RESULTS_MAX];

static void note(const char *call, int rc, const char *value)
{
	size_t len = strlen(results);

	/* An error is recorded only as one: both have codes of their own. */
	snprintf(results + len, sizeof(results) - len, "%s %s %s\n", call,
		 rc ? "fails" : "works", rc ? "" : value);
}

#define FUNCTION(name, ...) ((int (*)(__VA_ARGS__))dlsym(library, #name))

static void use_kvs(void)
{
	int (*get)(const char *, int, const char *, char *, int, int *) =
		FUNCTION(PMI2_KVS_Get, const char *, int, const char *, char *,
			 int, int *);
	char value[1024] = "", id[64] = "";
	int len, rc;

	/* First, since ours asks for it when a job is named. */
	note("jobid", FUNCTION(PMI2_Job_GetId, char *, int)(id, sizeof(id)),
	     id);
	note("put", FUNCTION(PMI2_KVS_Put, const char *, const char *)
	     ("a=key", ODD_VALUE), "");
	note("fence", FUNCTION(PMI2_KVS_Fence, void)(), "");
	rc = get("7.0", -1, "a=key", value, sizeof(value), &len);
	note("get", rc, "");
	note("get", get("7.0", 0, "absent", value, sizeof(value), &len), "");
}

static void use_attributes(void)
{
	char value[1024] = "";
	int found = 0, numbers[4], n = 0, rc;

	note("putnode", FUNCTION(PMI2_Info_PutNodeAttr, const char *,
				 const char *)("name", "value"), "");
	rc = FUNCTION(PMI2_Info_GetNodeAttr, const char *, char *, int, int *,
		      int)("name", value, sizeof(value), &found, 1);
	note("getnode", rc, value);
	rc = FUNCTION(PMI2_Info_GetJobAttr, const char *, char *, int, int *)
		("PMI_process_mapping", value, sizeof(value), &found);
	note("getjob", rc, value);
	rc = FUNCTION(PMI2_Info_GetJobAttrIntArray, const char *, int *, int,
		      int *, int *)("universeSize", numbers, 4, &n, &found);
	note("getints", rc, n == 1 && numbers[0] == 5 ? "5" : "wrong");
}

/* srun cannot be reached: these fail, but they are sent. */
static void use_srun(void)
{
	const char *cmds[] = { "./a.out", "b" };
	const char *args[] = { "-x", "y;z", NULL }, *none[] = { NULL };
	const char **argvs[] = { args, none };
	int argcs[] = { 2, 0 }, procs[] = { 2, 1 }, infos[] = { 0, 0 };
	int errors[3];
	char port[64], id[64];

	note("publish", FUNCTION(PMI2_Nameserv_publish, const char *, void *,
				 const char *)("ocean", NULL, "port;0"), "");
	note("lookup", FUNCTION(PMI2_Nameserv_lookup, const char *, void *,
				char *, int)("ocean", NULL, port, 64), "");
	note("unpublish", FUNCTION(PMI2_Nameserv_unpublish, const char *,
				   void *)("ocean", NULL), "");
	note("spawn", FUNCTION(PMI2_Job_Spawn, int, const char **, int *,
			       const char ***, const int *, const int *,
			       void *, int, void *, char *, int, int *)
	     (2, cmds, argcs, argvs, procs, infos, NULL, 0, NULL, id,
	      sizeof(id), errors), "");
}

/* Ends with the results on `out`; 77: there is no such library. */
static _Noreturn void program(const char *path, int fd, int out)
{
	int spawned, size, rank, appnum, rc;
	char text[32];

	library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		_exit(77);
	snprintf(text, sizeof(text), "%d", fd);
	setenv("PMI_FD", text, 1);
	setenv("PMI_RANK", "0", 1);
	setenv("PMI_SIZE", "1", 1);
	setenv("PMI_JOBID", "7.0", 1);
	setenv("PMI2X_DISABLE", "1", 1);
	rc = FUNCTION(PMI2_Init, int *, int *, int *, int *)
		(&spawned, &size, &rank, &appnum);
	snprintf(text, sizeof(text), "%d %d", size, rank);
	note("init", rc, text);
	use_kvs();
	use_attributes();
	use_srun();
	note("finalize", FUNCTION(PMI2_Finalize, void)(), "");
	(void)!write(out, results, strlen(results));
	_exit(0);
}

/* ---- the server, which keeps what it gets ---- */

struct recorder {
	struct pmi_server *server;
	int fd;
	char bytes[BYTES_MAX];
	size_t len;
};

static void client_send(void *arg, uint32_t slot, const void *data, size_t len,
			const struct passed_fds *fds)
{
	struct recorder *r = arg;

	assert_int_equal(send(r->fd, data, len, MSG_NOSIGNAL), len);
}

static void client_close(void *arg, uint32_t slot)
{
	struct recorder *r = arg;

	shutdown(r->fd, SHUT_RDWR);
}

static void nothing(void *arg)
{
}

static void no_control(void *arg, const void *data, size_t len)
{
}

static const struct pmi_host_ops ops = {
	.client_send = client_send,
	.client_close = client_close,
	.links_wanted = nothing,
	.control_send = no_control,
};

static void serve(struct recorder *r)
{
	ssize_t n;

	while ((n = recv(r->fd, r->bytes + r->len, BYTES_MAX - r->len, 0)) > 0) {
		pmi_server_client_input(r->server, 0, r->bytes + r->len, n);
		r->len += n;
	}
	pmi_server_client_eof(r->server, 0);
}

static void record(struct recorder *r)
{
	static const uint32_t rank = 0, count = 1;
	static const uint32_t *const lists[] = { &rank };
	static const char *const names[] = { "n0" };
	struct layout *layout;
	struct pmi_step step = {
		.jobid = "7.0", .tree_width = 2, .universe_size = 5,
		.mapping = "(vector,(0,1,1))", .build = "test",
		.node_names = names,
	};

	assert_int_equal(layout_create(&layout, 1, 1, &count, lists), 0);
	step.layout = layout;
	assert_int_equal(pmi_server_create(&r->server, &step, NULL, &ops, r,
					   NULL), 0);
	pmi_server_control_lost(r->server, "srun is not here");
	pmi_server_client_open(r->server, 0);
	serve(r);
	pmi_server_destroy(r->server);
	layout_destroy(layout);
}

/* Run the program with a library: false when there is none. */
static bool run(const char *path, struct recorder *r, char told[RESULTS_MAX])
{
	int fds[2], out[2], status;
	ssize_t n;
	pid_t pid;

	memset(r, 0, sizeof(*r));
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	assert_int_equal(pipe(out), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (pid == 0) {
		close(fds[0]);
		program(path, fds[1], out[1]);
	}
	close(fds[1]);
	close(out[1]);
	r->fd = fds[0];
	record(r);
	n = read(out[0], told, RESULTS_MAX - 1);
	told[n > 0 ? n : 0] = '\0';
	assert_int_equal(waitpid(pid, &status, 0), pid);
	close(fds[0]);
	close(out[0]);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status) != 77;
}

/* ---- comparing ---- */

struct messages {
	struct pmi_message at[MESSAGES_MAX];
	size_t count;
};

/* Decodes in place. The first line is PMI-1. */
static void decode_all(struct recorder *r, struct messages *m)
{
	char *at = r->bytes, *end = r->bytes + r->len;

	for (m->count = 0; at < end; m->count++) {
		struct pmi_message *next = &m->at[m->count];
		long len;

		assert_true(m->count < MESSAGES_MAX);
		pmi_message_init(next);
		len = m->count ? pmi2_frame(at, end - at) :
				 pmi1_frame(at, end - at);
		assert_true(len > 0);
		assert_int_equal(m->count ? pmi2_decode(at, len, next) :
					    pmi1_decode(at, len, next), 0);
		at += len;
	}
}

static void free_all(struct messages *m)
{
	for (size_t i = 0; i < m->count; i++)
		pmi_message_free(&m->at[i]);
}

/* A key that only one of the libraries says, and no server needs. */
static bool is_ignored(const char *cmd, const char *key)
{
	if (!strcmp(key, "thrid") || !strcmp(key, "threaded"))
		return true;
	if (!strcmp(cmd, "kvs-get") && !strcmp(key, "jobid"))
		return true; /* ours leaves out what is its own job */
	return !strncmp(cmd, "name-", 5) && !strncmp(key, "info", 4);
}

/* All fields of `a` are in `b`, as often and with the same value. */
static void assert_contains(const struct pmi_message *b,
			    const struct pmi_message *a)
{
	for (size_t i = 0; i < a->count; i++) {
		const struct pmi_field *f = &a->fields[i];
		size_t in_a = 0, in_b = 0;

		if (is_ignored(pmi_message_cmd(a), f->key))
			continue;
		for (size_t j = 0; j < a->count; j++)
			in_a += !strcmp(a->fields[j].key, f->key) &&
				!strcmp(a->fields[j].value, f->value);
		for (size_t j = 0; j < b->count; j++)
			in_b += !strcmp(b->fields[j].key, f->key) &&
				!strcmp(b->fields[j].value, f->value);
		if (in_a != in_b)
			fail_msg("%s: %s=%s is %zu and %zu times there",
				 pmi_message_cmd(a), f->key, f->value, in_a,
				 in_b);
	}
}

TEST(both_libraries_say_the_same)
{
	static struct recorder stock, own;
	static struct messages said[2];
	char told[2][RESULTS_MAX];

	if (!run(STOCK, &stock, told[0]))
		skip();
	assert_true(run(OWN, &own, told[1]));
	decode_all(&stock, &said[0]);
	decode_all(&own, &said[1]);
	assert_int_equal(said[0].count, said[1].count);
	for (size_t i = 0; i < said[0].count; i++) {
		assert_string_equal(pmi_message_cmd(&said[0].at[i]),
				    pmi_message_cmd(&said[1].at[i]));
		assert_contains(&said[0].at[i], &said[1].at[i]);
		assert_contains(&said[1].at[i], &said[0].at[i]);
	}
	assert_string_equal(told[0], told[1]);
	free_all(&said[0]);
	free_all(&said[1]);
}

/* The stock library's escapes are undone. */
TEST(values_arrive_as_they_were_given)
{
	static struct recorder stock;
	static struct messages said;
	char told[RESULTS_MAX];
	const char *value = NULL;

	if (!run(STOCK, &stock, told))
		skip();
	decode_all(&stock, &said);
	for (size_t i = 0; i < said.count; i++)
		if (!strcmp(pmi_message_cmd(&said.at[i]), "kvs-put"))
			value = pmi_message_str(&said.at[i], "value");
	assert_non_null(value);
	assert_string_equal(value, ODD_VALUE);
	free_all(&said);
}
