/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI messages and their two wire forms. Used by the server engine and by the
 * client library. Bytes in, bytes out; no system calls.
 *
 *   PMI-1: "cmd=X key=value ...\n"; spawn is "mcmd=spawn\n" key=value lines
 *          "endcmd\n".
 *   PMI-2: six characters of decimal length, then "cmd=X;key=value;..."; a
 *          ';' inside a value is doubled. Values may hold any byte.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "libutil/buf.h"

#define PMI_KEYLEN_MAX 64      /* of a KVS key, NUL included, both protocols */
#define PMI_VALLEN_MAX 1024    /* of a value, NUL included */
#define PMI_KVSNAME_MAX 256
#define PMI2_HEADER_LEN 6
#define PMI2_BODY_MAX 999999   /* the largest number of six digits */
#define PMI1_LINE_MAX (1 << 20) /* bytes of one line: of a barrier_in with a list of
                                  10,000 ranks some 70,000; of an mcmd: PMI2_BODY_MAX */
#define PMI_FIELDS_MAX 8192    /* fields of one message */

enum pmi_protocol { PMI_PROTOCOL_NONE, PMI_PROTOCOL_1, PMI_PROTOCOL_2 };

/* Both NUL-terminated in place; a value may hold NULs before its end. */
struct pmi_field {
	const char *key;
	const char *value;
	uint32_t key_len;
	uint32_t value_len;
};

/* A decoded message. Fields point into the decoded bytes. */
struct pmi_message {
	struct pmi_field *fields; /* in order, duplicates kept */
	size_t count;
	size_t cap;
	bool mcmd; /* PMI-1: came as mcmd ... endcmd */
};

void pmi_message_init(struct pmi_message *m);
void pmi_message_free(struct pmi_message *m); /* frees the array, not the bytes */

/*
 * The length in bytes of a whole message at the start of `data`; 0: more input is needed;
 * -EPROTO: not a message; -EMSGSIZE: over the limits. `protocol` NONE is a new connection,
 * whose first line is PMI-1 text.
 */
long pmi1_frame(const char *data, size_t len);
long pmi2_frame(const char *data, size_t len); /* includes the six digits */

/*
 * Decode one framed message in place: `data` is modified (NULs are written,
 * doubled ';' undone). 0, -EPROTO, -EMSGSIZE (fields) or -ENOMEM.
 */
int pmi1_decode(char *data, size_t len, struct pmi_message *m);
int pmi2_decode(char *data, size_t len, struct pmi_message *m);

/* The command: value of the first field, whose key is cmd or mcmd; or NULL. */
const char *pmi_message_cmd(const struct pmi_message *m);
/* The first field named `key`, or NULL. */
const struct pmi_field *pmi_message_field(const struct pmi_message *m,
					  const char *key);
/* The value of `key` as a string, or NULL. */
const char *pmi_message_str(const struct pmi_message *m, const char *key);
/*
 * The value of `key` as a decimal int: 0, -ENOENT, or -EINVAL (not a number, or out of
 * range).
 */
int pmi_message_int(const struct pmi_message *m, const char *key, int *out);
/* TRUE or FALSE, in any case; 0, -ENOENT or -EINVAL. */
int pmi_message_bool(const struct pmi_message *m, const char *key, bool *out);

/*
 * Encoding. Begin, add fields, end; errors stick in the writer and come out of
 * pmi_write_end (0, -ENOBUFS, -ENOMEM, -EMSGSIZE; -EINVAL for a value that
 * PMI-1 cannot carry: one with a newline, a NUL, a space at its end, or a space
 * before a word that looks like "key="). On error the buffer is as it was
 * before pmi_write_begin. Stock PMI-1 clients refuse any space in a value.
 */
struct pmi_writer {
	struct buf *out;
	enum pmi_protocol protocol;
	size_t start;
	int error;
};

void pmi_write_begin(struct pmi_writer *w, struct buf *out,
		     enum pmi_protocol protocol, const char *cmd);
void pmi_write_str(struct pmi_writer *w, const char *key, const char *value);
void pmi_write_bytes(struct pmi_writer *w, const char *key, const void *value,
		     size_t len);
void pmi_write_int(struct pmi_writer *w, const char *key, long value);
void pmi_write_bool(struct pmi_writer *w, const char *key, bool value);
int pmi_write_end(struct pmi_writer *w);
