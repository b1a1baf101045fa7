/* SPDX-License-Identifier: BSD-3-Clause */
/* The address of an element on the fabric, as text for PMI. */
#pragma once

#include "transport.h"
#include "verbs_port.h"

struct verbs_address {
	enum verbs_fabric fabric;
	enum ibv_mtu mtu;
	uint16_t lid;
	union ibv_gid gid;
	uint32_t ready_qpn, qkey;   /* of the datagram queue pair */
	uint32_t qpn[SIDES];        /* 24 bits */
	uint32_t first_psn[SIDES];  /* of what this element sends, 24 bits */
};

/* 103 characters and a NUL, all printable. */
void verbs_address_print(const struct verbs_address *a,
			 char out[TRANSPORT_ADDRESS_MAX]);

/*
 * 0, or -EINVAL for anything that verbs_address_print of this version has not
 * made: a sum over all bytes finds what is truncated or changed.
 */
int verbs_address_parse(struct verbs_address *a, const char *text);
