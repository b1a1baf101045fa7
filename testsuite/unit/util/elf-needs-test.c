/* SPDX-License-Identifier: BSD-3-Clause */
/* Needs that ELF files declare: this test's own, and damaged ones. */
#include "unit.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>

#include "libutil/elf_needs.h"

struct file {
	unsigned char *bytes;
	size_t len;
};

struct found {
	unsigned loaders, libraries, auditors;
	char last[ELF_NAME_MAX];
	unsigned most; /* enough after this number */
};

static size_t from_memory(void *arg, uint64_t at, void *out, size_t len)
{
	const struct file *f = arg;

	if (at >= f->len)
		return 0;
	if (len > f->len - at)
		len = f->len - at;
	memcpy(out, f->bytes + at, len);
	return len;
}

static bool count(void *arg, enum elf_need need, const char *name)
{
	struct found *f = arg;

	f->loaders += need == ELF_NEEDS_LOADER;
	f->libraries += need == ELF_NEEDS_LIBRARY;
	f->auditors += need == ELF_NEEDS_AUDITOR;
	snprintf(f->last, sizeof(f->last), "%s", name);
	return f->loaders + f->libraries < f->most;
}

static int needs(struct file *f, struct found *found, unsigned most)
{
	memset(found, 0, sizeof(*found));
	found->most = most;
	return elf_needs(from_memory, f, count, found);
}

static int read_self(void **state)
{
	static struct file f;
	FILE *from = fopen("/proc/self/exe", "r");

	f.bytes = malloc(64 << 20);
	assert_non_null(from);
	assert_non_null(f.bytes);
	f.len = fread(f.bytes, 1, 64 << 20, from);
	fclose(from);
	*state = &f;
	return 0;
}

static int free_self(void **state)
{
	free(((struct file *)*state)->bytes);
	return 0;
}

TEST(finds_the_loader_and_the_libraries)
{
	struct found found;

	assert_int_equal(needs(*state, &found, 1000), 0);
	assert_int_equal(found.loaders, 1);
	assert_true(found.libraries >= 2); /* cmocka and C's */
	assert_int_equal(found.auditors, 0);
	assert_non_null(strstr(found.last, ".so"));
}

TEST(stops_when_that_is_enough)
{
	struct found found;

	assert_int_equal(needs(*state, &found, 1), 0);
	assert_int_equal(found.loaders + found.libraries, 1);
	assert_int_equal(needs(*state, &found, 2), 0);
	assert_int_equal(found.loaders + found.libraries, 2);
}

TEST(refuses_what_is_no_program)
{
	char text[4096] = "#!/bin/sh\n";
	struct file script = { (unsigned char *)text, sizeof(text) };
	struct found found;

	assert_int_equal(needs(&script, &found, 9), -ENOEXEC);
	script.len = 0;
	assert_int_equal(needs(&script, &found, 9), -ENOEXEC);
}

/* Each byte of the headers and the dynamic section, and each length. */
TEST(survives_damage)
{
	const struct file *self = *state;
	struct file copy = { malloc(self->len), self->len };
	struct found found;

	assert_non_null(copy.bytes);
	memcpy(copy.bytes, self->bytes, self->len);
	for (size_t i = 0; i < 2048 && i < self->len; i++)
		for (int bit = 0; bit < 8; bit++) {
			copy.bytes[i] ^= 1u << bit;
			needs(&copy, &found, 9999);
			copy.bytes[i] ^= 1u << bit;
		}
	for (copy.len = 0; copy.len < 4096; copy.len++)
		assert_true(needs(&copy, &found, 9999) < 0);
	free(copy.bytes);
}

TEST(knows_its_limits)
{
	const struct file *self = *state;
	struct file copy = { malloc(self->len), self->len };
	struct found found;
	Elf64_Ehdr *head = (Elf64_Ehdr *)copy.bytes;

	assert_non_null(copy.bytes);
	memcpy(copy.bytes, self->bytes, self->len);
	head->e_phnum = ELF_SEGMENTS_MAX + 1;
	assert_int_equal(needs(&copy, &found, 9), -EINVAL);
	head->e_phnum = 0;
	assert_int_equal(needs(&copy, &found, 9), 0);
	assert_int_equal(found.libraries, 0);
	head->e_ident[EI_CLASS] = ELFCLASS32;
	assert_int_equal(needs(&copy, &found, 9), -ENOEXEC);
	free(copy.bytes);
}

TEST(refuses_what_cannot_be_loaded_here)
{
	const struct file *self = *state;
	Elf64_Ehdr *head = (Elf64_Ehdr *)self->bytes;
	const Elf64_Ehdr whole = *head;
	struct file file = *self;
	struct found found;

	head->e_machine = EM_68K;
	assert_int_equal(needs(&file, &found, 9), -ENOEXEC);
	*head = whole;
	head->e_type = ET_REL;
	assert_int_equal(needs(&file, &found, 9), -ENOEXEC);
	head->e_type = ET_CORE;
	assert_int_equal(needs(&file, &found, 9), -ENOEXEC);
	*head = whole;
	assert_int_equal(needs(&file, &found, 9), 0);
}

int main(void)
{
	return unit_run(NULL, read_self, free_self);
}
