/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The engine and srun's half of it without memory: each allocation of a whole
 * session fails in turn, alone or with all after it. Every request is answered
 * or its connection closed, and when the ranks have gone nothing is pending.
 */
#include "unit.h"

#include <stdbool.h>
#include <stdio.h>

#include "libengine/pmi_server.h"
#include "libpmi/message.h"
#include "libpmi/step_services.h"
#include "refusal.h"

#define RANKS 2
#define OUT_MAX 65536
#define FRAME_MAX 8192
#define FRAMES_MAX 32

/* Requests that both ranks send; the first speaks PMI-2 with the extension. */
static const char *const pmi2[] = {
	"cmd=init pmi_version=2 pmi_subversion=0\n",
	"cmd=fullinit;pmi2x=1;pmi2x-region=1;",
	"cmd=kvs-put;thrid=1;key=a;value=b;",
	"cmd=info-putnodeattr;thrid=2;key=a;value=b;",
	"cmd=info-getnodeattr;thrid=3;key=a;wait=TRUE;",
	"cmd=info-getjobattr;thrid=4;key=PMI_process_mapping;",
	"cmd=name-publish;thrid=5;name=n;port=p;",
	"cmd=name-lookup;thrid=6;name=n;",
	"cmd=spawn;thrid=7;ncmds=1;preputcount=1;ppkey0=k;ppval0=v;subcmd=a;"
	"maxprocs=1;argc=1;argv0=x;infokeycount=1;infokey0=wdir;infoval0=/;",
	"cmd=pmi2x-fence;thrid=8;records=;",
	"cmd=job-getid;thrid=9;",
	"cmd=nonsense;thrid=10;",
	"cmd=kvs-get;thrid=11;jobid=7.0;srcid=-1;key=c;",
	"cmd=finalize;thrid=12;",
};
static const char *const pmi1[] = {
	"cmd=init pmi_version=1 pmi_subversion=1\n",
	"cmd=get_maxes\n",
	"cmd=put kvsname=7.0 key=c value=d\n",
	"cmd=get_my_kvsname\n",
	"cmd=get_universe_size\n",
	"cmd=get_appnum\n",
	"cmd=publish_name service=m port=p\n",
	"cmd=lookup_name service=m\n",
	"mcmd=spawn\nnprocs=1\nexecname=a\ntotspawns=1\nspawnssofar=1\n"
	"argcnt=0\npreput_num=0\ninfo_num=0\nendcmd\n",
	"cmd=barrier_in\n",
	"cmd=ring_that_is_none\n",
	"cmd=nonsense\n",
	"cmd=get kvsname=7.0 key=c\n",
	"cmd=finalize\n",
};
#define STEPS (sizeof(pmi2) / sizeof(pmi2[0]))

struct frame {
	bool to_srun;
	size_t len;
	char bytes[FRAME_MAX];
};

/* The host; it must not allocate while the engine is refused memory. */
static struct {
	struct pmi_server *server;
	struct step_services *launcher;
	struct region_writer *region;
	struct layout *layout;
	char out[RANKS][OUT_MAX];
	size_t len[RANKS];
	bool closed[RANKS];
	struct frame queue[FRAMES_MAX];
	unsigned head, tail;
	uint32_t spawn;
} host;

static void client_send(void *arg, uint32_t slot, const void *data, size_t len,
			const struct passed_fds *fds)
{
	assert_true(host.len[slot] + len <= OUT_MAX);
	memcpy(host.out[slot] + host.len[slot], data, len);
	host.len[slot] += len;
}

static void client_close(void *arg, uint32_t slot)
{
	host.closed[slot] = true;
}

static void node_send(void *arg, uint32_t position, const struct coll_msg *msg,
		      const void *head, size_t head_len,
		      const struct payload_vec *body)
{
	fail();
}

static void node_break(void *arg, uint32_t position)
{
	fail();
}

static void nothing(void *arg)
{
}

static void queue(bool to_srun, const void *data, size_t len)
{
	struct frame *f = &host.queue[host.tail++];

	assert_true(host.tail <= FRAMES_MAX && len <= FRAME_MAX);
	f->to_srun = to_srun;
	f->len = len;
	memcpy(f->bytes, data, len);
}

static void control_send(void *arg, const void *data, size_t len)
{
	queue(true, data, len);
}

static const struct pmi_host_ops server_ops = {
	.client_send = client_send,
	.client_close = client_close,
	.node_send = node_send,
	.node_break = node_break,
	.links_wanted = nothing,
	.control_send = control_send,
};

static void reply(void *arg, void *link, const void *data, size_t len)
{
	queue(false, data, len);
}

static int spawn(void *arg, uint32_t token, const struct spawn_request *request)
{
	host.spawn = token;
	return 0;
}

static void aborted(void *arg, uint32_t rank, int code, const char *text)
{
}

static void report(void *arg, const char *text)
{
}

static const struct step_services_ops step_services_ops = {
	.reply = reply,
	.spawn = spawn,
	.abort = aborted,
	.report = report,
	.ready = nothing,
};

/* A link to srun that breaks is not made again. */
static void lose_srun(void)
{
	step_services_link_lost(host.launcher, &host);
	pmi_server_control_lost(host.server, "srun is gone");
	host.head = host.tail;
}

static void deliver(void)
{
	while (host.head < host.tail) {
		const struct frame *f = &host.queue[host.head++];
		int rc;

		if (f->to_srun)
			rc = step_services_receive(host.launcher, &host, f->bytes,
					      f->len);
		else
			rc = pmi_server_control_input(host.server, f->bytes,
						      f->len);
		if (host.spawn)
			step_services_spawned(host.launcher, host.spawn, 0, "7.1");
		host.spawn = 0;
		if (rc)
			lose_srun();
	}
	host.head = host.tail = 0;
}

static void send(uint32_t slot, const char *text)
{
	char header[32];

	if (host.closed[slot])
		return;
	if (!strchr(text, '\n')) {
		snprintf(header, sizeof(header), "%-6zu", strlen(text));
		pmi_server_client_input(host.server, slot, header,
					PMI2_HEADER_LEN);
	}
	if (!host.closed[slot])
		pmi_server_client_input(host.server, slot, text, strlen(text));
}

/* ---- a session ---- */

static bool start(const struct pmi_step *step)
{
	return !step_services_create(&host.launcher, &step_services_ops, NULL, 0,
				NULL) &&
	       !pmi_server_create(&host.server, step, host.region, &server_ops,
				  NULL, NULL);
}

static void run(void)
{
	for (uint32_t slot = 0; slot < RANKS; slot++)
		pmi_server_client_open(host.server, slot);
	for (size_t i = 0; i < STEPS; i++) {
		send(0, pmi2[i]);
		send(1, pmi1[i]);
		deliver();
	}
}

static unsigned answers(uint32_t slot)
{
	const char *at = host.out[slot];
	size_t left = host.len[slot];
	unsigned n = 0;

	while (left) {
		long len = *at == 'c' ? pmi1_frame(at, left) :
					pmi2_frame(at, left);

		if (len <= 0)
			break;
		at += len;
		left -= len;
		n++;
	}
	assert_int_equal(left, 0);
	return n;
}

/*
 * One rank may still wait in the collective for the other, whose entry was refused. When
 * that rank has gone, the first one has an answer.
 */
static void check(uint32_t first)
{
	uint32_t other = 1 - first;

	assert_true(host.closed[first] || answers(first) >= STEPS - 1);
	pmi_server_client_eof(host.server, first);
	assert_true(host.closed[other] || answers(other) == STEPS);
	pmi_server_client_eof(host.server, other);
	assert_int_equal(pmi_server_pending(host.server), 0);
}

/* With the nth allocation refused; false: there are not as many. */
static bool refuse_one(bool region, bool for_good, uint32_t nth)
{
	static const uint32_t ranks[RANKS] = { 0, 1 }, count = RANKS;
	static const uint32_t *const lists[] = { ranks };
	static const char *const names[] = { "n0" };
	struct pmi_step step = {
		.jobid = "7.0", .tree_width = 2, .universe_size = 2,
		.mapping = "(vector,(0,1,2))", .build = "test",
		.node_names = names,
	};
	uint32_t calls;

	memset(&host, 0, sizeof(host));
	assert_int_equal(layout_create(&host.layout, 1, RANKS, &count, lists),
			 0);
	step.layout = host.layout;
	if (region)
		assert_int_equal(region_writer_create(&host.region,
						      REGION_SIZE_MIN), 0);
	refusal_arm(REFUSE_MEMORY, nth, for_good);
	if (start(&step))
		run();
	calls = refusal_disarm();
	if (host.server)
		check(nth % 2);
	pmi_server_destroy(host.server);
	step_services_destroy(host.launcher);
	region_writer_destroy(host.region);
	layout_destroy(host.layout);
	return calls >= nth;
}

static void refuse_each(bool region, bool for_good)
{
	uint32_t nth = 1;

	while (refuse_one(region, for_good, nth))
		nth++;
	assert_true(nth > 50); /* it did allocate */
}

TEST(every_request_is_answered_or_its_rank_is_closed)
{
	refuse_each(true, false);
	refuse_each(false, false);
}

TEST(even_when_there_is_no_more)
{
	refuse_each(true, true);
	refuse_each(false, true);
}
