/* SPDX-License-Identifier: BSD-3-Clause */
/* Rules that each request keeps. */
#pragma once

#include "libstore/store.h"

/* NULL; or why it is none, for people. */
const char *request_check(const struct store_request *rq);
/* The request waits for somebody else, so it may be given up. */
bool request_waits(const struct store_request *rq);
/*
 * The request changes nothing, and its answer is the same for all who ask it at the same time: one
 * answer may serve several askers.
 */
bool request_reads(const struct store_request *rq);
/* A request that reads one key: GET, FETCH, WAIT or CHECK. */
bool request_reads_key(const struct store_request *rq);
/* The request may change its key. */
bool request_changes(const struct store_request *rq);
