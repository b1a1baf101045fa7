/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Plugins of hwloc that open GPUs: a context on each takes seconds and memory, and GPUs
 * that are seen so belong to jobs. As PCI devices they are there all the same.
 */
#pragma once

/* The variable that names files which hwloc does not even load. */
#define HWLOC_PLUGINS_LEFT_OUT "HWLOC_PLUGINS_BLACKLIST"

#define HWLOC_PLUGINS_OF_GPUS \
	"hwloc_cuda,hwloc_gl,hwloc_levelzero,hwloc_nvml,hwloc_opencl,hwloc_rsmi"
