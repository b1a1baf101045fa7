/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Publish, unpublish and look-up of PMIx clients: from who serves them to srun, which
 * keeps what is published, and the answer back. Who asks is said here.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libpmi/names.h"
#include "libpmi/pmix_msg.h"
#include "libpmi/server_private.h"

static void send_named(struct pmi_server *s, uint64_t id, int status, const char *text,
		       struct payload *data)
{
	const struct pmix_msg m = {
		.type = PMIX_MSG_NAMED, .id = id, .rank = PMIX_NO_RANK,
		.status = status, .text = text,
		.text_len = pmix_text_len(text), .len = data ? data->len : 0,
	};

	pmix_send_message(s, &m, data);
}

void pmix_named(struct pmi_server *s, uint64_t id, const struct control_msg *reply)
{
	struct payload *data;

	if (reply->code || !reply->body_len) {
		send_named(s, id, -ENOTCONN, reply->text, NULL);
		return;
	}
	data = payload_copy(reply->body, reply->body_len);
	if (data)
		send_named(s, id, 0, NULL, data);
	else
		send_named(s, id, -ENOMEM, answer_text(-ENOMEM), NULL);
	payload_unref(data);
}

/* srun is spared what is none. */
static int check(const struct pmix_msg *m)
{
	struct names_request r;
	int rc = names_unpack_request(&r, m->data, m->len);

	if (!rc)
		free(r.items);
	return rc;
}

int pmix_on_names(struct pmi_server *s, const struct pmix_msg *m,
		  struct payload *message)
{
	struct rank_session *ss = pmix_rank_of(s, m);
	int rc = ss && ss->state != RANK_GONE ? check(m) : -EINVAL;

	rc = rc ? rc : requests_names(ss, m->id, m->data, m->len);
	if (rc)
		send_named(s, m->id, rc, strerror(-rc), NULL);
	return 0;
}
