/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages that clients send, put together from what the input chooses. */
#pragma once

#include "fuzz.h"

/* "%" stands for a value that the input chooses. */
static const char *const fuzz_pmi1_lines[] = {
	"cmd=init pmi_version=1 pmi_subversion=1\n",
	"cmd=init pmi_version=2 pmi_subversion=0\n",
	"cmd=get_maxes\n",
	"cmd=get_universe_size\n",
	"cmd=get_appnum\n",
	"cmd=get_my_kvsname\n",
	"cmd=put kvsname=17.2 key=% value=%\n",
	"cmd=get kvsname=17.2 key=%\n",
	"cmd=barrier_in\n",
	"cmd=barrier_in\n",
	"cmd=finalize\n",
	"cmd=publish_name service=% port=%\n",
	"cmd=lookup_name service=%\n",
	"cmd=unpublish_name service=%\n",
	"cmd=create_kvs\n",
	"cmd=destroy_kvs kvsname=%\n",
	"cmd=getbyidx kvsname=17.2 idx=%\n",
	"cmd=abort exitcode=%\n",
	("mcmd=spawn\nnprocs=2\nexecname=%\ntotspawns=1\nspawnssofar=1\n"
	 "argcnt=1\narg1=%\npreput_num=0\ninfo_num=0\nendcmd\n"),
	"cmd=barrier_in group=0,5:1\n",
	"cmd=barrier_in group=4,1,0:%\n",
	"cmd=barrier_in group=NODE:1\n",
	"cmd=barrier_in group=WORLD:1\n",
	"cmd=barrier_in group=%:%\n",
};

static const char *const fuzz_pmi2_bodies[] = {
	"cmd=fullinit;pmijobid=17.2;pmirank=%;threaded=TRUE;",
	"cmd=fullinit;pmi2x=%;pmi2x-region=%;pmi2x-slots=%;",
	"cmd=kvs-put;thrid=%;key=%;value=%;",
	"cmd=kvs-fence;thrid=%;",
	"cmd=kvs-fence;",
	"cmd=kvs-get;jobid=17.2;srcid=%;key=%;",
	"cmd=info-putnodeattr;key=%;value=%;",
	"cmd=info-getnodeattr;key=%;wait=TRUE;",
	"cmd=info-getnodeattr;key=%;wait=FALSE;",
	"cmd=info-getjobattr;key=%;",
	"cmd=info-getjobattr;key=PMI_process_mapping;",
	"cmd=name-publish;name=%;port=%;",
	"cmd=name-lookup;name=%;",
	"cmd=name-unpublish;name=%;",
	"cmd=job-getid;",
	"cmd=job-connect;jobid=%;",
	"cmd=job-disconnect;jobid=%;",
	"cmd=ring;ring-count=%;ring-left=%;ring-right=%;",
	("cmd=spawn;ncmds=1;preputcount=1;ppkey0=%;ppval0=%;subcmd=%;"
	 "maxprocs=2;argc=1;argv0=%;infokeycount=1;infokey0=%;infoval0=%;"),
	"cmd=finalize;thrid=%;",
	"cmd=abort;isworld=FALSE;msg=%;",
	"cmd=abort;isworld=TRUE;msg=%;",
	"cmd=pmi2x-put;records=%;",
	"cmd=pmi2x-fence;thrid=%;records=%;",
	"cmd=pmi2x-fence;records=;",
	"cmd=pmi2x-allgather;thrid=%;value=%;stride=0;",
	"cmd=pmi2x-allgather;value=%;stride=8;done=%;",
	"cmd=pmi2x-allgather;value=%;stride=%;",
	"cmd=pmi2x-read;offset=%;length=%;",
};

/* A record of libshm with the key "k" and the value "v". */
#define FUZZ_PMI_RECORD "\1\0\0\0\1\0\0\0k\0v\0"

/* One of a few values, or bytes of the input. */
static inline size_t fuzz_pmi_value(struct fuzz_input *in, char *out,
				    size_t room)
{
	static const char *const values[] = {
		"", "a", "0", "1", "-1", "64", "4096", "4294967295", "k",
		"17.2", "x=y", "a b", ";;", "99999999999999999999",
	};
	const size_t n = sizeof(values) / sizeof(values[0]);
	uint8_t what = fuzz_u8(in);
	const char *text = values[what % n];
	const uint8_t *at;
	size_t len = strlen(text);

	if (what >= 128 && what < 144) {
		text = FUZZ_PMI_RECORD;
		len = sizeof(FUZZ_PMI_RECORD) - 1;
	} else if (what >= 144) {
		len = fuzz_bytes(in, what - 144, &at);
		text = (const char *)at;
	}
	len = len < room ? len : room;
	if (len)
		memcpy(out, text, len);
	return len;
}

static inline size_t fuzz_pmi_fill(struct fuzz_input *in, const char *form,
				   char *out, size_t room)
{
	size_t len = 0;

	for (; *form && len < room; form++)
		if (*form == '%')
			len += fuzz_pmi_value(in, out + len, room - len);
		else
			out[len++] = *form;
	return len;
}

/* Write a message of either protocol into `out`; returns its length. */
static inline size_t fuzz_pmi_message(struct fuzz_input *in, char *out,
				      size_t room)
{
	const size_t n1 = sizeof(fuzz_pmi1_lines) / sizeof(char *);
	const size_t n2 = sizeof(fuzz_pmi2_bodies) / sizeof(char *);
	size_t which = fuzz_u8(in) % (n1 + n2), len;
	char header[16];

	if (which < n1)
		return fuzz_pmi_fill(in, fuzz_pmi1_lines[which], out, room);
	len = fuzz_pmi_fill(in, fuzz_pmi2_bodies[which - n1], out + 6,
			    room - 6);
	snprintf(header, sizeof(header), "%-6zu", len);
	memcpy(out, header, 6);
	return len + 6;
}
