/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The client library with a server that answers each request with anything and
 * hangs up when the input is used up. Every call returns, values stay inside the
 * caller's buffers, and the session can be ended. The library's reads are
 * replaced (__wrap_recvmsg); it writes into a socket that nobody reads.
 */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "libpmi/message.h"
#include "libshm/region.h"
#include "pmi.h"
#include "pmi2.h"
#include "pmi2x.h"

#define SIZE_OF_JOB 4
#define PIECE_MAX ((size_t)64 << 10) /* what the library reads at once */
#define CALLS_MAX 16

static const char pmi2_start[] =
	"cmd=response_to_init rc=0 pmi_version=2 pmi_subversion=0\n";
static const char plain[] = "cmd=fullinit-response;rc=0;rank=1;size=4;appnum=0;";
static const char extended[] =
	"cmd=fullinit-response;rc=0;rank=1;size=4;pmi2x=1;pmi2x-nodes=2;";
static const char with_region[] =
	"cmd=fullinit-response;rc=0;rank=1;size=4;pmi2x=1;pmi2x-region=1;"
	"pmi2x-region-size=65536;";
static const char pmi1_start[] =
	"cmd=response_to_init rc=0 pmi_version=1 pmi_subversion=1\n"
	"cmd=appnum appnum=-1\n";

/* The bytes for the library, in the pieces in which it reads them. */
static struct {
	struct buf beginning; /* so that the input need not guess it */
	bool region;          /* a descriptor comes with the second piece */
	unsigned int pieces;  /* read so far */
	struct fuzz_input input;
} server;

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags);

static void say(const char *text)
{
	FUZZ_CHECK(!buf_puts(&server.beginning, text));
}

static void say_pmi2(const char *body)
{
	FUZZ_CHECK(!buf_printf(&server.beginning, "%-6zu%s", strlen(body),
			       body));
}

static void start_server(struct fuzz_input *in, uint8_t how)
{
	server.input = *in;
	server.pieces = 0;
	server.region = how == 3;
	buf_init(&server.beginning, 4096);
	if (how >= 1 && how <= 3)
		say(pmi2_start);
	if (how == 1)
		say_pmi2(plain);
	else if (how == 2)
		say_pmi2(extended);
	else if (how == 3)
		say_pmi2(with_region);
	else if (how == 4)
		say(pmi1_start);
}

/* A server answers request by request: one message is one piece. */
static size_t piece(struct buf *out)
{
	struct buf *b = &server.beginning;
	const uint8_t *at;
	long n;

	if (b->len) {
		n = b->data[0] == 'c' ? pmi1_frame(b->data, b->len) :
					pmi2_frame(b->data, b->len);
		FUZZ_CHECK(n > 0 && !buf_append(out, b->data, n));
		buf_consume(b, n);
		return out->len;
	}
	n = pmi2_frame((const char *)server.input.at, server.input.left);
	if (n <= 0)
		n = pmi1_frame((const char *)server.input.at,
			       server.input.left);
	n = fuzz_bytes(&server.input, n > 0 ? (size_t)n : PIECE_MAX, &at);
	FUZZ_CHECK(!buf_append(out, at, n));
	return out->len;
}

/* A results region that a region writer has made. */
static int make_region(void)
{
	struct region_writer *w;
	int fd;

	FUZZ_CHECK(!region_writer_create(&w, REGION_SIZE_MIN));
	fd = dup(region_writer_fd(w));
	region_writer_destroy(w);
	return fd;
}

static void pass_region(struct msghdr *msg)
{
	struct cmsghdr *c = CMSG_FIRSTHDR(msg);
	int fd = make_region();

	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(fd));
	memcpy(CMSG_DATA(c), &fd, sizeof(fd));
	msg->msg_controllen = CMSG_SPACE(sizeof(fd));
}

ssize_t __wrap_recvmsg(int fd, struct msghdr *msg, int flags)
{
	struct buf b;
	size_t n;

	buf_init(&b, PIECE_MAX);
	n = piece(&b);
	FUZZ_CHECK(n <= msg->msg_iov[0].iov_len);
	if (n)
		memcpy(msg->msg_iov[0].iov_base, b.data, n);
	buf_free(&b);
	if (server.region && server.pieces++ == 1)
		pass_region(msg);
	else
		msg->msg_controllen = 0;
	return n;
}

/* ---- calls ---- */

static void get_value(void)
{
	char value[PMI2_MAX_VALLEN];
	int len = 0;

	if (!PMI2_KVS_Get(NULL, PMI2_ID_NULL, "key", value, sizeof(value), &len))
		FUZZ_CHECK(memchr(value, '\0', sizeof(value)));
}

static void get_attributes(void)
{
	char value[PMI2_MAX_ATTRVALUE];
	int found, numbers[4], n = 0;

	PMI2_Info_GetNodeAttr("name", value, sizeof(value), &found, 0);
	PMI2_Info_GetJobAttr("name", value, sizeof(value), &found);
	PMI2_Info_GetJobAttrIntArray("name", numbers, 4, &n, &found);
	FUZZ_CHECK(n <= 4);
}

static void names(void)
{
	char port[64];

	PMI2_Nameserv_publish("a", NULL, "b");
	if (!PMI2_Nameserv_lookup("a", NULL, port, sizeof(port)))
		FUZZ_CHECK(memchr(port, '\0', sizeof(port)));
	PMI2_Nameserv_unpublish("a", NULL);
}

static void make_ring(void)
{
	char left[32], right[32];
	int rank = 0, size = 1;

	if (!PMIX_Ring("value", &rank, &size, left, right, sizeof(left)))
		FUZZ_CHECK(rank >= 0 && rank < size);
}

static void gather(void)
{
	static char all[SIZE_OF_JOB * 1024 * 8];
	PMIX_Request request;

	PMIX_Allgather("value", all);
	if (!PMIX_Iallgather_n("x", 1, all, 8, NULL, &request))
		PMIX_Wait(request);
}

/* Values in place, of lengths that the server says. */
static void view(void)
{
	volatile unsigned char last = 0;
	PMIX_Request request;
	PMIX_View *v;

	if (PMIX_Iallgather_view("value", 5, &v, &request) ||
	    PMIX_Wait(request))
		return;
	for (int r = 0; r < SIZE_OF_JOB; r++) {
		int len = 0;
		const unsigned char *value = PMIX_View_value(v, r, &len);

		for (int i = 0; value && i < len; i++)
			last = value[i];
	}
	(void)last;
	PMIX_View_free(v);
}

static void spawn(void)
{
	const char *cmds[] = { "a.out" };
	const char **argvs[] = { NULL };
	int argcs[] = { 0 }, procs[] = { 2 }, no_info[] = { 0 }, errors[2];
	char jobid[32];

	PMI2_Job_Spawn(1, cmds, argcs, argvs, procs, no_info, NULL, 0, NULL,
		       jobid, sizeof(jobid), errors);
}

static void clique(void)
{
	int size = 0, ranks[SIZE_OF_JOB];

	if (!PMI_Get_clique_size(&size))
		FUZZ_CHECK(size >= 1 && size <= SIZE_OF_JOB);
	PMI_Get_clique_ranks(ranks, SIZE_OF_JOB);
}

static void fence(void)
{
	PMIX_Request request;

	PMI2_KVS_Put("key", "value");
	PMI2_KVS_Fence();
	if (!PMIX_KVS_Ifence(&request))
		PMIX_Wait(request);
}

static void ids(void)
{
	char jobid[32];
	int rank = 0;

	PMI2_Job_GetId(jobid, sizeof(jobid));
	PMI2_Job_GetRank(&rank);
	PMI2_Job_Disconnect("9.1");
}

static void (*const calls[])(void) = {
	get_value, get_attributes, names, make_ring, gather,
	view, spawn, clique, fence, ids,
};

static void use(const uint8_t *which, size_t n)
{
	int spawned, size, rank, appnum;

	if (PMI2_Init(&spawned, &size, &rank, &appnum))
		return;
	FUZZ_CHECK(rank >= 0 && rank < size);
	for (size_t i = 0; i < n && size <= SIZE_OF_JOB; i++)
		calls[which[i] % (sizeof(calls) / sizeof(calls[0]))]();
	PMI2_Finalize();
	FUZZ_CHECK(!PMI2_Initialized());
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	uint8_t how = fuzz_u8(&in);
	const uint8_t *which;
	size_t n = fuzz_bytes(&in, fuzz_u8(&in) % CALLS_MAX, &which);
	int fds[2];
	char text[16];

	FUZZ_CHECK(!socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds));
	snprintf(text, sizeof(text), "%d", fds[1]);
	setenv("PMI_FD", text, 1);
	setenv("PMI_JOBID", "9.0", 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "4", 1);
	if (how & 8)
		setenv("PMI2X_NOSHM", "1", 1);
	else
		unsetenv("PMI2X_NOSHM");
	start_server(&in, how % 8 % 6);
	use(which, n);
	buf_free(&server.beginning);
	close(fds[0]);
	close(fds[1]);
	return 0;
}
