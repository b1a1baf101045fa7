/* SPDX-License-Identifier: BSD-3-Clause */
/* The error codes of PMI: numbers that answers to ranks carry. */
#pragma once

enum pmi_rc {
	PMI_RC_OK = 0,
	PMI_RC_FAIL = -1,
	PMI_RC_INIT = 1,
	PMI_RC_NOMEM = 2,
	PMI_RC_INVALID_ARG = 3,
	PMI_RC_INVALID_KEY = 4,
	PMI_RC_INVALID_KEY_LENGTH = 5,
	PMI_RC_INVALID_VAL = 6,
	PMI_RC_INVALID_VAL_LENGTH = 7,
	PMI_RC_INVALID_LENGTH = 8,
	PMI_RC_INVALID_ARGS = 10,
	PMI_RC_INVALID_SIZE = 13,
	PMI_RC_OTHER = 14,
};
