/* SPDX-License-Identifier: BSD-3-Clause */
/* A job of pmi2x-pmixd, and functions of its server that count answers in their place. */
#ifndef PMI2X_SERVER_STAND_INS_H
#define PMI2X_SERVER_STAND_INS_H

#include "unit.h"

#include <errno.h>

#include "helpers/pmixd/server_internal.h"

#define NSPACE "pmi2x.17.2"

static struct job job = { .nspace = { .name = NSPACE } };
static unsigned answers;
static pmix_status_t answer; /* the last one */

void server_answer(const struct callback *callback, pmix_status_t status, char *data, size_t len)
{
	answers++;
	answer = status;
	free(data);
}

pmix_status_t server_status(int error)
{
	return error == -ENOSPC ? PMIX_ERR_OUT_OF_RESOURCE : error;
}

int server_full(struct server *s, const char *what, uint32_t max)
{
	if (!s->full_told)
		log_error(s->log, "%u %s, which is the limit", max, what);
	s->full_told = true;
	return -ENOSPC;
}

#endif
