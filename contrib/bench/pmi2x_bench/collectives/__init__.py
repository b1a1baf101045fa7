# SPDX-License-Identifier: BSD-3-Clause
"""What pmi2x bench collectives is made of."""
