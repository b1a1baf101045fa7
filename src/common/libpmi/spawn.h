/* SPDX-License-Identifier: BSD-3-Clause */
/* A request to spawn processes, from either PMI protocol. */
#pragma once

#include <stdint.h>

#include "libpmi/message.h"
#include "libutil/buf.h"
#include "libutil/pack.h"

#define SPAWN_COMMANDS_MAX 1024
#define SPAWN_ARGS_MAX 4096      /* of one command */
#define SPAWN_INFO_MAX 64        /* of one command */
#define SPAWN_PREPUT_MAX 256
#define SPAWN_PROCS_MAX (1u << 20)
#define SPAWN_STRING_MAX 65536   /* bytes of any one string */
#define SPAWN_BYTES_MAX (6u << 20) /* of all strings, 16 a string added: what
                                      fits is below CONTROL_BODY_MAX packed */

struct spawn_pair {
	char *key;
	char *value;
};

struct spawn_command {
	char *program;
	char **argv; /* without the program; NULL-terminated, never NULL */
	uint32_t argc;
	uint32_t nprocs;
	struct spawn_pair *info;
	uint32_t ninfo;
};

struct spawn_request {
	struct spawn_command *commands;
	uint32_t ncommands;
	struct spawn_pair *preput;
	uint32_t npreput;
	uint32_t bytes; /* charged against SPAWN_BYTES_MAX */
};

/* A zeroed request; free with spawn_free. NULL: no memory. */
struct spawn_request *spawn_new(void);
void spawn_free(struct spawn_request *s); /* NULL is allowed */

/*
 * Build a request: add a command, then describe it. Strings are copied. 0;
 * -EINVAL (over a limit, said twice, empty where that cannot be, a NUL inside,
 * or no command yet), or -ENOMEM. After an error the request is still fit for
 * spawn_free.
 */
int spawn_add_command(struct spawn_request *s);
int spawn_set_program(struct spawn_request *s, const char *data, size_t len);
int spawn_set_nprocs(struct spawn_request *s, uint64_t nprocs);
int spawn_add_arg(struct spawn_request *s, const char *data, size_t len);
int spawn_add_info(struct spawn_request *s, const struct pmi_field *pair);
int spawn_add_preput(struct spawn_request *s, const struct pmi_field *pair);

/*
 * Read a request out of a PMI-2 spawn message. 0; -EINVAL (a field is missing,
 * no number, or over a limit; *what then names it), or -ENOMEM.
 */
int spawn_from_pmi2(const struct pmi_message *m, struct spawn_request **out,
		    const char **what);

/*
 * PMI-1 sends one mcmd a command (totspawns, spawnssofar). Add the next one to
 * *s, made by the first call. 1: more are to come; 0: complete; errors as above
 * (*s is then freed and NULL).
 */
int spawn_add_pmi1(const struct pmi_message *m, struct spawn_request **s,
		   const char **what);

/*
 * The wire form between agents and srun. Packing: 0, -ENOBUFS or -ENOMEM.
 * Unpacking: 0, -EPROTO (nothing that spawn_pack can have written) or -ENOMEM.
 */
int spawn_pack(struct buf *b, const struct spawn_request *s);
int spawn_unpack(struct cursor *c, struct spawn_request **out);

/* Processes of all commands together. */
uint32_t spawn_procs(const struct spawn_request *s);
/* The value of an info key of a command, or NULL. */
const char *spawn_info(const struct spawn_command *c, const char *key);
