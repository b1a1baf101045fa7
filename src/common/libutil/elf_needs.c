/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the program headers and the dynamic section of an ELF file. */
#include "libutil/elf_needs.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
#define OWN_ORDER ELFDATA2LSB
#else
#define OWN_ORDER ELFDATA2MSB
#endif

#if defined(__x86_64__)
#define OWN_MACHINE EM_X86_64
#elif defined(__aarch64__)
#define OWN_MACHINE EM_AARCH64
#elif defined(__powerpc64__)
#define OWN_MACHINE EM_PPC64
#elif defined(__riscv)
#define OWN_MACHINE EM_RISCV
#elif defined(__s390x__)
#define OWN_MACHINE EM_S390
#else
#define OWN_MACHINE EM_NONE /* not known here: any will do */
#endif

struct elf {
	elf_read *read;
	void *read_arg;
	elf_use *use;
	void *use_arg;
	Elf64_Phdr segments[ELF_SEGMENTS_MAX];
	unsigned nsegments;
	Elf64_Dyn entries[ELF_ENTRIES_MAX]; /* of the dynamic section */
	unsigned nentries;
	uint64_t strings; /* offset of their names */
};

static bool read_all(const struct elf *e, uint64_t at, void *out, size_t len)
{
	return e->read(e->read_arg, at, out, len) == len;
}

/* Neither a core nor what a compiler leaves for the linker. */
static bool can_be_loaded(const Elf64_Ehdr *head)
{
	return !memcmp(head->e_ident, ELFMAG, SELFMAG) &&
	       head->e_ident[EI_CLASS] == ELFCLASS64 &&
	       head->e_ident[EI_DATA] == OWN_ORDER &&
	       (head->e_type == ET_EXEC || head->e_type == ET_DYN) &&
	       (OWN_MACHINE == EM_NONE || head->e_machine == OWN_MACHINE);
}

static int read_segments(struct elf *e)
{
	Elf64_Ehdr head;

	if (!read_all(e, 0, &head, sizeof(head)) || !can_be_loaded(&head))
		return -ENOEXEC;
	if (head.e_phnum > ELF_SEGMENTS_MAX ||
	    (head.e_phnum && head.e_phentsize != sizeof(*e->segments)) ||
	    !read_all(e, head.e_phoff, e->segments,
		      head.e_phnum * sizeof(*e->segments)))
		return -EINVAL;
	e->nsegments = head.e_phnum;
	return 0;
}

/* The first segment of a type, or NULL. */
static const Elf64_Phdr *find_segment(const struct elf *e, uint32_t type)
{
	for (unsigned i = 0; i < e->nsegments; i++)
		if (e->segments[i].p_type == type)
			return &e->segments[i];
	return NULL;
}

/* Offset in the file of an address in memory; 0: it is not in the file. */
static uint64_t offset_of(const struct elf *e, uint64_t address)
{
	for (unsigned i = 0; i < e->nsegments; i++) {
		const Elf64_Phdr *s = &e->segments[i];

		if (s->p_type == PT_LOAD && address >= s->p_vaddr &&
		    address - s->p_vaddr < s->p_filesz)
			return s->p_offset + (address - s->p_vaddr);
	}
	return 0;
}

static int read_entries(struct elf *e)
{
	const Elf64_Phdr *s = find_segment(e, PT_DYNAMIC);
	uint64_t count = s ? s->p_filesz / sizeof(*e->entries) : 0;

	if (count > ELF_ENTRIES_MAX ||
	    (count && !read_all(e, s->p_offset, e->entries,
				count * sizeof(*e->entries))))
		return -EINVAL;
	for (; e->nentries < count; e->nentries++) {
		const Elf64_Dyn *d = &e->entries[e->nentries];

		if (d->d_tag == DT_NULL)
			break;
		if (d->d_tag == DT_STRTAB)
			e->strings = offset_of(e, d->d_un.d_ptr);
	}
	return 0;
}

/* 1: go on; 0: enough; -EINVAL. */
static int use_name(const struct elf *e, enum elf_need need, uint64_t at)
{
	char name[ELF_NAME_MAX];
	size_t len = e->read(e->read_arg, at, name, sizeof(name));

	if (!len || !memchr(name, '\0', len))
		return -EINVAL;
	return e->use(e->use_arg, need, name);
}

static int use_loader(const struct elf *e)
{
	const Elf64_Phdr *s = find_segment(e, PT_INTERP);

	return s ? use_name(e, ELF_NEEDS_LOADER, s->p_offset) : 1;
}

static int use_entry(const struct elf *e, const Elf64_Dyn *d)
{
	enum elf_need need = ELF_NEEDS_LIBRARY;

	if (d->d_tag == DT_AUDIT || d->d_tag == DT_DEPAUDIT)
		need = ELF_NEEDS_AUDITOR;
	else if (d->d_tag != DT_NEEDED)
		return 1;
	if (!e->strings)
		return -EINVAL;
	return use_name(e, need, e->strings + d->d_un.d_val);
}

int elf_needs(elf_read *read, void *read_arg, elf_use *use, void *use_arg)
{
	struct elf e = { .read = read, .read_arg = read_arg, .use = use,
			 .use_arg = use_arg };
	int rc = read_segments(&e);
	int more;

	rc = rc ? rc : read_entries(&e);
	if (rc)
		return rc;
	more = use_loader(&e);
	for (unsigned i = 0; more > 0 && i < e.nentries; i++)
		more = use_entry(&e, &e.entries[i]);
	return more < 0 ? more : 0;
}
