/* SPDX-License-Identifier: BSD-3-Clause */
/* Random numbers (splitmix64) and distributions. */
#include "random.h"

#include <math.h>
#include <string.h>

#define TWO_PI 6.283185307179586

uint64_t random_next(struct sim_random *r)
{
	uint64_t z = r->state += UINT64_C(0x9e3779b97f4a7c15);

	z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
	z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
	return z ^ (z >> 31);
}

uint64_t random_below(struct sim_random *r, uint64_t below)
{
	return random_next(r) % below;
}

/* 0 < result <= 1 */
static double unit(struct sim_random *r)
{
	return ((random_next(r) >> 11) + 1) * 0x1p-53;
}

static double normal(struct sim_random *r)
{
	return sqrt(-2 * log(unit(r))) * cos(TWO_PI * unit(r));
}

double random_factor(struct sim_random *r, double deviation)
{
	double square = log(1 + deviation * deviation);

	return exp(sqrt(square) * normal(r) - square / 2);
}

static const struct {
	const char *name;
	enum distribution_kind kind;
	int times;
} forms[] = {
	{ "fixed", DISTRIBUTION_FIXED, 1 },
	{ "uniform", DISTRIBUTION_UNIFORM, 1 },
	{ "exponential", DISTRIBUTION_EXPONENTIAL, 1 },
	{ "normal", DISTRIBUTION_NORMAL, 2 },
};

#define FORMS (sizeof(forms) / sizeof(forms[0]))

bool distribution_parse(char *text, struct distribution *out)
{
	char *rest, *word = strtok_r(text, " \t", &rest), *b = NULL;
	size_t i = 0;

	if (!word)
		return false;
	out->b = 0;
	while (i < FORMS && strcmp(word, forms[i].name) != 0)
		i++;
	out->kind = i < FORMS ? forms[i].kind : DISTRIBUTION_FIXED;
	if (i < FORMS)
		word = strtok_r(NULL, " \t", &rest);
	if (i < FORMS && forms[i].times == 2)
		b = strtok_r(NULL, " \t", &rest);
	if (!word || !units_time(word, &out->a) ||
	    strtok_r(NULL, " \t", &rest))
		return false;
	return out->kind != DISTRIBUTION_NORMAL || (b && units_time(b, &out->b));
}

sim_time distribution_draw(const struct distribution *d, struct sim_random *r)
{
	double value = d->a;

	switch (d->kind) {
	case DISTRIBUTION_FIXED:
		return d->a;
	case DISTRIBUTION_UNIFORM:
		value *= unit(r);
		break;
	case DISTRIBUTION_EXPONENTIAL:
		value *= -log(unit(r));
		break;
	case DISTRIBUTION_NORMAL:
		value += d->b * normal(r);
		break;
	}
	return value > 0 ? sim_time_of(round(value)) : 0;
}
