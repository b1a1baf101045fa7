/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Direct modex: data that a rank has committed, for pmi2x-pmixd of
 * another node, without a fence. The way there is libcoll's (fetch.h); the owner's side
 * keeps the time.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <utlist.h>

#include "libcoll/fetch.h"
#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/pmix_bridge.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libpmi/pmix_msg.h"

#define ENDED_MS 1000 /* for what a rank has committed that has ended: it is there, or never */

/* Asked for by this node. */
struct pmix_ask {
	struct pmix_ask *prev, *next;
	uint64_t id;     /* whoever serves the clients has given it */
	uint64_t number; /* the server's own */
};

/* Asked of a rank of this node. */
struct pmix_wanted {
	struct pmix_wanted *prev, *next;
	uint64_t token; /* of libcoll */
	uint32_t rank, timeout;
	size_t key_len;
	char key[];
};

static const struct {
	enum coll_fetch_status status;
	int error;
} ends[] = {
	{ COLL_FETCH_FOUND, 0 },
	{ COLL_FETCH_ABSENT, -ENOENT },
	{ COLL_FETCH_GONE, -ECONNRESET },
	{ COLL_FETCH_REFUSED, -EIO }, /* the last: all other errors */
};

#define ENDS (sizeof(ends) / sizeof(ends[0]))

static int error_of(enum coll_fetch_status status)
{
	size_t i = 0;

	while (i < ENDS - 1 && ends[i].status != status)
		i++;
	return ends[i].error;
}

static enum coll_fetch_status status_of(int error)
{
	size_t i = 0;

	while (i < ENDS - 1 && ends[i].error != error)
		i++;
	return ends[i].status;
}

/* ---- asked for here ---- */

static void send_fetched(struct pmi_server *s, uint64_t id, int status,
			 const char *text, struct payload *data)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_FETCHED, .id = id, .rank = PMIX_NO_RANK,
		.status = status, .text = text,
		.text_len = pmix_text_len(text), .len = data ? data->len : 0,
	};

	pmix_send_message(s, &m, data);
}

static void free_ask(struct pmi_server *s, struct pmix_ask *a)
{
	DL_DELETE(s->pmix.asks, a);
	free(a);
}

void pmix_fetch_ended(struct pmi_server *s, uint64_t number,
		      const struct coll_fetched *end)
{
	struct pmix_ask *a;

	DL_FOREACH(s->pmix.asks, a)
		if (a->number == number)
			break;
	if (!a)
		return;
	send_fetched(s, a->id, error_of(end->status),
		     end->status == COLL_FETCH_FOUND ? NULL : end->why, end->value);
	free_ask(s, a);
}

static int ask(struct pmi_server *s, const struct pmix_msg *m)
{
	const struct coll_fetch what = {
		.op = FETCH_PMIX, .rank = m->rank, .timeout = m->number,
		.key = m->text, .key_len = m->text_len,
	};
	struct pmix_ask *a = calloc(1, sizeof(*a));
	int rc;

	if (!a)
		return -ENOMEM;
	a->id = m->id;
	a->number = PMIX_FETCH_ID | s->pmix.next_fetch++;
	DL_APPEND(s->pmix.asks, a);
	rc = coll_fetch(s->coll, &what, a->number);
	if (rc)
		free_ask(s, a);
	return rc;
}

int pmix_on_fetch(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message)
{
	int rc = ask(s, m);

	if (rc)
		send_fetched(s, m->id, rc, strerror(-rc), NULL);
	return 0;
}

/* ---- asked of ranks of this node ---- */

static void pass_on(struct pmi_server *s, const struct pmix_wanted *w)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_FETCH, .id = w->token, .rank = w->rank,
		.number = w->timeout, .text = w->key, .text_len = w->key_len,
	};

	pmix_send_message(s, &m, NULL);
}

int pmix_fetch_asked(struct pmi_server *s, uint64_t token,
		     const struct coll_fetch *what)
{
	const struct rank_session *ss = pmix_own_rank(s, what->rank);
	struct pmix_wanted *w;

	if (!pmix_is_served(s) || what->key_len > PMIX_MSG_TEXT_MAX)
		return -ENOTSUP;
	if (!ss || (ss->ended && ss->pmix == RANK_PMIX_NONE))
		return -ENOTSUP; /* and never will have */
	w = calloc(1, sizeof(*w) + what->key_len);
	if (!w)
		return -ENOMEM;
	w->token = token;
	w->rank = what->rank;
	w->timeout = ss->ended && what->timeout > ENDED_MS ? ENDED_MS : what->timeout;
	w->key_len = what->key_len;
	if (w->key_len)
		memcpy(w->key, what->key, w->key_len);
	DL_APPEND(s->pmix.wanted, w);
	if (s->pmix.service == PMIX_SERVICE_READY)
		pass_on(s, w);
	return 0;
}

void pmix_pass_on_fetches(struct pmi_server *s)
{
	const struct pmix_wanted *w;

	DL_FOREACH(s->pmix.wanted, w)
		pass_on(s, w);
}

static void answer(struct pmi_server *s, struct pmix_wanted *w,
		   const struct coll_fetched *end)
{
	uint64_t token = w->token;

	DL_DELETE(s->pmix.wanted, w);
	free(w);
	(void)coll_fetch_answer(s->coll, token, end);
}

static struct pmix_wanted *find_wanted(const struct pmi_server *s, uint64_t token)
{
	struct pmix_wanted *w;

	DL_FOREACH(s->pmix.wanted, w)
		if (w->token == token)
			break;
	return w;
}

/* The value is a part of the message. */
int pmix_on_fetched(struct pmi_server *s, const struct pmix_msg *m,
		    struct payload *message)
{
	struct pmix_wanted *w = find_wanted(s, m->id);
	struct coll_fetched end = { .status = status_of(m->status) };
	char text[PMIX_MSG_TEXT_MAX + 1];

	if (!w)
		return 0; /* the rank has gone meanwhile */
	pmix_copy_text(m, text);
	end.why = text[0] ? text : "the rank has not committed it";
	if (end.status == COLL_FETCH_FOUND && m->len)
		end.value = payload_slice(message, message->len - m->len, m->len);
	if (end.status == COLL_FETCH_FOUND && m->len && !end.value) {
		end.status = COLL_FETCH_REFUSED;
		end.why = answer_text(-ENOMEM);
	}
	answer(s, w, &end);
	payload_unref(end.value);
	return 0;
}

/* ---- ends ---- */

void pmix_fail_fetches(struct pmi_server *s, const char *why)
{
	const struct coll_fetched end = { .status = COLL_FETCH_GONE, .why = why };

	while (s->pmix.wanted)
		answer(s, s->pmix.wanted, &end);
}

void pmix_free_fetches(struct pmi_server *s)
{
	struct pmix_wanted *w;

	while (s->pmix.asks)
		free_ask(s, s->pmix.asks);
	while ((w = s->pmix.wanted)) {
		DL_DELETE(s->pmix.wanted, w);
		free(w);
	}
}
