/* SPDX-License-Identifier: BSD-3-Clause */
/* The GPUs of a node, with fake device files. */
#include "unit.h"

#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "dvm/zygote/gpus.h"

static const char *const names[] = {
	"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
	"GPU_DEVICE_ORDINAL", "ZE_AFFINITY_MASK",
};

#define NAMES (sizeof(names) / sizeof(*names))

static void unset_all(void)
{
	for (size_t i = 0; i < NAMES; i++)
		unsetenv(names[i]);
}

/* As Slurm does without AutoDetect. */
static void set_all(const char *mask)
{
	unset_all();
	for (size_t i = 0; i < NAMES; i++)
		if (i != 2)
			setenv(names[i], mask, 1);
}

/* The GPUs of a machine that has this device file, or none. Their names live as long as the process. */
static struct gpus found(const char *file)
{
	static struct gpus all[64];
	static size_t n;
	char dev[] = "/tmp/pmi2x-gpus-XXXXXX", path[64], dri[64];
	struct gpus g;
	int fd;

	assert_non_null(mkdtemp(dev));
	snprintf(dri, sizeof(dri), "%s/dri", dev);
	snprintf(path, sizeof(path), "%s/%s", dev, file ? file : "null");
	assert_int_equal(mkdir(dri, 0700), 0);
	fd = open(path, O_WRONLY | O_CREAT, 0600);
	assert_true(fd >= 0);
	close(fd);
	assert_int_equal(gpus_find(&g, dev), 0);
	unlink(path);
	rmdir(dri);
	rmdir(dev);
	assert_true(n < sizeof(all) / sizeof(*all));
	all[n++] = g;
	return g;
}

TEST(variable_is_that_of_the_vendor)
{
	set_all("2,3");
	assert_string_equal(found("nvidiactl").variable, "CUDA_VISIBLE_DEVICES");
	assert_string_equal(found("kfd").variable, "ROCR_VISIBLE_DEVICES");
	assert_string_equal(found("dri/renderD128").variable, "ZE_AFFINITY_MASK");
	assert_int_equal(found("kfd").count, 2);
	assert_string_equal(found("kfd").names[0], "2");
}

TEST(without_device_files_the_set_variable_tells_the_vendor)
{
	unset_all();
	assert_int_equal(found(NULL).count, 0);
	assert_string_equal(found(NULL).variable, "CUDA_VISIBLE_DEVICES");
	setenv("ZE_AFFINITY_MASK", "0.1,1.0", 1);
	assert_string_equal(found(NULL).variable, "ZE_AFFINITY_MASK");
	assert_int_equal(found(NULL).count, 2);
	setenv("ROCR_VISIBLE_DEVICES", "4", 1);
	setenv("CUDA_VISIBLE_DEVICES", "", 1);
	assert_string_equal(found(NULL).variable, "ROCR_VISIBLE_DEVICES");
	assert_string_equal(found(NULL).names[0], "4");
}

TEST(variables_of_other_vendors_do_not_count)
{
	unset_all();
	setenv("ROCR_VISIBLE_DEVICES", "0,1", 1);
	assert_int_equal(found("nvidiactl").count, 0);
	assert_int_equal(found("kfd").count, 2);
	setenv("HIP_VISIBLE_DEVICES", "0", 1);
	assert_int_equal(found("kfd").count, 2);
	unsetenv("ROCR_VISIBLE_DEVICES");
	assert_int_equal(found("kfd").count, 1);
}

TEST(word_that_is_no_gpu_ends_the_mask)
{
	static const struct {
		const char *mask;
		uint32_t count;
	} masks[] = {
		{ "", 0 }, { "NoDevFiles", 0 }, { "-1", 0 }, { "0,-1,1", 1 },
		{ "0,0", 1 }, { "2,5", 2 }, { "GPU-8a1b,MIG-2", 2 }, { "1.0,1.1,1.0", 2 },
		{ "1.,2", 0 }, { ".1", 0 }, { "0,x,2", 1 }, { "3a", 0 },
	};

	for (size_t i = 0; i < sizeof(masks) / sizeof(*masks); i++) {
		set_all(masks[i].mask);
		if (found("nvidiactl").count != masks[i].count)
			fail_msg("\"%s\" has %u GPUs", masks[i].mask, found("nvidiactl").count);
	}
}

TEST(variables_that_select_gpus_are_known)
{
	assert_true(gpus_is_variable("HIP_VISIBLE_DEVICES=0"));
	assert_true(gpus_is_variable("GPU_DEVICE_ORDINAL="));
	assert_false(gpus_is_variable("CUDA_VISIBLE_DEVICES_OF_MINE=0"));
	assert_false(gpus_is_variable("CUDA_HOME=/usr"));
}
