/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Shared memory without memory, or on a system that refuses: whichever call
 * fails, an error comes back or the work goes on without; what was published
 * stays readable, and nothing is left behind.
 */
#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>

#include "libshm/image.h"
#include "libshm/records.h"
#include "libshm/region.h"
#include "libshm/slots.h"
#include "refusal.h"

#define GENERATIONS 12 /* over REGION_CHAIN_MAX: indexes are merged */

static int open_descriptors(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* ---- images; made while nothing is refused ---- */

static struct payload *fence_image(void)
{
	struct payload *block, *image;
	struct payload_vec blocks;
	struct buf b;
	int error = 0;

	buf_init(&b, 4096);
	payload_vec_init(&blocks);
	if (record_append(&b, "key", 3, "value", 5)) {
		buf_free(&b);
		return NULL;
	}
	block = payload_copy(b.data, b.len);
	buf_free(&b);
	image = block && !payload_vec_add(&blocks, block) ?
			image_build_fence(&blocks, &error) : NULL;
	payload_vec_clear(&blocks);
	payload_unref(block);
	return image;
}

static struct payload *gather_image(void)
{
	struct payload *part = gather_contribution(NULL, "value", 5), *image = NULL;
	struct payload_vec parts;
	int error = 0;

	payload_vec_init(&parts);
	if (part && !payload_vec_add(&parts, part) &&
	    !payload_vec_add(&parts, part))
		image = image_build_gather(&parts, 2, NULL, &error);
	payload_vec_clear(&parts);
	payload_unref(part);
	return image;
}

static struct payload *fence, *gather;

static int make_images(void **state)
{
	fence = fence_image();
	gather = gather_image();
	return fence && gather ? 0 : -1;
}

static int free_images(void **state)
{
	payload_unref(fence);
	payload_unref(gather);
	return 0;
}

/* ---- what an agent and a rank do ---- */

static void use_as_rank(struct region_writer *w, bool published)
{
	const char *value;
	struct region *r;
	size_t len;
	int rc = region_attach(&r, region_writer_fd(w), region_writer_size(w));

	assert_true(rc <= 0);
	if (rc)
		return;
	assert_int_equal(region_find(r, "key", 3, &value, &len), published);
	region_detach(r);
}

static void use_slots(struct region_writer *w)
{
	struct slots *slots = NULL;
	int rc = slots_create(&slots, w, 3);

	assert_true(rc <= 0);
	if (!rc) {
		slots_reply(slots, 2, 0, 1, 0, 0, 0, NULL);
		slots_destroy(slots);
	}
}

static void use_as_agent(struct region_writer *w)
{
	uint64_t offset, bytes, at = 0;
	bool published = false;
	void *place;

	use_slots(w);
	for (int i = 0; i < GENERATIONS; i++) {
		int rc = region_publish_fence(w, fence->data, fence->len);

		assert_true(rc == 0 || rc == -ENOSPC);
		published |= rc == 0;
		rc = region_publish_gather(w, gather->data, gather->len, i % 3,
					   &offset, &bytes);
		assert_true(rc == 0 || rc == -ENOSPC);
		if (!rc && i % 2)
			region_release(w, offset);
	}
	(void)region_reserve(w, 100, &at, &place);
	use_as_rank(w, published);
}

static void history(void)
{
	struct region_writer *w = NULL;
	int rc = region_writer_create(&w, REGION_SIZE_MIN);

	assert_true(rc <= 0);
	if (!rc) {
		use_as_agent(w);
		region_writer_destroy(w);
	}
}

/* Every call of `what` in turn; how many there are. */
static uint32_t refuse_each(enum refusal what, bool for_good,
			    void (*run)(void))
{
	int before = open_descriptors();
	uint32_t nth = 0, count;

	do {
		refusal_arm(what, ++nth, for_good);
		run();
		count = refusal_disarm();
		assert_int_equal(open_descriptors(), before);
	} while (count >= nth);
	return nth;
}

TEST(survives_without_memory)
{
	assert_true(refuse_each(REFUSE_MEMORY, false, history) > 3);
	assert_true(refuse_each(REFUSE_MEMORY, true, history) > 3);
}

TEST(survives_a_system_that_refuses)
{
	assert_true(refuse_each(REFUSE_SYSTEM, false, history) > 20);
	assert_true(refuse_each(REFUSE_SYSTEM, true, history) > 20);
}

static void build(void)
{
	payload_unref(fence_image());
	payload_unref(gather_image());
}

TEST(images_need_memory)
{
	assert_true(refuse_each(REFUSE_MEMORY, false, build) > 5);
	assert_true(refuse_each(REFUSE_MEMORY, true, build) > 3);
}

int main(void)
{
	return unit_run(NULL, make_images, free_images);
}
