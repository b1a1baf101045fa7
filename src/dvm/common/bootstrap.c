/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads the lines of text that a daemon gets when it is started. */
#include "dvm/common/bootstrap.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "dvm/core/dvm_msg.h"
#include "dvm/core/ledger.h"
#include "libutil/decimal.h"

#define LINE_MAX_BYTES (WELCOME_CODE_MAX + 16)

void welcome_sockaddr(struct sockaddr_storage *out, const struct dvm_address *a)
{
	static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
	struct sockaddr_in *v4 = (struct sockaddr_in *)out;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)out;

	memset(out, 0, sizeof(*out));
	if (!memcmp(a->ip, mapped, sizeof(mapped))) {
		v4->sin_family = AF_INET;
		v4->sin_port = htons(a->port);
		memcpy(&v4->sin_addr, a->ip + sizeof(mapped), sizeof(v4->sin_addr));
	} else {
		v6->sin6_family = AF_INET6;
		v6->sin6_port = htons(a->port);
		memcpy(&v6->sin6_addr, a->ip, sizeof(v6->sin6_addr));
	}
}

static void put_head(FILE *out, const struct sockaddr_storage *a)
{
	char text[INET6_ADDRSTRLEN] = "";
	const struct sockaddr_in *v4 = (const struct sockaddr_in *)a;
	const struct sockaddr_in6 *v6 = (const struct sockaddr_in6 *)a;
	bool six = a->ss_family == AF_INET6;

	inet_ntop(a->ss_family, six ? (const void *)&v6->sin6_addr :
				      (const void *)&v4->sin_addr,
		  text, sizeof(text));
	fprintf(out, "head %s %u\n", text,
		ntohs(six ? v6->sin6_port : v4->sin_port));
}

char *welcome_format(const struct welcome *w)
{
	char secret[SECRET_TEXT_BYTES], *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);

	if (!out)
		return NULL;
	secret_format(&w->secret, secret);
	fprintf(out, "pmi2x-dvm %d\ndvm %s\nsecret %s\n", DVM_VERSION, w->dvm,
		secret);
	for (uint32_t i = 0; i < w->nheads; i++)
		put_head(out, &w->heads[i]);
	fprintf(out, "within %u\nfirst %u\norphan %u\npeer %u\nlease %u\ngrace %u\n", w->within_ms,
		w->first, w->orphan_s, w->peer_ms, w->lease_ms, w->grace_ms);
	fprintf(out, "width %u\nrelays %u\n", w->width, w->relays);
	fprintf(out, "slots %s\ngpus %s\nshare %u\n", w->slots, w->gpus, w->share);
	fprintf(out, *w->preload ? "preload %s\n\n" : "%s\n", w->preload);
	explicit_bzero(secret, sizeof(secret));
	if (fclose(out) == 0)
		return text;
	free(text);
	return NULL;
}

static bool take_head(struct welcome *w, char *value)
{
	struct sockaddr_storage *a = &w->heads[w->nheads];
	struct sockaddr_in *v4 = (struct sockaddr_in *)a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)a;
	char *port = strchr(value, ' ');

	if (!port || w->nheads == WELCOME_HEADS_MAX)
		return false;
	*port++ = '\0';
	memset(a, 0, sizeof(*a));
	if (inet_pton(AF_INET, value, &v4->sin_addr) == 1) {
		a->ss_family = AF_INET;
		v4->sin_port = htons((uint16_t)atoi(port));
	} else if (inet_pton(AF_INET6, value, &v6->sin6_addr) == 1) {
		a->ss_family = AF_INET6;
		v6->sin6_port = htons((uint16_t)atoi(port));
	} else {
		return false;
	}
	w->nheads++;
	return true;
}

static bool take_text(char *out, size_t size, const char *value)
{
	if (strlen(value) >= size)
		return false;
	strcpy(out, value);
	return true;
}

/* Lines that a later version adds are skipped. */
static bool take_line(struct welcome *w, const char *word, char *value)
{
	if (!strcmp(word, "dvm"))
		return take_text(w->dvm, sizeof(w->dvm), value);
	if (!strcmp(word, "secret"))
		return !secret_parse(&w->secret, value);
	if (!strcmp(word, "head"))
		return take_head(w, value);
	if (!strcmp(word, "first"))
		return decimal_u32(value, 0, LEDGER_NODES_MAX, &w->first);
	if (!strcmp(word, "share"))
		return decimal_u32(value, 0, 1, &w->share);
	if (!strcmp(word, "orphan"))
		return decimal_u32(value, 0, INT32_MAX, &w->orphan_s);
	if (!strcmp(word, "within"))
		return decimal_u32(value, 0, INT32_MAX, &w->within_ms);
	if (!strcmp(word, "peer"))
		return decimal_u32(value, 0, INT32_MAX, &w->peer_ms);
	if (!strcmp(word, "lease"))
		return decimal_u32(value, 0, INT32_MAX, &w->lease_ms);
	if (!strcmp(word, "grace"))
		return decimal_u32(value, 0, INT32_MAX, &w->grace_ms);
	if (!strcmp(word, "width"))
		return decimal_u32(value, 0, LEDGER_NODES_MAX, &w->width);
	if (!strcmp(word, "relays"))
		return decimal_u32(value, 0, LEDGER_NODES_MAX, &w->relays);
	if (!strcmp(word, "slots"))
		return take_text(w->slots, sizeof(w->slots), value);
	if (!strcmp(word, "preload"))
		return take_text(w->preload, sizeof(w->preload), value);
	if (!strcmp(word, "gpus"))
		return take_text(w->gpus, sizeof(w->gpus), value);
	return true;
}

/* Read a line without its newline; an empty line, or none, is the end. */
static char *next_line(char line[LINE_MAX_BYTES], FILE *in)
{
	if (!fgets(line, LINE_MAX_BYTES, in))
		return NULL;
	line[strcspn(line, "\n")] = '\0';
	return *line ? line : NULL;
}

int welcome_read(struct welcome *w, FILE *in)
{
	char line[LINE_MAX_BYTES], *value;
	int rc = 0;

	memset(w, 0, sizeof(*w));
	setvbuf(in, NULL, _IONBF, 0); /* the secret would stay in a buffer */
	if (!next_line(line, in) || strncmp(line, "pmi2x-dvm ", 10))
		return -EPROTO;
	if (atoi(line + 10) != DVM_VERSION)
		return -EPROTONOSUPPORT;
	while (!rc && next_line(line, in)) {
		value = strchr(line, ' ');
		if (value)
			*value++ = '\0';
		rc = value && take_line(w, line, value) ? 0 : -EPROTO;
	}
	explicit_bzero(line, sizeof(line));
	return rc ? rc : w->nheads && *w->dvm && *w->slots && *w->gpus ? 0 :
									 -EPROTO;
}
