/* SPDX-License-Identifier: BSD-3-Clause */
/* Records that a rank has put and that no fence has taken. */

#include "libengine/engine.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libshm/records.h"

/* Add a record to what the next fence carries. 0 or a negative errno. */
int rank_put_record(struct rank_session *ss, const struct pmi_field *key,
		    const struct pmi_field *value)
{
	engine_event(ss->server, PMI_EVENT_PUT, ss->slot, 0, 0);
	engine_defer(ss->server, DEFER_TIDY);
	ss->pending.limit = ss->pending.len + rank_room(ss);
	return record_append(&ss->pending, key->value, key->value_len,
			     value->value, value->value_len);
}

static bool records_fail(struct rank_session *ss, const struct rank_request *rq, int rc)
{
	answer_error(ss, rq, answer_rc(rc), "records: %s", answer_text(rc));
	return false;
}

void *rank_room_for_records(struct rank_session *ss, const struct rank_request *rq,
			   size_t len)
{
	int rc;

	engine_event(ss->server, PMI_EVENT_PUT, ss->slot, 0, 0);
	ss->pending.limit = ss->pending.len + rank_room(ss);
	rc = buf_reserve(&ss->pending, len);
	if (rc) {
		records_fail(ss, rq, rc);
		return NULL;
	}
	return ss->pending.data + ss->pending.len;
}

bool rank_take_records(struct rank_session *ss, const struct rank_request *rq, size_t len)
{
	size_t count;
	int rc = records_check(ss->pending.data + ss->pending.len, len, &count);

	if (rc)
		return records_fail(ss, rq, rc);
	ss->pending.len += len;
	return true;
}
