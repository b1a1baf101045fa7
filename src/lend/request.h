/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The value of PMI2X_LEND, by which a job asks for libpmi2x-lend.so, and the variable by
 * which the plugin tells that library what it needs.
 */
#ifndef PMI2X_LEND_REQUEST_H
#define PMI2X_LEND_REQUEST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define LEND_ENV "PMI2X_LEND"
#define LEND_FACTOR_ENV "PMI2X_LEND_FACTOR"
#define LEND_TABLE_ENV "PMI2X_LEND_TABLE" /* struct lend_place as text */
#define LEND_TEXT_MAX 256 /* bytes of a message or a place, NUL included */

enum lend_request {
	LEND_OFF,
	LEND_ON,         /* ranks lend cores to each other */
	LEND_REPORT,     /* the first rank of the step reports on its node */
	LEND_REPORT_ALL, /* the first rank of each node does */
};

/* NULL and "" mean LEND_OFF. False: the word is unknown. Letters of either case count. */
bool lend_request_parse(const char *text, enum lend_request *out);
/* The error about an unknown word: what is wrong and what to use, in printable letters. */
void lend_request_explain(const char *text, char out[LEND_TEXT_MAX]);

/* PMI2X_LEND_FACTOR: threads for each core. False: it is not a number from 2 to 8. */
bool lend_factor_parse(const char *text, uint32_t *out);
/* The error about such a factor. */
void lend_factor_explain(const char *text, char out[LEND_TEXT_MAX]);

enum lend_mode {
	LEND_NOTHING, /* the step has asked for a report */
	LEND_CORES,
	LEND_NAPS,    /* to measure: ranks nap in waits, and no core is lent */
};

/* A rank's part of the table of its node. */
struct lend_place {
	int fd;          /* of the table, see table.h */
	uint32_t slot;   /* of the rank, below `ranks` */
	uint32_t ranks;  /* on this node */
	uint32_t rank;
	uint32_t cores;  /* of the node: one more than the largest number; 0 with LEND_NOTHING */
	uint32_t factor; /* threads for each core */
	enum lend_mode mode;
	bool reports;    /* this rank prints the report, or why it uses no cores of others */
	bool explains;   /* of its node, one rank says why it does not lend */
};

void lend_place_write(const struct lend_place *place, char out[LEND_TEXT_MAX]);
/* False: the text is NULL or damaged. */
bool lend_place_read(const char *text, struct lend_place *out);

#endif
