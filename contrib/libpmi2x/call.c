/* SPDX-License-Identifier: BSD-3-Clause */
/* The parts of a call that do not depend on its transport. */
#include "call.h"

#include <stdlib.h>
#include <string.h>

void call_init(struct call *call, struct transport *t, const char *response)
{
	memset(call, 0, sizeof(*call));
	call->transport = t;
	call->response = response;
	call->state = t ? CALL_NEW : CALL_DONE;
	pmi_message_init(&call->reply);
}

int call_wait(struct call *call)
{
	return call->transport ? call->transport->ops->wait(call) : call->error;
}

bool call_test(struct call *call)
{
	return !call->transport || call->transport->ops->test(call);
}

void call_end(struct call *call)
{
	buf_free(&call->request);
	pmi_message_free(&call->reply);
	free(call->data);
	call->data = NULL;
	value_free(&call->outcome.place.left);
	value_free(&call->outcome.place.right);
}
