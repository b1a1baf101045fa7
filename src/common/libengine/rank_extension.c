/* SPDX-License-Identifier: BSD-3-Clause */
/* The pmi2x extension: doc/extension-protocol.md. */
#include <errno.h>
#include <string.h>

#include "libengine/engine.h"
#include "libengine/pending.h"
#include "libengine/rank.h"
#include "libengine/request.h"
#include "libengine/results.h"
#include "libpmi/extension.h"
#include "libshm/records.h"
#include "libutil/decimal.h"

static bool agree_on_region(const struct pmi_server *s,
			    const struct pmi_message *m)
{
	int offered;

	return s->results.region &&
	       !pmi_message_int(m, EXT_KEY_REGION, &offered) &&
	       offered >= REGION_VERSION;
}

static bool agree_on_slots(const struct pmi_server *s,
			   const struct pmi_message *m)
{
	int offered;

	return s->slots && !pmi_message_int(m, EXT_KEY_SLOTS, &offered) &&
	       offered >= SLOTS_VERSION;
}

static void offer_slots(struct rank_session *ss, struct pmi_writer *w)
{
	const struct slots *slots = ss->server->slots;

	slots_attach(ss);
	pmi_write_int(w, EXT_KEY_SLOTS, SLOTS_VERSION);
	pmi_write_int(w, EXT_KEY_SLOTS_SIZE, slots_size(slots));
	pmi_write_int(w, EXT_KEY_SLOTS_BOARD, slots_board_offset(slots));
	pmi_write_int(w, EXT_KEY_SLOT, ss->slot);
}

static void pass(struct passed_fds *fds, int fd)
{
	fds->fds[fds->count++] = fd;
}

void ext_negotiate(struct rank_session *ss, const struct pmi_message *m,
		   struct pmi_writer *w, struct passed_fds *fds)
{
	const struct pmi_server *s = ss->server;
	int offered;

	if (pmi_message_int(m, EXT_KEY_VERSION, &offered) || offered < 1)
		return;
	ss->extension = offered < EXT_VERSION ? offered : EXT_VERSION;
	pmi_write_int(w, EXT_KEY_VERSION, ss->extension);
	pmi_write_str(w, EXT_KEY_BUILD, s->step->build ? s->step->build : "");
	pmi_write_int(w, EXT_KEY_NODES, layout_nodes(s->step->layout));
	pmi_write_bool(w, EXT_KEY_GROUPS, true);
	pmi_write_bool(w, EXT_KEY_FETCH, true);
	if (!agree_on_region(s, m))
		return;
	pmi_write_int(w, EXT_KEY_REGION, REGION_VERSION);
	pmi_write_int(w, EXT_KEY_REGION_SIZE,
		      region_writer_size(s->results.region));
	pass(fds, region_writer_fd(s->results.region));
	if (!agree_on_slots(s, m))
		return;
	offer_slots(ss, w);
	pass(fds, slots_fd(s->slots));
	pass(fds, s->wake_fd);
}

static bool take_records(struct rank_session *ss, const struct rank_request *rq,
			 const struct pmi_message *m)
{
	const struct pmi_field *f = pmi_message_field(m, EXT_KEY_RECORDS);

	void *at;

	if (!f || f->value_len == 0)
		return true;
	at = rank_room_for_records(ss, rq, f->value_len);
	if (!at)
		return false;
	memcpy(at, f->value, f->value_len);
	return rank_take_records(ss, rq, f->value_len);
}

void ext_put(struct rank_session *ss, const struct rank_request *rq,
	     const struct pmi_message *m)
{
	slots_take_own(ss); /* fences that these records come too late for */
	engine_defer(ss->server, DEFER_TIDY);
	if (take_records(ss, rq, m))
		answer_ok(ss, rq);
}

void ext_fence(struct rank_session *ss, const struct rank_request *rq,
	       const struct pmi_message *m)
{
	if (slots_count_socket(ss) && take_records(ss, rq, m))
		collective_fence(ss, rq);
}

static int field_u64(const struct pmi_message *m, const char *key,
		     uint64_t *out)
{
	const char *s = pmi_message_str(m, key);

	return s && decimal_u64(s, 0, UINT64_MAX, out) ? 0 : -EINVAL;
}

/* The offsets in done=, each once given back. 0 or -EINVAL. */
static int take_done(struct rank_session *ss, const struct pmi_message *m)
{
	const char *at = pmi_message_str(m, EXT_KEY_DONE);
	uint64_t offset;

	while (at && *at) {
		if (!decimal_take(&at, UINT64_MAX, &offset) ||
		    (*at && *at++ != ','))
			return -EINVAL;
		collective_done(ss, offset);
	}
	return 0;
}

void ext_allgather(struct rank_session *ss, const struct rank_request *rq,
		   const struct pmi_message *m)
{
	const struct pmi_field *value;
	int stride = 0, rc;

	if (!slots_count_socket(ss))
		return;
	rc = pmi_message_int(m, EXT_KEY_STRIDE, &stride);
	if (rc == -EINVAL || stride < 0 || (uint32_t)stride > RECORD_VALUE_MAX) {
		answer_error(ss, rq, PMI_RC_INVALID_SIZE,
			     "stride is not a number up to %u", RECORD_VALUE_MAX);
		return;
	}
	if (take_done(ss, m)) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "done is not a list of offsets");
		return;
	}
	value = rank_value(ss, rq, m, EXT_KEY_VALUE, RECORD_VALUE_MAX);
	if (value)
		collective_gather(ss, rq, gather_contribution(
				ss->server->step->budget, value->value,
				value->value_len), stride);
}

void ext_read(struct rank_session *ss, const struct rank_request *rq,
	      const struct pmi_message *m)
{
	uint64_t offset, length;
	const void *bytes = NULL;

	if (field_u64(m, EXT_KEY_OFFSET, &offset) ||
	    field_u64(m, EXT_KEY_LENGTH, &length) || length > EXT_READ_MAX) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "offset or length is missing or over its limit");
		return;
	}
	bytes = results_bytes(&ss->server->results, offset, length);
	if (!bytes) {
		answer_error(ss, rq, PMI_RC_INVALID_ARG,
			     "nothing is published there");
		return;
	}
	pmi_write_bytes(answer_begin(ss, rq, PMI_RC_OK), EXT_KEY_DATA, bytes,
			length);
	answer_end(ss, rq);
}
