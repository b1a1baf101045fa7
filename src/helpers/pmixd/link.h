/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages (libpmi/pmix_msg.h) over a stream socket, without waiting. */
#pragma once

#include <stdbool.h>

#include "libpmi/pmix_frame.h"
#include "libpmi/pmix_msg.h"

struct link {
	int fd;
	struct pmix_frame frame;
	struct payload_vec in;  /* whole messages */
	size_t taken;           /* of them: link_next has returned them */
	struct payload_vec out; /* messages in pieces */
	size_t sent;            /* bytes of the first piece */
};

/* `fd` stays the caller's. */
void link_init(struct link *l, int fd);
void link_free(struct link *l);

/*
 * Read what there is, once a poll says so. 0; -EPIPE: the other end has closed; or
 * another negative errno.
 */
int link_read(struct link *l);
/*
 * The next message, valid until link_read or until there is none; longer with a
 * reference to *whole (NULL is allowed), which has its bytes. 1, 0: none, or -EPROTO.
 */
int link_next(struct link *l, struct pmix_msg *m, struct payload **whole);

/* Copy it for sending; link_write sends it. Errors of pmix_msg_pack. */
int link_send(struct link *l, const struct pmix_msg *m);
/* As above, with the m->len bytes of `data`, which are not copied, for m->data. */
int link_send_pieces(struct link *l, const struct pmix_msg *m,
		     const struct payload_vec *data);
bool link_has_to_write(const struct link *l);
/* Write what can be written. 0 or a negative errno. */
int link_write(struct link *l);
