/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Random numbers by seed, and the distributions of a scenario. A seed gives the same
 * numbers on every machine with the same libm.
 */
#pragma once

#include "units.h"

struct sim_random {
	uint64_t state;
};

uint64_t random_next(struct sim_random *r);
/* 0 <= result < below; below > 0. */
uint64_t random_below(struct sim_random *r, uint64_t below);

enum distribution_kind {
	DISTRIBUTION_FIXED,       /* a */
	DISTRIBUTION_UNIFORM,     /* 0 to a */
	DISTRIBUTION_EXPONENTIAL, /* of mean a */
	DISTRIBUTION_NORMAL,      /* of mean a and deviation b, cut at 0 */
};

struct distribution {
	enum distribution_kind kind;
	sim_time a, b;
};

#define DISTRIBUTION_FORMS \
	"TIME, fixed TIME, uniform MAX, exponential MEAN or normal MEAN DEVIATION"

/* Parse one of the forms above. Changes the text. */
bool distribution_parse(char *text, struct distribution *out);
/* A factor of mean 1 and this deviation, with the logarithms of a normal distribution. */
double random_factor(struct sim_random *r, double deviation);
sim_time distribution_draw(const struct distribution *d, struct sim_random *r);
