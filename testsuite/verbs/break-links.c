/* SPDX-License-Identifier: BSD-3-Clause */
/* For ring-exercise: queue pairs that go into the error state by themselves. */
#include "../fake/ring-exercise.h"

#include "ring.h"
#include "verbs.h"

void break_links(pmi2x_ring *r)
{
	struct ibv_qp_attr attr = { .qp_state = IBV_QPS_ERR };

	if (r->ops != &verbs_transport)
		die("break", "not over verbs");
	for (int side = 0; side < SIDES; side++)
		if (r->transport->device.calls.modify_qp(
			    r->transport->links[side].qp, &attr, IBV_QP_STATE))
			die("break", "modify_qp");
}
