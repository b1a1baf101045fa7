/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank that reads a results region with any bytes changed: it finds something
 * or nothing, inside the region.
 */
#include "fuzz.h"

#include <sys/mman.h>
#include <unistd.h>

#include "libshm/records.h"
#include "libshm/region_layout.h"

#define GENERATIONS 12 /* over REGION_CHAIN_MAX: there is a merged index */
#define CHANGES_MAX 32

static void publish(struct region_writer *w, int generation)
{
	struct payload_vec blocks;
	struct payload *block, *image;
	char key[16];
	struct buf b;
	int error;

	buf_init(&b, 4096);
	for (int i = 0; i < 3; i++) {
		snprintf(key, sizeof(key), "k%d", (generation + i) % 16);
		FUZZ_CHECK(!record_append(&b, key, strlen(key), "value", 5));
	}
	block = payload_copy(b.data, b.len);
	payload_vec_init(&blocks);
	FUZZ_CHECK(block && !payload_vec_add(&blocks, block));
	image = image_build_fence(&blocks, &error);
	FUZZ_CHECK(image && !region_publish_fence(w, image->data, image->len));
	payload_unref(image);
	payload_vec_clear(&blocks);
	payload_unref(block);
	buf_free(&b);
}

/* A real one; made once, never freed. */
static const unsigned char *original(void)
{
	static unsigned char *copy;
	struct region_writer *w;
	void *map;

	if (copy)
		return copy;
	FUZZ_CHECK(!region_writer_create(&w, REGION_SIZE_MIN));
	for (int i = 0; i < GENERATIONS; i++)
		publish(w, i);
	map = mmap(NULL, REGION_SIZE_MIN, PROT_READ, MAP_SHARED,
		   region_writer_fd(w), 0);
	FUZZ_CHECK(map != MAP_FAILED);
	copy = fuzz_copy(map, REGION_SIZE_MIN, 0);
	munmap(map, REGION_SIZE_MIN);
	region_writer_destroy(w);
	return copy;
}

/* Mostly where something is: headers, views, indexes, images. */
static void change(unsigned char *map, size_t size, struct fuzz_input *in)
{
	for (int i = 0; i < CHANGES_MAX && in->left; i++) {
		size_t at = fuzz_u16(in) * (size_t)4 % size;
		uint32_t value = fuzz_u32(in);

		if (size - at >= sizeof(value))
			memcpy(map + at, &value, sizeof(value));
	}
}

static void look_up(const unsigned char *map, size_t size, const char *key)
{
	const char *value;
	size_t len;

	if (!region_lookup(map, size, key, strlen(key), &value, &len))
		return;
	FUZZ_CHECK((const unsigned char *)value >= map &&
		   (const unsigned char *)value + len < map + size);
}

/* As above, through a mapping, with the check of the header. */
static void attach(const unsigned char *map, size_t size)
{
	int fd = memfd_create("region-fuzz", MFD_CLOEXEC);
	struct region *r;
	const char *value;
	size_t len;

	FUZZ_CHECK(fd >= 0 && write(fd, map, size) == (ssize_t)size);
	if (!region_attach(&r, fd, size)) {
		region_find(r, "k1", 2, &value, &len);
		FUZZ_CHECK(!region_bytes(r, size, 1));
		FUZZ_CHECK(!region_bytes(r, UINT64_MAX, 2));
		region_detach(r);
	}
	FUZZ_CHECK(region_attach(&r, fd, size + 4096) < 0);
	close(fd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct fuzz_input in = { data, size };
	size_t len = REGION_SIZE_MIN;
	unsigned char *map = fuzz_copy(original(), len, 0);
	bool attached = fuzz_u8(&in) % 8 == 0;
	char key[16];

	change(map, len, &in);
	for (int i = 0; i < 17; i++) {
		snprintf(key, sizeof(key), "k%d", i);
		look_up(map, len, key);
	}
	if (attached)
		attach(map, len);
	free(map);
	return 0;
}
