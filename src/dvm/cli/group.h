/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * pmi2x-dvm: several DVMs under one name, as one. A request becomes one for each of them
 * that it concerns, and their answers one. Nothing here sends or waits. An impossible
 * request ends the program, as in client.h.
 *
 * The numbers of tasks tell whose they are: of K members, member m has those that are m
 * more than a multiple of K.
 */
#pragma once

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct group {
	const char *name;
	uint32_t members;  /* number in the beginning */
	size_t count;      /* up when this client came */
	const uint32_t *numbers; /* of these, from 1, ascending */
	json_t *status;    /* by index: what each has said last; null: it has gone */
	json_t *profile;   /* of tasks; NULL: none yet */
	bool *told;        /* by index: of the profile */
	json_t *indexes;   /* by index: where the tasks of its part were in the request */
};

/* True: the request needs a recent group.status. */
bool group_needs_status(json_t *request);
/* Array by index: a request, or null. */
json_t *group_split(struct group *g, json_t *request);
/* The answer to `request`; null among answers: it has gone. References stay. */
json_t *group_join(struct group *g, json_t *request, json_t *answers);
