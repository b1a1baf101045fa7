# SPDX-License-Identifier: BSD-3-Clause
"""What pmi2x trace is made of."""
