/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The way of requests to the root, on a node that is not it.
 *
 * Each request that has been sent up is a flight. Requests that read the same, and are asked
 * while such a flight is under way, wait for its answer and then go up together, in one flight:
 * a node sends its parent at most one of them at a time, and gets the answer once. They do not
 * share the answer of the flight that was sent before they were asked, which may be older than
 * they are.
 *
 * A client may ask again before it has an answer. Such a request is "behind" others: reads that
 * are queued go up before it, so that all take effect in the client's order.
 *
 * A read of one key that is behind no other may be answered from a copy (copies.h). When a copy
 * comes with the answer to a flight, it is also the answer to the requests that wait for the next
 * one: the copy is as new as they are.
 *
 * The end of a meeting answers all of its requests at once: a link carries it in one message.
 */
#ifndef PMI2X_RELAY_H
#define PMI2X_RELAY_H

#include "libstore/home.h"

struct relay;

struct relay_ops {
	/* To the parent. */
	void (*send)(void *arg, struct payload *message);
	home_answer_fn *answer;
	void *arg;
};

/* The options' budget (NULL: none) counts requests until they are sent. NULL: no memory. */
struct relay *relay_create(const struct relay_ops *ops, const struct store_options *options);
/* Nobody is answered. NULL is allowed. */
void relay_destroy(struct relay *r);

/* As home_ask, home_cancel and home_forget. */
void relay_ask(struct relay *r, const struct asker *from, enum store_space space,
	       const struct store_request *rq);
bool relay_cancel(struct relay *r, const struct asker *from);
void relay_forget(struct relay *r, uint32_t position);
/*
 * The parent has answered requests, all alike. An unknown number is ignored: its request has been
 * withdrawn.
 */
void relay_answer(struct relay *r, const uint64_t *numbers, uint32_t n,
		  const struct store_answer *answer);
/* Drop the copy of a key, and call for each child that may have one. */
void relay_recall(struct relay *r, enum store_space space, const struct store_bytes *key,
		  void (*fn)(void *arg, uint32_t position), void *arg);
/* The parent has gone: all that is asked, now and later, fails for `why`. */
void relay_fail(struct relay *r, const char *why);

#endif
