/* SPDX-License-Identifier: BSD-3-Clause */
/* Sharing tasks out: longest processing time first, on members of several sizes. */
#include "dvm/core/share.h"

#include <errno.h>
#include <stdlib.h>

struct load {
	double work;
	size_t index; /* index of the task */
};

double share_mean(const struct share_task *tasks, size_t count)
{
	double sum = 0;
	size_t n = 0;

	for (size_t i = 0; i < count; i++) {
		sum += tasks[i].seconds;
		n += tasks[i].seconds > 0;
	}
	return n ? sum / (double)n : 1;
}

/* Most work first, then in order. */
static int by_work(const void *a, const void *b)
{
	const struct load *x = a, *y = b;

	if (x->work < y->work || x->work > y->work)
		return x->work < y->work ? 1 : -1;
	return (x->index > y->index) - (x->index < y->index);
}

static bool is_less(const struct share_member *a, const struct share_member *b, double work)
{
	return (a->work + work) * b->slots < (b->work + work) * a->slots;
}

static size_t choose(const struct share_member *m, size_t n, const struct share_task *t,
		     double work)
{
	size_t found = n, largest = n;

	if (t->member < n)
		return t->member;
	for (size_t i = 0; i < n; i++) {
		if (!m[i].up)
			continue;
		if (largest == n || m[i].slots > m[largest].slots)
			largest = i;
		if (m[i].slots >= t->slots && m[i].nodes >= t->nodes &&
		    (found == n || is_less(&m[i], &m[found], work)))
			found = i;
	}
	return found < n ? found : largest;
}

int share_out(struct share_member *members, size_t nmembers,
	      const struct share_task *tasks, size_t count, size_t *to)
{
	struct load *order = malloc((count + 1) * sizeof(*order));
	double mean = share_mean(tasks, count);

	if (!order)
		return -ENOMEM;
	for (size_t i = 0; i < count; i++)
		order[i] = (struct load){
			tasks[i].slots * (tasks[i].seconds > 0 ? tasks[i].seconds : mean), i,
		};
	qsort(order, count, sizeof(*order), by_work);
	for (size_t k = 0; k < count; k++) {
		size_t i = order[k].index;

		to[i] = choose(members, nmembers, &tasks[i], order[k].work);
		if (to[i] < nmembers)
			members[to[i]].work += order[k].work;
	}
	free(order);
	return 0;
}
