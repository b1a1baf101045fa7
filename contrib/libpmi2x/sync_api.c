/* SPDX-License-Identifier: BSD-3-Clause */
/* The PMIX_Sync_* functions of pmi2x.h. */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "libstore/request.h"
#include "pmi2.h"
#include "pmi2x.h"
#include "sync_conn.h"

#define DEFAULT_NAME "default"
#define ELECT "elect\001" /* before the name: no key of a user */
#define MORE_MS 1000      /* for an answer that only names what is missing */
#define KEYS_NAMED 32     /* in a text about missing keys */

struct pmix_sync {
	struct sync_conn conn;
	pid_t pid; /* of the process that has opened it */
	int64_t timeout_ms, until;
	char why[STORE_TEXT_MAX];
};

/* ---- results ---- */

__attribute__((format(printf, 3, 4)))
static int fail(PMIX_Sync *s, int code, const char *format, ...)
{
	va_list list;

	va_start(list, format);
	vsnprintf(s->why, sizeof(s->why), format, list);
	va_end(list);
	return code;
}

/* A failure of the connection, behind which no message can be read. */
static int lose(PMIX_Sync *s, int rc)
{
	sync_conn_close(&s->conn);
	if (rc == -ENOMEM)
		return fail(s, PMI2_ERR_NOMEM, "%s", strerror(ENOMEM));
	return fail(s, PMI2_FAIL, "lost the agent of this node: the step is ending");
}

static int pass(PMIX_Sync *s, struct store_msg *answer)
{
	if (answer->answer.status == STORE_OK)
		return PMI2_SUCCESS;
	fail(s, PMI2_ERR_OTHER, "%s", answer->text);
	sync_conn_free(answer);
	return PMI2_ERR_OTHER;
}

static struct store_bytes bytes_of(const char *text)
{
	return (struct store_bytes){ text, text ? strlen(text) : 0 };
}

static struct store_request request(enum store_op op, int flags, const struct store_bytes *keys,
				    uint32_t n)
{
	return (struct store_request){
		.op = op, .local = flags & PMI2X_SYNC_NODE, .keys = keys, .nkeys = n,
	};
}

/* ---- a time is over ---- */

/*
 * Ask something while the request `late` has no answer. 1: *answer is of `late`; 0: *answer is of
 * `rq`; otherwise as sync_conn_receive.
 */
static int ask_beside(PMIX_Sync *s, const struct store_request *rq, uint64_t late,
		      struct store_msg *answer)
{
	const int64_t until = sync_conn_now() + MORE_MS;
	int rc = sync_conn_send(&s->conn, rq);

	while (!rc && !(rc = sync_conn_receive(&s->conn, until, answer))) {
		if (answer->number == late)
			return 1;
		if (answer->number == s->conn.last)
			return 0;
		sync_conn_free(answer);
	}
	return rc;
}

/* Append the name of a key that does not exist. The result as of ask_beside. */
static int name_missing_key(PMIX_Sync *s, const struct store_request *rq, uint32_t i,
			    uint64_t late, struct store_msg *answer, char *text)
{
	struct store_request check = request(STORE_CHECK, 0, &rq->keys[i], 1);
	size_t used = strlen(text);
	int rc;

	check.local = rq->local;
	rc = ask_beside(s, &check, late, answer);
	if (rc)
		return rc;
	if (!answer->answer.number)
		snprintf(text + used, STORE_TEXT_MAX - used, "%s%.*s", used ? ", " : "key ",
			 (int)rq->keys[i].len, (const char *)rq->keys[i].data);
	sync_conn_free(answer);
	return 0;
}

/* The ranks or keys that `rq` waits for. The result as of ask_beside, but 0 has no answer. */
static int name_missing(PMIX_Sync *s, const struct store_request *rq, uint64_t late,
			struct store_msg *answer, char *text)
{
	struct store_request ask = *rq;
	uint32_t n = rq->nkeys < KEYS_NAMED ? rq->nkeys : KEYS_NAMED;
	int rc = 0;

	if (rq->op == STORE_WAIT || rq->op == STORE_FETCH)
		for (uint32_t i = 0; i < n && !rc; i++)
			rc = name_missing_key(s, rq, i, late, answer, text);
	if (rq->op != STORE_MEET)
		return rc;
	ask.op = STORE_MISSING;
	ask.value = (struct store_bytes){ NULL, 0 };
	rc = ask_beside(s, &ask, late, answer);
	if (rc)
		return rc;
	snprintf(text, STORE_TEXT_MAX, "%s", answer->text);
	sync_conn_free(answer);
	return 0;
}

static int time_out(PMIX_Sync *s, const struct store_request *rq, struct store_msg *answer)
{
	const uint64_t late = s->conn.last;
	char missing[STORE_TEXT_MAX] = "";
	int rc = name_missing(s, rq, late, answer, missing);

	if (rc > 0)
		return pass(s, answer);
	if (!rc || rc == -ETIMEDOUT)
		rc = sync_conn_cancel(&s->conn, late);
	if (rc)
		return lose(s, rc);
	return fail(s, PMI2X_ERR_TIMEOUT, "timed out after %g s%s%.900s",
		    (double)s->timeout_ms / 1000, *missing ? ": missing: " : "", missing);
}

/* ---- asking ---- */

/* Begin a call. An error code, or 0. */
static int enter(PMIX_Sync *s, bool valid)
{
	if (!s)
		return PMI2_ERR_INVALID_ARG;
	if (!valid)
		return fail(s, PMI2_ERR_INVALID_ARG, "an argument is missing or invalid");
	if (s->pid != getpid())
		return PMI2_ERR_INIT; /* `why` is the parent's */
	if (s->conn.fd < 0) /* `why` says since when */
		return *s->why ? PMI2_ERR_INIT :
			fail(s, PMI2_ERR_INIT, "there is no connection with the step");
	s->why[0] = '\0';
	s->until = s->timeout_ms < 0 ? SYNC_CONN_FOREVER : sync_conn_now() + s->timeout_ms;
	return 0;
}

/* An error code; 0: the answer is to be freed. */
static int ask(PMIX_Sync *s, const struct store_request *rq, struct store_msg *answer)
{
	const char *why = request_check(rq);
	int rc;

	if (why)
		return fail(s, PMI2_ERR_INVALID_ARG, "%s", why);
	rc = sync_conn_ask(&s->conn, rq, s->until, answer);
	if (rc == -ETIMEDOUT)
		return time_out(s, rq, answer);
	return rc ? lose(s, rc) : pass(s, answer);
}

/* As ask(), where only success matters. */
static int ask_only(PMIX_Sync *s, const struct store_request *rq)
{
	struct store_msg answer;
	int rc = ask(s, rq, &answer);

	if (!rc)
		sync_conn_free(&answer);
	return rc;
}

/* ---- values ---- */

/* One block: the array, and then the bytes, each with a NUL behind it. */
static int copy_values(PMIX_Sync *s, const struct store_answer *a, PMIX_Sync_value **out)
{
	size_t bytes = a->nvalues * sizeof(**out);
	PMIX_Sync_value *values;
	char *at;

	for (uint32_t i = 0; i < a->nvalues; i++)
		bytes += (a->values[i] ? a->values[i]->len : 0) + 1;
	values = malloc(bytes);
	if (!values)
		return fail(s, PMI2_ERR_NOMEM, "%s", strerror(ENOMEM));
	at = (char *)(values + a->nvalues);
	for (uint32_t i = 0; i < a->nvalues; i++) {
		const struct payload *p = a->values[i];

		values[i] = (PMIX_Sync_value){ .data = at, .len = p ? p->len : 0 };
		if (p && p->len)
			memcpy(at, p->data, p->len);
		at[values[i].len] = '\0';
		at += values[i].len + 1;
	}
	*out = values;
	return PMI2_SUCCESS;
}

/* ---- the connection ---- */

int PMIX_Sync_open(PMIX_Sync **sync)
{
	PMIX_Sync *s;

	if (!sync)
		return PMI2_ERR_INVALID_ARG;
	*sync = s = calloc(1, sizeof(*s));
	if (!s)
		return PMI2_ERR_NOMEM;
	s->timeout_ms = -1;
	s->pid = getpid();
	return sync_conn_open(&s->conn, s->why) ? PMI2_ERR_INIT : PMI2_SUCCESS;
}

int PMIX_Sync_close(PMIX_Sync *s)
{
	if (s)
		sync_conn_close(&s->conn);
	free(s);
	return PMI2_SUCCESS;
}

const char *PMIX_Sync_error(const PMIX_Sync *s)
{
	return s ? s->why : "there is no memory";
}

int PMIX_Sync_rank(PMIX_Sync *s, int *rank, int *size)
{
	int rc = enter(s, rank && size);

	if (rc)
		return rc;
	*rank = (int)s->conn.rank;
	*size = (int)s->conn.ranks;
	return PMI2_SUCCESS;
}

int PMIX_Sync_timeout(PMIX_Sync *s, int64_t timeout_ms)
{
	const int64_t most = INT64_MAX / 2;

	if (!s || timeout_ms < -1)
		return PMI2_ERR_INVALID_ARG;
	s->timeout_ms = timeout_ms < most ? timeout_ms : most;
	return PMI2_SUCCESS;
}

/* ---- meetings ---- */

int PMIX_Sync_barrier(PMIX_Sync *s, const char *name, int flags)
{
	const struct store_bytes key = bytes_of(name ? name : DEFAULT_NAME);
	const struct store_request rq = request(STORE_MEET, flags, &key, 1);
	int rc = enter(s, true);

	return rc ? rc : ask_only(s, &rq);
}

int PMIX_Sync_allgather(PMIX_Sync *s, const char *name, const void *value, size_t len, int flags,
			PMIX_Sync_value **values, int *n)
{
	const struct store_bytes key = bytes_of(name ? name : DEFAULT_NAME);
	struct store_request rq = request(STORE_MEET, flags, &key, 1);
	struct store_msg answer;
	int rc = enter(s, (value || !len) && values && n);

	rq.gather = true;
	rq.value = (struct store_bytes){ value, len };
	rc = rc ? rc : ask(s, &rq, &answer);
	if (rc)
		return rc;
	*n = (int)answer.answer.nvalues;
	rc = copy_values(s, &answer.answer, values);
	sync_conn_free(&answer);
	return rc;
}

/* The first task leaves its rank. It is elected, however often it asks. */
int PMIX_Sync_elect(PMIX_Sync *s, const char *name, int flags, int *elected)
{
	char text[STORE_KEY_MAX + 1], mine[16];
	const struct store_bytes key = {
		text, (size_t)snprintf(text, sizeof(text), ELECT "%s", name ? name : ""),
	};
	struct store_request rq = request(STORE_COMPARE_SET, flags, &key, 1);
	const struct payload *winner;
	struct store_msg answer;
	int rc = enter(s, name && elected);

	if (rc)
		return rc;
	snprintf(mine, sizeof(mine), "%u", s->conn.rank);
	rq.value = bytes_of(mine);
	rc = ask(s, &rq, &answer);
	if (rc)
		return rc;
	winner = answer.answer.nvalues ? answer.answer.values[0] : NULL;
	*elected = winner && winner->len == rq.value.len &&
		!memcmp(winner->data, mine, winner->len);
	sync_conn_free(&answer);
	return PMI2_SUCCESS;
}

/* ---- keys ---- */

int PMIX_Sync_put(PMIX_Sync *s, const char *key, const void *value, size_t len, int flags)
{
	const struct store_bytes k = bytes_of(key);
	struct store_request rq = request(STORE_SET, flags, &k, 1);
	int rc = enter(s, key && (value || !len));

	rq.value = (struct store_bytes){ value, len };
	return rc ? rc : ask_only(s, &rq);
}

int PMIX_Sync_get(PMIX_Sync *s, const char *key, int flags, PMIX_Sync_value **value)
{
	const struct store_bytes k = bytes_of(key);
	const struct store_request rq =
		request(flags & PMI2X_SYNC_WAIT ? STORE_FETCH : STORE_GET, flags, &k, 1);
	struct store_msg answer;
	int rc = enter(s, key && value);

	rc = rc ? rc : ask(s, &rq, &answer);
	if (rc)
		return rc;
	if (answer.answer.nvalues && answer.answer.values[0])
		rc = copy_values(s, &answer.answer, value);
	else
		rc = fail(s, PMI2_ERR_INVALID_KEY, "key %.900s does not exist", key);
	sync_conn_free(&answer);
	return rc;
}

int PMIX_Sync_wait(PMIX_Sync *s, const char *const keys[], int n, int flags)
{
	struct store_bytes *names = n > 0 ? calloc((size_t)n, sizeof(*names)) : NULL;
	const struct store_request rq = request(STORE_WAIT, flags, names, (uint32_t)n);
	bool valid = keys && n > 0;
	int rc;

	for (int i = 0; valid && names && i < n; i++) {
		names[i] = bytes_of(keys[i]);
		valid = keys[i] != NULL;
	}
	rc = enter(s, valid);
	if (!rc && !names)
		rc = fail(s, PMI2_ERR_NOMEM, "%s", strerror(ENOMEM));
	rc = rc ? rc : ask_only(s, &rq);
	free(names);
	return rc;
}

int PMIX_Sync_add(PMIX_Sync *s, const char *key, int64_t number, int flags, int64_t *sum)
{
	const struct store_bytes k = bytes_of(key);
	struct store_request rq = request(STORE_ADD, flags, &k, 1);
	struct store_msg answer;
	int rc = enter(s, key && sum);

	rq.number = number;
	rc = rc ? rc : ask(s, &rq, &answer);
	if (rc)
		return rc;
	*sum = answer.answer.number;
	sync_conn_free(&answer);
	return PMI2_SUCCESS;
}
