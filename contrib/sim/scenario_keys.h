/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys of a scenario as one table. Private to the parser. */
#pragma once

#include "scenario.h"

#define KEYS_SECTIONS "step, launch, operations, network, node, faults, dvm and workload"

/* The section's name as it lives forever, or NULL. */
const char *keys_section(const char *name);
/* The section of the key that a "key = value" sets, `first` if it has one, or NULL. */
const char *keys_section_of(const char *pair, const char *first);
/* The key's index, or -1. */
int keys_find(const char *section, const char *key);
/* The key's name, or NULL: there are no more keys. */
const char *keys_name(int key);
/* Whether the key says something of machines, as those of calibrations do. */
bool keys_of_machine(int key);
/* Whether it may be there several times. */
bool keys_repeat(int key);
/* False with what is allowed. Changes the value. */
bool keys_set(struct scenario *s, int key, char *value, unsigned int line,
	      const char **allowed);
/* The names of a section's keys, with commas. Returns out. */
char *keys_names(const char *section, char *out, size_t len);
