/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles that ranks are started with, by pmi2x-dvmd's numbers. */
#pragma once

#include "dvm/core/dvm_msg.h"

struct held_profile;

/* Keep a copy; *all is NULL first. 0 or -ENOMEM. */
int profiles_add(struct held_profile **all, const struct dvm_profile_msg *m);
/* NULL: no such profile. */
const struct dvm_profile_msg *profiles_find(struct held_profile *all, uint32_t number);
void profiles_forget(struct held_profile **all, uint32_t number);
