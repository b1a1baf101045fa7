/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A PMI server in a thread of the test, on the other end of PMI_FD. It plays the
 * agent for one rank (rank 1) of a job whose other ranks put, gather and enter
 * whatever the client does. Its behaviour is switched by flags.
 */
#pragma once

#include <stdbool.h>
#include <stddef.h>

#include "unit.h"

#define FAKE_RANK 1
#define FAKE_SIZE 4

struct fake_options {
	bool extended;       /* knows the pmi2x extension */
	bool no_region;      /* offers no results region */
	bool cuts_values;    /* like the stock plugin, cuts values at a ';' */
	bool pmi1_only;      /* refuses PMI-2 */
	bool groups;         /* knows barriers of groups: extended, or PMI-1 1.2 */
	bool hold_fences;    /* answers fences only after fake_release */
	bool reverse;        /* released fences: the last one first */
	bool refuse_fence;   /* answers fences with an error */
	const char *refuse_tag; /* PMI-1: barriers with this one */
	bool refuse_puts;    /* and batches of records that come before one */
	const char *garbage; /* sent in place of the answer to garbage_cmd */
	const char *garbage_cmd;
	size_t garbage_len;  /* 0: hang up in the middle of the answer */
	bool hang_up;        /* after the garbage */
	bool mute_slots;     /* offers slots into which nobody ever looks */
	bool extra_fds;      /* passes two descriptors too many */
};

struct fake;

/* Start it and set PMI_FD and the rest of the environment. */
struct fake *fake_start(const struct fake_options *options);
/* Hang up, join the thread, unset the environment. */
void fake_stop(struct fake *f);
/* A server that ends with its test. */
struct fake *fake_of_test(const struct fake_options *options);
/* A test with a server of these options. */
#define FAKE_TEST(name, ...) \
	TEST_ON(name, struct fake *f, fake_of_test(&(struct fake_options){ __VA_ARGS__ }))
/* Only hang up; no more than fake_stop may come after it. */
void fake_hang_up(struct fake *f);
/* Wait until at least `count` fences are held. */
void fake_await(struct fake *f, int count);
/* Answer the fences that are held. Waits until at least `count` are there. */
void fake_release(struct fake *f, int count);
/* How many entries are in its slots. */
int fake_entered(struct fake *f);
/* The group of the last barrier of one; "": there was none. */
const char *fake_group(struct fake *f);
/* How many requests with this command have come. */
int fake_seen(struct fake *f, const char *cmd);
