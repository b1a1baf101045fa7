/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs a fuzz target over the files that are named, without a fuzzer. */
#include "fuzz.h"

#define INPUT_MAX ((size_t)1 << 22)

static int replay(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *buffer, *input;
	size_t size;

	if (!f) {
		perror(path);
		return 1;
	}
	buffer = malloc(INPUT_MAX);
	FUZZ_CHECK(buffer);
	size = fread(buffer, 1, INPUT_MAX, f);
	fclose(f);
	input = fuzz_copy(buffer, size, 0);
	free(buffer);
	LLVMFuzzerTestOneInput(input, size);
	free(input);
	return 0;
}

int main(int argc, char **argv)
{
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= replay(argv[i]);
	printf("%s: %d inputs\n", argv[0], argc - 1);
	return failed;
}
