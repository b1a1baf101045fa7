/* SPDX-License-Identifier: BSD-3-Clause */
/* Fields that a request must have, and limits: else the rank is answered at once. */
#include "libengine/rank.h"
#include "libengine/request.h"

bool rank_may_wait(struct rank_session *ss, const struct rank_request *rq)
{
	if (ss->waits < RANK_WAITS_MAX)
		return true;
	answer_error(ss, rq, PMI_RC_OTHER, "too many unanswered requests");
	return false;
}

/* A field of min..max bytes; else these are the answers. */
static const struct pmi_field *
field_of(struct rank_session *ss, const struct rank_request *rq,
	 const struct pmi_message *m, const char *name, size_t min, size_t max,
	 enum pmi_rc is_missing, enum pmi_rc is_long)
{
	const struct pmi_field *f = pmi_message_field(m, name);

	if (!f || f->value_len < min)
		answer_error(ss, rq, is_missing, "%s is missing", name);
	else if (f->value_len > max)
		answer_error(ss, rq, is_long,
			     "%s has %u bytes, the limit is %zu", name,
			     f->value_len, max);
	else
		return f;
	return NULL;
}

const struct pmi_field *rank_value(struct rank_session *ss,
				   const struct rank_request *rq,
				   const struct pmi_message *m,
				   const char *name, size_t max)
{
	return field_of(ss, rq, m, name, 0, max, PMI_RC_INVALID_ARG,
			PMI_RC_INVALID_VAL_LENGTH);
}

const struct pmi_field *rank_key(struct rank_session *ss,
				 const struct rank_request *rq,
				 const struct pmi_message *m,
				 const char *name, size_t max)
{
	return field_of(ss, rq, m, name, 1, max, PMI_RC_INVALID_KEY,
			PMI_RC_INVALID_KEY_LENGTH);
}
