/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether a program loads the libraries that LD_PRELOAD names. */
#pragma once

enum preload {
	PRELOAD_LOADS,  /* also a script, or a file that is not here or cannot be read */
	PRELOAD_STATIC, /* it has no loader */
	PRELOAD_SETUID, /* it runs as another user or group, so its loader loads none of them */
};

/* Look at a program that this process's user starts. Does not block. */
enum preload preload_of(const char *path);
