/* SPDX-License-Identifier: BSD-3-Clause */
/* Answers of the server of the client library's tests to PMI-2. */
#include "server-parts.h"

#include <stdio.h>
#include <sys/socket.h>

#include "libpmi/extension.h"
#include "libshm/records.h"
#include "unit.h"

/* ---- fences ---- */

static void add_records(struct fake *f, const struct pmi_field *records)
{
	struct record r;
	size_t at = 0;
	char key[RECORD_KEY_MAX + 1];

	while (record_next(records->value, records->value_len, &at, &r) == 1) {
		snprintf(key, sizeof(key), "%s", r.key);
		fake_put(f, key, r.value, r.value_len);
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
		p = gather_contribution(NULL, value->value, value->value_len);
	} else {
		n = snprintf(other, sizeof(other), "%.20s@%d", value->value,
			     rank);
		p = gather_contribution(NULL, other, n);
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
	fake_begin(f, &a, EXT_CMD_ALLGATHER "-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_int(&a.w, EXT_KEY_OFFSET, offset);
	pmi_write_int(&a.w, EXT_KEY_LENGTH, len);
	fake_finish(f, &a);
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
	fake_begin(f, &a, EXT_CMD_READ "-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_bytes(&a.w, EXT_KEY_DATA, bytes, length);
	fake_finish(f, &a);
}

/* ---- init ---- */

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
		pmi_write_bool(&a.w, EXT_KEY_GROUPS, f->is.groups);
	}
	if (!f->agreed || !region || f->is.no_region) {
		fake_finish(f, &a);
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

/* ---- requests ---- */

static void kvs_put(struct fake *f, const struct pmi_message *m,
		    const char *thrid)
{
	fake_put_fields(f, m, "key", "value");
	fake_answer_rc(f, "kvs-put-response", thrid, 0);
}

static void kvs_fence(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	fake_fence_ended(f, "kvs-fence-response", thrid);
}

static void kvs_get(struct fake *f, const struct pmi_message *m,
		    const char *thrid)
{
	fake_answer_pair(f, "kvs-get-response", thrid,
		    fake_find_for_any(f, fake_str(m, "key")));
}

static void ext_put(struct fake *f, const struct pmi_message *m,
		    const char *thrid)
{
	if (!f->is.refuse_puts)
		add_records(f, pmi_message_field(m, EXT_KEY_RECORDS));
	fake_answer_rc(f, EXT_CMD_PUT "-response", thrid,
		       f->is.refuse_puts ? 2 : 0);
}

static void ext_fence(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	add_records(f, pmi_message_field(m, EXT_KEY_RECORDS));
	publish(f);
	fake_fence_ended(f, EXT_CMD_FENCE "-response", thrid);
}

static void ext_barrier(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	fake_note_group(f, fake_str(m, EXT_KEY_GROUP));
	fake_fence_ended(f, EXT_CMD_BARRIER "-response", thrid);
}

static void ring(struct fake *f, const struct pmi_message *m,
		 const char *thrid)
{
	struct answer a;

	fake_begin(f, &a, "ring-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_int(&a.w, "ring-count", 2);
	pmi_write_str(&a.w, "ring-left", fake_str(m, "ring-right"));
	pmi_write_str(&a.w, "ring-right", fake_str(m, "ring-left"));
	fake_finish(f, &a);
}

static void job_getid(struct fake *f, const struct pmi_message *m,
		      const char *thrid)
{
	struct answer a;

	fake_begin(f, &a, "job-getid-response", thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_str(&a.w, "jobid", "77.0");
	fake_finish(f, &a);
}

static void getjobattr(struct fake *f, const struct pmi_message *m,
		       const char *thrid)
{
	const char *key = fake_str(m, "key");
	const char *value = NULL;

	if (!strcmp(key, "PMI_process_mapping"))
		value = "(vector,(0,2,2))";
	if (!strcmp(key, "universeSize"))
		value = "64";
	fake_answer_found(f, "info-getjobattr-response", thrid, value,
		     value ? strlen(value) : 0);
}

static void putnodeattr(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	fake_put_fields(f, m, "key", "value");
	fake_answer_rc(f, "info-putnodeattr-response", thrid, 0);
}

static void getnodeattr(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	fake_answer_pair(f, "info-getnodeattr-response", thrid,
		    fake_find(f, fake_str(m, "key")));
}

static void name_publish(struct fake *f, const struct pmi_message *m,
			 const char *thrid)
{
	fake_put_fields(f, m, "name", "port");
	fake_answer_rc(f, "name-publish-response", thrid, 0);
}

static void name_lookup(struct fake *f, const struct pmi_message *m,
			const char *thrid)
{
	const struct pair *p = fake_find(f, fake_str(m, "name"));
	struct answer a;

	fake_begin(f, &a, "name-lookup-response", thrid);
	pmi_write_int(&a.w, "rc", p ? 0 : 1);
	if (p)
		pmi_write_str(&a.w, "value", p->value);
	fake_finish(f, &a);
}

/* The stock plugin wants ncmds right behind the command. */
static void spawn(struct fake *f, const struct pmi_message *m,
		  const char *thrid)
{
	bool right = !strcmp(m->fields[1].key, "ncmds");
	struct answer a;

	fake_begin(f, &a, "spawn-response", thrid);
	pmi_write_int(&a.w, "rc", right ? 0 : 3);
	pmi_write_str(&a.w, "jobid", "78.0");
	pmi_write_str(&a.w, "errcodes", "0,7,0");
	fake_finish(f, &a);
}

static void finalize(struct fake *f, const struct pmi_message *m,
		     const char *thrid)
{
	bool silent = false;

	(void)pmi_message_bool(m, EXT_KEY_SILENT, &silent);
	assert_true(!silent || f->is.extended);
	if (!silent)
		fake_answer_rc(f, "finalize-response", thrid, 0);
	f->protocol = PMI_PROTOCOL_1;
	f->agreed = false;
}

const struct fake_command fake_pmi2_commands[] = {
	{ "fullinit", fullinit },
	{ "kvs-put", kvs_put },
	{ "kvs-fence", kvs_fence },
	{ "kvs-get", kvs_get },
	{ EXT_CMD_PUT, ext_put },
	{ EXT_CMD_FENCE, ext_fence },
	{ EXT_CMD_BARRIER, ext_barrier },
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
