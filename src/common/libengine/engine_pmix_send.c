/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages to pmi2x-pmixd, and texts in them. */
#include <stdio.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pmix_bridge.h"
#include "libpmi/control.h"

#define HEAD_MAX (PMIX_MSG_TEXT_MAX + 128) /* bytes of a message without its data */

bool pmix_is_served(const struct pmi_server *s)
{
	return s->pmix.service != PMIX_SERVICE_NONE &&
	       s->pmix.service != PMIX_SERVICE_LOST;
}

void pmix_send_message(struct pmi_server *s, const struct pmix_msg *m,
		       struct payload *data)
{
	char room[HEAD_MAX];
	struct buf head;

	if (!pmix_is_served(s))
		return;
	buf_init_in(&head, room, sizeof(room));
	if (!pmix_msg_pack_head(&head, m))
		s->ops->pmix_send(s->arg, head.data, head.len, data);
}

size_t pmix_text_len(const char *text)
{
	size_t len = text ? strlen(text) : 0;

	return len < PMIX_MSG_TEXT_MAX ? len : PMIX_MSG_TEXT_MAX;
}

void pmix_copy_text(const struct pmix_msg *m, char *out)
{
	snprintf(out, PMIX_MSG_TEXT_MAX + 1, "%.*s", (int)m->text_len,
		 m->text ? m->text : "");
	control_printable(out);
}
