/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A head's journal as bytes: what tasks there are, which have been started, and how they
 * have ended, so that another head can go on with them.
 *
 *   header:  8 bytes "PMI2XDVJ", u32 version
 *   record:  u32 mark, u32 checksum, u32 length of the body, u32 checksum of the record
 *            before, body
 *   body:    u8 type, and the type's fields
 *
 * The checksum is of what follows it and of the record's offset. So a record in the wrong
 * place is none, and a record that is missing shows by the next one.
 *
 * Older versions are read, too. Version 2 has no GPUs, and no times of what the head did.
 * Version 1 has: u32 mark, u32 length of the body, u32 checksum of the body, body.
 *
 * Records only ever follow one another. The rest of a record that a crash has cut, and
 * damaged bytes, are passed over up to the next whole record. Calls no system function.
 */
#pragma once

#include "dvm/core/dvm_msg.h"

#define JOURNAL_VERSION 3
#define JOURNAL_HEADER_SIZE 12
#define JOURNAL_RECORD_MAX ((size_t)16 << 20) /* bytes of a body */

enum journal_type {
	JOURNAL_COUNTS = 1, /* of tasks of which the journal does not tell any more */
	JOURNAL_PROFILE,
	JOURNAL_SUBMIT,
	JOURNAL_START,
	JOURNAL_CANCEL,
	JOURNAL_END,
	JOURNAL_NODES,
	JOURNAL_WAITED,
	JOURNAL_TYPES,
};

struct journal_counts {
	uint64_t next_id;
	uint64_t done, failed; /* failed are done, too */
	uint64_t line;         /* see journal_submit */
	uint64_t unwaited, unwaited_failed; /* done, and no client has waited for them */
};

struct journal_profile {
	uint32_t number;
	struct dvm_bytes id, cwd, env;
	struct dvm_limits limits;
	struct dvm_bytes outputs; /* directory for complete output; empty: none */
	struct dvm_bytes input; /* standard input; empty: none */
};

struct journal_submit {
	uint64_t task;      /* ascending in a journal */
	uint64_t submitted_ns;
	uint32_t profile;   /* number of the profile */
	bool tied;          /* ends with its client or spawning task, and so with its head */
	uint64_t line;      /* the client's, of what it reads tasks from; 0: none */
	struct dvm_bytes json; /* the task as the client has described it */
};

struct journal_start {
	uint64_t task;
	uint32_t instance;
	uint32_t retries;   /* retries left */
	uint64_t placed_ns;
	uint32_t slots;     /* slots of all nodes that it gets */
	uint32_t gpus;      /* the same of GPUs */
};

enum journal_output {
	JOURNAL_NO_OUTPUT,   /* the task has printed nothing */
	JOURNAL_OUTPUT,
	JOURNAL_OUTPUT_LOST, /* the journal does not have it (any more) */
	JOURNAL_OUTPUTS,
};

struct journal_end {
	uint64_t task;
	uint32_t instance;
	int32_t status;     /* as of wait */
	uint32_t rank;
	bool not_started, too_long, cancelled;
	uint64_t started_ns, ended_ns;
	uint64_t user_us, system_us, peak_kib;
	struct dvm_bytes why;
	struct dvm_bytes node; /* of the rank; empty: it has been on none */
	enum journal_output output;
	struct dvm_bytes out, err, files, unkept; /* JOURNAL_OUTPUT: as in dvm_ended */
	uint64_t told_ns;   /* when the head knew; 0: not known */
};

/* The nodes from now on; until the next head begins, or there is more or less. */
struct journal_nodes {
	uint64_t since_ns;
	bool begins;        /* a head: what another one had is no more */
	uint32_t nodes;
	uint64_t slots;     /* of all of them */
	bool stay;          /* of a head that begins: these have waited for it */
	bool left;          /* the head ends, and no rank of any task runs */
	bool simulated;     /* of a head that begins: its nodes and times are a model */
	uint64_t gpus;      /* of all nodes */
	uint64_t from_ns;   /* begins: when the head's process did; left: when its end did;
	                       0: not known */
};

/* A client has waited for a task that had ended, or for `count` tasks of JOURNAL_COUNTS. */
struct journal_waited {
	uint64_t task;      /* 0: of JOURNAL_COUNTS */
	uint64_t count, failed;
};

struct journal_record {
	enum journal_type type;
	union {
		struct journal_counts counts;
		struct journal_profile profile;
		struct journal_submit submit;
		struct journal_start start;
		uint64_t cancelled; /* a task */
		struct journal_end end;
		struct journal_nodes nodes;
		struct journal_waited waited;
	};
};

/* Append the header of a journal. 0, -ENOBUFS or -ENOMEM. */
int journal_put_header(struct buf *b);
/*
 * Append a record, which is to be sealed. 0, -EMSGSIZE, -ENOBUFS or -ENOMEM; then nothing
 * is appended.
 */
int journal_put(struct buf *b, const struct journal_record *r);

/* The place of the next record in a journal, and the checksum of the one before. */
struct journal_chain {
	uint64_t at;
	uint32_t sum;
};

/* The chain of a journal that has nothing but its header. */
void journal_chain_init(struct journal_chain *c);
/* Make whole records of what journal_put has appended, for the chain's end. */
void journal_seal(struct journal_chain *c, void *records, size_t len);

/* Reading a journal from its begin to its end. */
struct journal_reader {
	const unsigned char *data;
	size_t len;
	uint32_t version;
	uint32_t sum;       /* of the record that was read last */
	size_t at;          /* the next record */
	size_t begin;       /* the record that was read last: its bytes are up to `at` */
	size_t damaged;     /* bytes that were passed over, followed by whole records */
	size_t damaged_at;  /* the first of them */
	size_t gaps;        /* places where records are missing, and nothing is damaged */
	size_t gap_at;      /* the first of them */
	size_t cut;         /* at the end: where the last whole record ends */
};

/*
 * Open a journal. 0; -EBADMSG: not a journal; -EPROTONOSUPPORT: a journal of another
 * version, which is in *version.
 */
int journal_open(struct journal_reader *j, const void *data, size_t len,
		 uint32_t *version);
/* Read the next whole record, which points into the data. False: there is none. */
bool journal_next(struct journal_reader *j, struct journal_record *r);
