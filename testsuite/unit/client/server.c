/* SPDX-License-Identifier: BSD-3-Clause */
/* The server side of the client library's tests: its store, thread and life. */
#include "server-parts.h"

#include <stdio.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "unit.h"

/* ---- store ---- */

void fake_put(struct fake *f, const char *key, const char *value, size_t len)
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

const struct pair *fake_find(struct fake *f, const char *key)
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
const struct pair *fake_find_for_any(struct fake *f, const char *key)
{
	const struct pair *p = fake_find(f, key);
	const char *dash = strrchr(key, '-');
	char own[128];

	if (p || !dash || strncmp(key, "pmi2x-", 6))
		return p;
	snprintf(own, sizeof(own), "%.*s-%d%s", (int)(dash - key), key,
		 FAKE_RANK, strchr(dash, '.') ? strchr(dash, '.') : "");
	return fake_find(f, own);
}

const char *fake_str(const struct pmi_message *m, const char *key)
{
	const char *text = pmi_message_str(m, key);

	assert_non_null(text);
	return text;
}

void fake_put_fields(struct fake *f, const struct pmi_message *m,
		     const char *key, const char *value)
{
	const struct pmi_field *v = pmi_message_field(m, value);

	fake_put(f, fake_str(m, key), v->value, v->value_len);
}

/* ---- answers ---- */

void fake_begin(struct fake *f, struct answer *a, const char *cmd,
		const char *thrid)
{
	buf_init(&a->bytes, 4 << 20);
	pmi_write_begin(&a->w, &a->bytes, f->protocol, cmd);
	if (thrid && *thrid && f->agreed)
		pmi_write_str(&a->w, "thrid", thrid);
}

void fake_finish(struct fake *f, struct answer *a)
{
	assert_int_equal(pmi_write_end(&a->w), 0);
	/* In two pieces: the client must put them together. */
	send(f->fd, a->bytes.data, a->bytes.len / 2, MSG_NOSIGNAL);
	send(f->fd, a->bytes.data + a->bytes.len / 2,
	     a->bytes.len - a->bytes.len / 2, MSG_NOSIGNAL);
	buf_free(&a->bytes);
}

void fake_answer_rc(struct fake *f, const char *cmd, const char *thrid,
		    int rc)
{
	struct answer a;

	fake_begin(f, &a, cmd, thrid);
	pmi_write_int(&a.w, "rc", rc);
	fake_finish(f, &a);
}

void fake_answer_found(struct fake *f, const char *cmd, const char *thrid,
		       const char *value, size_t len)
{
	struct answer a;

	fake_begin(f, &a, cmd, thrid);
	pmi_write_int(&a.w, "rc", 0);
	pmi_write_bool(&a.w, "found", value != NULL);
	if (value)
		pmi_write_bytes(&a.w, "value", value, len);
	fake_finish(f, &a);
}

void fake_answer_pair(struct fake *f, const char *cmd, const char *thrid,
		      const struct pair *p)
{
	fake_answer_found(f, cmd, thrid, p ? p->value : NULL, p ? p->len : 0);
}

/* ---- fences ---- */

static void answer_barrier(struct fake *f, const char *tag)
{
	bool refuse = f->is.refuse_tag && tag && !strcmp(tag, f->is.refuse_tag);
	struct answer a;

	fake_begin(f, &a, "barrier_out", NULL);
	pmi_write_int(&a.w, "rc", refuse ? -1 : 0);
	if (f->is.groups)
		pmi_write_str(&a.w, "tag", tag && *tag ? tag : "0");
	fake_finish(f, &a);
}

static void answer_fence(struct fake *f, const char *cmd, const char *thrid)
{
	if (f->protocol == PMI_PROTOCOL_2)
		fake_answer_rc(f, cmd, thrid, f->is.refuse_fence ? 14 : 0);
	else
		answer_barrier(f, thrid);
}

void fake_note_group(struct fake *f, const char *group)
{
	pthread_mutex_lock(&f->lock);
	snprintf(f->group, sizeof(f->group), "%s", group);
	pthread_mutex_unlock(&f->lock);
}

const char *fake_group(struct fake *f)
{
	return f->group;
}

void fake_fence_ended(struct fake *f, const char *cmd, const char *thrid)
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

static void await_locked(struct fake *f, int count)
{
	while (f->nheld < count)
		pthread_cond_wait(&f->changed, &f->lock);
}

void fake_await(struct fake *f, int count)
{
	pthread_mutex_lock(&f->lock);
	await_locked(f, count);
	pthread_mutex_unlock(&f->lock);
}

void fake_release(struct fake *f, int count)
{
	pthread_mutex_lock(&f->lock);
	await_locked(f, count);
	for (int i = 0; i < f->nheld; i++) {
		int n = f->is.reverse ? f->nheld - 1 - i : i;

		answer_fence(f, f->held_cmd[n], f->held[n]);
		free(f->held[n]);
	}
	f->nheld = 0;
	pthread_mutex_unlock(&f->lock);
}

int fake_entered(struct fake *f)
{
	struct slot_entry e;
	uint32_t ticket = 0;

	while (slots_take(f->slots, 0, slot_ticket_after(ticket), &e) == 1)
		ticket = e.ticket;
	return (int)ticket;
}

/* ---- any request ---- */

static void dispatch(struct fake *f, const char *cmd,
		     const struct pmi_message *m)
{
	const char *thrid = pmi_message_str(m, "thrid");
	const struct fake_command *c = f->protocol == PMI_PROTOCOL_2
			? fake_pmi2_commands : fake_pmi1_commands;

	while (c->name && strcmp(c->name, cmd))
		c++;
	if (c->name)
		c->handle(f, m, thrid);
	else if (f->is.extended) /* the stock plugin says nothing */
		fake_answer_rc(f, "unknown-response", thrid, 14);
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

static void stop(void *fake)
{
	fake_stop(fake);
}

struct fake *fake_of_test(const struct fake_options *options)
{
	return unit_at_end(stop, fake_start(options));
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
