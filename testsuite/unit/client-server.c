/* SPDX-License-Identifier: BSD-3-Clause */
/* The server side of the client library's tests. */
#include "client-server.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "libpmi/extension.h"
#include "libpmi/message.h"
#include "libshm/records.h"
#include "libshm/region.h"
#include "libshm/slots.h"
#include "unit.h"

#define SEEN_MAX 512
#define HELD_MAX 32
#define PAIRS_MAX 4096

struct pair {
	char *key;
	char *value;
	size_t len;
};

struct fake {
	struct fake_options is;
	int fd;
	int client_fd;
	pthread_t thread;
	enum pmi_protocol protocol;
	bool agreed; /* on the extension */
	struct region_writer *region;
	struct slots *slots;
	int wake_fd;
	struct pair pairs[PAIRS_MAX];
	size_t npairs;
	int gathers;

	pthread_mutex_t lock;
	pthread_cond_t changed;
	char seen[SEEN_MAX][32];
	int nseen;
	char *held[HELD_MAX]; /* thrid of each, or an empty string */
	char held_cmd[HELD_MAX][40];
	int nheld;
};

/* ---- store ---- */

static void put(struct fake *f, const char *key, const char *value, size_t len)
{
	struct pair *p = &f->pairs[f->npairs++];

	assert_true(f->npairs < PAIRS_MAX);
	if (f->is.cuts_values && memchr(value, ';', len))
		len = (const char *)memchr(value, ';', len) - value;
	p->key = strdup(key);
	p->value = malloc(len + 1);
	memcpy(p->value, value, len);
	p->value[len] = '\0';
	p->len = len;
}

static const struct pair *find(struct fake *f, const char *key)
{
	for (size_t i = f->npairs; i-- > 0;)
		if (!strcmp(f->pairs[i].key, key))
			return &f->pairs[i];
	return NULL;
}

/*
 * The other ranks do what this one does: a key that ends in its rank is there
 * for the others too, with the value of this one.
 */
static const struct pair *find_for_any(struct fake *f, const char *key)
{
	const struct pair *p = find(f, key);
	const char *dash = strrchr(key, '-');
	char own[128];

	if (p || !dash || strncmp(key, "pmi2x-", 6))
		return p;
	snprintf(own, sizeof(own), "%.*s-%d%s", (int)(dash - key), key,
		 FAKE_RANK, strchr(dash, '.') ? strchr(dash, '.') : "");
	return find(f, own);
}

/* ---- answers ---- */

static void send_fds(struct fake *f, const struct buf *b, const int *fds, int n)
{
	char control[CMSG_SPACE(4 * sizeof(int))] = { 0 };
	struct iovec iov = { b->data, 1 };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	struct cmsghdr *c;

	msg.msg_control = control;
	msg.msg_controllen = CMSG_SPACE(n * sizeof(int));
	c = CMSG_FIRSTHDR(&msg);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(n * sizeof(int));
	memcpy(CMSG_DATA(c), fds, n * sizeof(int));
	sendmsg(f->fd, &msg, MSG_NOSIGNAL);
	send(f->fd, b->data + 1, b->len - 1, MSG_NOSIGNAL);
}

struct answer {
	struct buf bytes;
	struct pmi_writer w;
};

static void begin(struct fake *f, struct answer *a, const char *cmd,
		  const char *thrid)
{
	buf_init(&a->bytes, 4 << 20);
	pmi_write_begin(&a->w, &a->bytes, f->protocol, cmd);
	if (thrid && *thrid && f->agreed)
		pmi_write_str(&a->w, "thrid", thrid);
}

static void finish(struct fake *f, struct answer *a)
{
	assert_int_equal(pmi_write_end(&a->w), 0);
	/* In two pieces: the client must put them together. */
	send(f->fd, a->bytes.data, a->bytes.len / 2, MSG_NOSIGNAL);
	send(f->fd, a->bytes.data + a->bytes.len / 2,
	     a->bytes.len - a->bytes.len / 2, MSG_NOSIGNAL);
	buf_free(&a->bytes);
}

static void answer_rc(struct fake *f, const char *cmd, const char *thrid,
		      int rc)
{
	struct answer a;

	begin(f, &a, cmd, thrid);
	pmi_write_int(&a.w, "rc", rc);
	finish(f, &a);
}

static void answer_found(struct fake *f, const char *cmd, const char *thrid,
			 const char *value, size_t len)
{
	struct answer a;

	begin(f, &a, cmd, thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_bool(&a.w, "found", value != NULL);
	if (value)
		pmi_write_bytes(&a.w, "value", value, len);
	finish(f, &a);
}

/* ---- fences ---- */

static void answer_fence(struct fake *f, const char *cmd, const char *thrid)
{
	if (f->protocol == PMI_PROTOCOL_2)
		answer_rc(f, cmd, thrid, f->is.refuse_fence ? 14 : 0);
	else
		answer_rc(f, "barrier_out", NULL, 0);
}

static void fence_ended(struct fake *f, const char *cmd, const char *thrid)
{
	if (!f->is.hold_fences) {
		answer_fence(f, cmd, thrid);
		return;
	}
	pthread_mutex_lock(&f->lock);
	f->held[f->nheld] = strdup(thrid ? thrid : "");
	snprintf(f->held_cmd[f->nheld], sizeof(f->held_cmd[0]), "%s", cmd);
	f->nheld++;
	pthread_cond_broadcast(&f->changed);
	pthread_mutex_unlock(&f->lock);
}

void fake_release(struct fake *f, int count)
{
	pthread_mutex_lock(&f->lock);
	while (f->nheld < count)
		pthread_cond_wait(&f->changed, &f->lock);
	for (int i = 0; i < f->nheld; i++) {
		int n = f->is.reverse ? f->nheld - 1 - i : i;

		answer_fence(f, f->held_cmd[n], f->held[n]);
		free(f->held[n]);
	}
	f->nheld = 0;
	pthread_mutex_unlock(&f->lock);
}

static void add_records(struct fake *f, const struct pmi_field *records)
{
	struct record r;
	size_t at = 0;
	char key[RECORD_KEY_MAX + 1];

	while (record_next(records->value, records->value_len, &at, &r) == 1) {
		snprintf(key, sizeof(key), "%s", r.key);
		put(f, key, r.value, r.value_len);
	}
	assert_int_equal(at, records->value_len);
}

static void publish(struct fake *f)
{
	struct payload_vec blocks;
	struct payload *p;
	struct buf b;
	int error;

	buf_init(&b, 64 << 20);
	for (size_t i = 0; i < f->npairs; i++)
		record_append(&b, f->pairs[i].key, strlen(f->pairs[i].key),
			      f->pairs[i].value, f->pairs[i].len);
	payload_vec_init(&blocks);
	p = payload_copy(b.data, b.len);
	payload_vec_add(&blocks, p);
	payload_unref(p);
	p = image_build_fence(&blocks, &error);
	assert_non_null(p);
	assert_int_equal(region_publish_fence(f->region, p->data, p->len), 0);
	payload_unref(p);
	payload_vec_clear(&blocks);
	buf_free(&b);
}

/* ---- gathers: rank r's value is "<value of this rank>@r" for the others ---- */

static void add_contribution(struct payload_vec *blocks, int rank,
			     const struct pmi_field *value)
{
	struct payload *p;
	char other[64];
	int n;

	if (rank == FAKE_RANK) {
		p = gather_contribution(value->value, value->value_len);
	} else {
		n = snprintf(other, sizeof(other), "%.20s@%d", value->value,
			     rank);
		p = gather_contribution(other, n);
	}
	payload_vec_add(blocks, p);
	payload_unref(p);
}

static void gather(struct fake *f, const struct pmi_message *m,
		   const char *thrid)
{
	struct payload_vec blocks;
	struct payload *image;
	struct answer a;
	uint64_t offset, len;
	int stride = 0, error;

	payload_vec_init(&blocks);
	for (int r = 0; r < FAKE_SIZE; r++)
		add_contribution(&blocks, r, pmi_message_field(m, "value"));
	image = image_build_gather(&blocks, FAKE_SIZE, NULL, &error);
	assert_non_null(image);
	pmi_message_int(m, EXT_KEY_STRIDE, &stride);
	assert_int_equal(region_publish_gather(f->region, image->data,
					       image->len, stride, &offset,
					       &len), 0);
	payload_unref(image);
	payload_vec_clear(&blocks);
	begin(f, &a, EXT_CMD_ALLGATHER "-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_int(&a.w, EXT_KEY_OFFSET, offset);
	pmi_write_int(&a.w, EXT_KEY_LENGTH, len);
	finish(f, &a);
}

static void read_region(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	const void *bytes;
	int offset, length;
	struct answer a;

	assert_int_equal(pmi_message_int(m, EXT_KEY_OFFSET, &offset), 0);
	assert_int_equal(pmi_message_int(m, EXT_KEY_LENGTH, &length), 0);
	assert_true(length <= (int)EXT_READ_MAX);
	bytes = region_writer_bytes(f->region, offset, length);
	assert_non_null(bytes);
	begin(f, &a, EXT_CMD_READ "-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_bytes(&a.w, EXT_KEY_DATA, bytes, length);
	finish(f, &a);
}

/* ---- init ---- */

static int offer_slots(struct fake *f, struct pmi_writer *w, int fds[3])
{
	pmi_write_int(w, EXT_KEY_SLOTS, SLOTS_VERSION);
	pmi_write_int(w, EXT_KEY_SLOTS_SIZE, slots_size(f->slots));
	pmi_write_int(w, EXT_KEY_SLOTS_BOARD, slots_board_offset(f->slots));
	pmi_write_int(w, EXT_KEY_SLOT, 0);
	fds[1] = slots_fd(f->slots);
	fds[2] = f->wake_fd;
	return 3;
}

int fake_entered(struct fake *f)
{
	struct slot_entry e;
	uint32_t ticket = 0;

	while (slots_take(f->slots, 0, slot_ticket_after(ticket), &e) == 1)
		ticket = e.ticket;
	return (int)ticket;
}

static void fullinit(struct fake *f, const struct pmi_message *m,
		     const char *thrid)
{
	int version = 0, region = 0;
	struct answer a;
	int fds[3], nfds;

	pmi_message_int(m, EXT_KEY_VERSION, &version);
	pmi_message_int(m, EXT_KEY_REGION, &region);
	f->agreed = f->is.extended && version > 0;
	buf_init(&a.bytes, 4 << 20);
	pmi_write_begin(&a.w, &a.bytes, f->protocol, "fullinit-response");
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_int(&a.w, "pmi-version", 2);
	pmi_write_int(&a.w, "pmi-subversion", 0);
	pmi_write_int(&a.w, "rank", FAKE_RANK);
	pmi_write_int(&a.w, "size", FAKE_SIZE);
	pmi_write_int(&a.w, "appnum", -1);
	if (f->agreed) {
		pmi_write_int(&a.w, EXT_KEY_VERSION, 1);
		pmi_write_str(&a.w, EXT_KEY_BUILD, "fake-1");
		pmi_write_int(&a.w, EXT_KEY_NODES, 2);
	}
	if (!f->agreed || !region || f->is.no_region) {
		finish(f, &a);
		return;
	}
	pmi_write_int(&a.w, EXT_KEY_REGION, REGION_VERSION);
	pmi_write_int(&a.w, EXT_KEY_REGION_SIZE,
		      region_writer_size(f->region));
	fds[0] = fds[1] = fds[2] = region_writer_fd(f->region);
	nfds = f->is.extra_fds ? 3 : 1;
	if (f->slots && pmi_message_str(m, EXT_KEY_SLOTS))
		nfds = offer_slots(f, &a.w, fds);
	assert_int_equal(pmi_write_end(&a.w), 0);
	send_fds(f, &a.bytes, fds, nfds);
	buf_free(&a.bytes);
}

static void init(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	struct answer a;
	int version = 0;
	bool refuse;

	pmi_message_int(m, "pmi_version", &version);
	refuse = version == 2 && f->is.pmi1_only;
	begin(f, &a, "response_to_init", NULL);
	pmi_write_int(&a.w, "rc", refuse ? -1 : 0);
	pmi_write_int(&a.w, "pmi_version", refuse ? 1 : version);
	pmi_write_int(&a.w, "pmi_subversion", version == 2 && !refuse ? 0 : 1);
	finish(f, &a);
	if (version == 2 && !refuse)
		f->protocol = PMI_PROTOCOL_2;
}

/* ---- requests: PMI-2 ---- */

typedef void handler(struct fake *f, const struct pmi_message *m,
		     const char *thrid);

struct command {
	const char *name;
	handler *handle;
};

static const char *str(const struct pmi_message *m, const char *key)
{
	const char *text = pmi_message_str(m, key);

	assert_non_null(text);
	return text;
}

/* Store a pair of the message's fields. */
static void put_fields(struct fake *f, const struct pmi_message *m,
		       const char *key, const char *value)
{
	const struct pmi_field *v = pmi_message_field(m, value);

	put(f, str(m, key), v->value, v->value_len);
}

static void answer_pair(struct fake *f, const char *cmd, const char *thrid,
			const struct pair *p)
{
	answer_found(f, cmd, thrid, p ? p->value : NULL, p ? p->len : 0);
}

static void kvs_put(struct fake *f, const struct pmi_message *m,
		    const char *thrid)
{
	put_fields(f, m, "key", "value");
	answer_rc(f, "kvs-put-response", thrid, 0);
}

static void kvs_fence(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	fence_ended(f, "kvs-fence-response", thrid);
}

static void kvs_get(struct fake *f, const struct pmi_message *m,
		    const char *thrid)
{
	answer_pair(f, "kvs-get-response", thrid,
		    find_for_any(f, str(m, "key")));
}

static void ext_put(struct fake *f, const struct pmi_message *m,
		    const char *thrid)
{
	add_records(f, pmi_message_field(m, EXT_KEY_RECORDS));
	answer_rc(f, EXT_CMD_PUT "-response", thrid, 0);
}

static void ext_fence(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	add_records(f, pmi_message_field(m, EXT_KEY_RECORDS));
	publish(f);
	fence_ended(f, EXT_CMD_FENCE "-response", thrid);
}

static void ring(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	struct answer a;

	begin(f, &a, "ring-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_int(&a.w, "ring-count", 2);
	pmi_write_str(&a.w, "ring-left", str(m, "ring-right"));
	pmi_write_str(&a.w, "ring-right", str(m, "ring-left"));
	finish(f, &a);
}

static void job_getid(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	struct answer a;

	begin(f, &a, "job-getid-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_str(&a.w, "jobid", "77.0");
	finish(f, &a);
}

static void getjobattr(struct fake *f, const struct pmi_message *m,
		       const char *thrid)
{
	const char *key = str(m, "key");
	const char *value = NULL;

	if (!strcmp(key, "PMI_process_mapping"))
		value = "(vector,(0,2,2))";
	if (!strcmp(key, "universeSize"))
		value = "64";
	answer_found(f, "info-getjobattr-response", thrid, value,
		     value ? strlen(value) : 0);
}

static void putnodeattr(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	put_fields(f, m, "key", "value");
	answer_rc(f, "info-putnodeattr-response", thrid, 0);
}

static void getnodeattr(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	answer_pair(f, "info-getnodeattr-response", thrid,
		    find(f, str(m, "key")));
}

static void name_publish(struct fake *f, const struct pmi_message *m,
			 const char *thrid)
{
	put_fields(f, m, "name", "port");
	answer_rc(f, "name-publish-response", thrid, 0);
}

static void name_lookup(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	const struct pair *p = find(f, str(m, "name"));
	struct answer a;

	begin(f, &a, "name-lookup-response", thrid);
	pmi_write_int(&a.w, "rc", p ? 0 : 1);
	if (p)
		pmi_write_str(&a.w, "value", p->value);
	finish(f, &a);
}

/* The stock plugin wants ncmds right behind the command. */
static void spawn(struct fake *f, const struct pmi_message *m,
		  const char *thrid)
{
	bool right = !strcmp(m->fields[1].key, "ncmds");
	struct answer a;

	begin(f, &a, "spawn-response", thrid);
	pmi_write_int(&a.w, "rc", right ? 0 : 3);
	pmi_write_str(&a.w, "jobid", "78.0");
	pmi_write_str(&a.w, "errcodes", "0,7,0");
	finish(f, &a);
}

static void finalize(struct fake *f, const struct pmi_message *m,
		     const char *thrid)
{
	answer_rc(f, "finalize-response", thrid, 0);
	f->protocol = PMI_PROTOCOL_1;
	f->agreed = false;
}

static const struct command pmi2_commands[] = {
	{ "fullinit", fullinit },
	{ "kvs-put", kvs_put },
	{ "kvs-fence", kvs_fence },
	{ "kvs-get", kvs_get },
	{ EXT_CMD_PUT, ext_put },
	{ EXT_CMD_FENCE, ext_fence },
	{ EXT_CMD_ALLGATHER, gather },
	{ EXT_CMD_READ, read_region },
	{ "ring", ring },
	{ "job-getid", job_getid },
	{ "info-getjobattr", getjobattr },
	{ "info-putnodeattr", putnodeattr },
	{ "info-getnodeattr", getnodeattr },
	{ "name-publish", name_publish },
	{ "name-lookup", name_lookup },
	{ "spawn", spawn },
	{ "finalize", finalize },
	{ NULL, NULL },
};

/* ---- requests: PMI-1 ---- */

/* An answer of one field. */
static void answer_field(struct fake *f, const char *cmd, const char *key,
			 const char *value)
{
	struct answer a;

	begin(f, &a, cmd, NULL);
	pmi_write_str(&a.w, key, value);
	finish(f, &a);
}

static void get_appnum(struct fake *f, const struct pmi_message *m,
		       const char *thrid)
{
	answer_field(f, "appnum", "appnum", "0");
}

static void get_my_kvsname(struct fake *f, const struct pmi_message *m,
			   const char *thrid)
{
	answer_field(f, "my_kvsname", "kvsname", "77.0");
}

static void get_universe_size(struct fake *f, const struct pmi_message *m,
			      const char *thrid)
{
	answer_field(f, "universe_size", "size", "64");
}

static void put1(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	put_fields(f, m, "key", "value");
	answer_rc(f, "put_result", NULL, 0);
}

static void barrier_in(struct fake *f, const struct pmi_message *m,
		       const char *thrid)
{
	fence_ended(f, "barrier_out", NULL);
}

static void get1(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	const struct pair *p = find_for_any(f, str(m, "key"));
	struct answer a;

	begin(f, &a, "get_result", NULL);
	pmi_write_int(&a.w, "rc", p ? 0 : -1);
	if (p)
		pmi_write_str(&a.w, "value", p->value);
	finish(f, &a);
}

static void publish_name(struct fake *f, const struct pmi_message *m,
			 const char *thrid)
{
	answer_field(f, "publish_result", "info", "ok");
}

static void lookup_name(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	answer_field(f, "lookup_result", "info", "fail");
}

static void spawn1(struct fake *f, const struct pmi_message *m,
		   const char *thrid)
{
	if (!strcmp(str(m, "totspawns"), str(m, "spawnssofar")))
		answer_rc(f, "spawn_result", NULL, 0);
}

static void finalize1(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	answer_rc(f, "finalize_ack", NULL, 0);
}

static const struct command pmi1_commands[] = {
	{ "init", init },
	{ "get_appnum", get_appnum },
	{ "get_my_kvsname", get_my_kvsname },
	{ "get_universe_size", get_universe_size },
	{ "put", put1 },
	{ "barrier_in", barrier_in },
	{ "get", get1 },
	{ "publish_name", publish_name },
	{ "lookup_name", lookup_name },
	{ "spawn", spawn1 },
	{ "finalize", finalize1 },
	{ NULL, NULL },
};

/* ---- any request ---- */

static void dispatch(struct fake *f, const char *cmd,
		     const struct pmi_message *m)
{
	const char *thrid = pmi_message_str(m, "thrid");
	const struct command *c = f->protocol == PMI_PROTOCOL_2
					  ? pmi2_commands : pmi1_commands;

	while (c->name && strcmp(c->name, cmd))
		c++;
	if (c->name)
		c->handle(f, m, thrid);
	else if (f->is.extended) /* the stock plugin says nothing */
		answer_rc(f, "unknown-response", thrid, 14);
}

/* False: the connection is over. */
static bool send_garbage(struct fake *f)
{
	if (f->is.garbage_len)
		send(f->fd, f->is.garbage, f->is.garbage_len, MSG_NOSIGNAL);
	else
		send(f->fd, f->is.garbage, strlen(f->is.garbage), MSG_NOSIGNAL);
	if (f->is.hang_up)
		shutdown(f->fd, SHUT_RDWR);
	return !f->is.hang_up;
}

static bool handle(struct fake *f, const struct pmi_message *m)
{
	const char *cmd = pmi_message_cmd(m);

	assert_non_null(cmd);
	pthread_mutex_lock(&f->lock);
	assert_true(f->nseen < SEEN_MAX);
	snprintf(f->seen[f->nseen++], sizeof(f->seen[0]), "%s", cmd);
	pthread_mutex_unlock(&f->lock);
	if (f->is.garbage_cmd && !strcmp(cmd, f->is.garbage_cmd))
		return send_garbage(f);
	dispatch(f, cmd, m);
	return true;
}

/* ---- the thread ---- */

static long frame(struct fake *f, const struct buf *in)
{
	if (in->len == 0)
		return 0;
	return f->protocol == PMI_PROTOCOL_2 ? pmi2_frame(in->data, in->len)
					     : pmi1_frame(in->data, in->len);
}

static bool handle_next(struct fake *f, struct buf *in, bool *open)
{
	long len = frame(f, in);
	struct pmi_message m;
	char *copy;

	assert_true(len >= 0);
	if (len == 0)
		return false;
	copy = malloc(len + 1);
	memcpy(copy, in->data, len);
	buf_consume(in, len);
	pmi_message_init(&m);
	assert_int_equal(f->protocol == PMI_PROTOCOL_2
				 ? pmi2_decode(copy, len, &m)
				 : pmi1_decode(copy, len, &m), 0);
	*open = handle(f, &m);
	pmi_message_free(&m);
	free(copy);
	return *open;
}

static void *serve(void *arg)
{
	struct fake *f = arg;
	struct buf in;
	bool open = true;
	ssize_t n = 1;

	buf_init(&in, 4 << 20);
	while (open && n > 0) {
		buf_reserve(&in, 65536);
		n = recv(f->fd, in.data + in.len, 65536, 0);
		if (n > 0)
			in.len += n;
		while (n > 0 && open && handle_next(f, &in, &open))
			;
	}
	buf_free(&in);
	return NULL;
}

/* ---- life ---- */

struct fake *fake_start(const struct fake_options *options)
{
	struct fake *f = calloc(1, sizeof(*f));
	char text[16];
	int fds[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, fds), 0);
	f->is = *options;
	f->fd = fds[0];
	f->client_fd = fds[1];
	f->protocol = PMI_PROTOCOL_1;
	pthread_mutex_init(&f->lock, NULL);
	pthread_cond_init(&f->changed, NULL);
	assert_int_equal(region_writer_create(&f->region, 8 << 20), 0);
	f->wake_fd = eventfd(0, EFD_CLOEXEC);
	if (f->is.mute_slots)
		assert_int_equal(slots_create(&f->slots, f->region, 1), 0);
	snprintf(text, sizeof(text), "%d", fds[1]);
	setenv("PMI_FD", text, 1);
	setenv("PMI_RANK", "1", 1);
	setenv("PMI_SIZE", "4", 1);
	setenv("PMI_JOBID", "77.0", 1);
	assert_int_equal(pthread_create(&f->thread, NULL, serve, f), 0);
	return f;
}

void fake_hang_up(struct fake *f)
{
	shutdown(f->fd, SHUT_RDWR);
}

void fake_stop(struct fake *f)
{
	fake_hang_up(f);
	pthread_join(f->thread, NULL);
	close(f->fd);
	close(f->client_fd);
	for (size_t i = 0; i < f->npairs; i++) {
		free(f->pairs[i].key);
		free(f->pairs[i].value);
	}
	for (int i = 0; i < f->nheld; i++)
		free(f->held[i]);
	slots_destroy(f->slots);
	close(f->wake_fd);
	region_writer_destroy(f->region);
	pthread_mutex_destroy(&f->lock);
	pthread_cond_destroy(&f->changed);
	free(f);
	unsetenv("PMI_FD");
	unsetenv("PMI_RANK");
	unsetenv("PMI_SIZE");
	unsetenv("PMI_JOBID");
}

int fake_seen(struct fake *f, const char *cmd)
{
	int n = 0;

	pthread_mutex_lock(&f->lock);
	for (int i = 0; i < f->nseen; i++)
		n += !strcmp(f->seen[i], cmd);
	pthread_mutex_unlock(&f->lock);
	return n;
}
