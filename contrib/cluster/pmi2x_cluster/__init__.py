# SPDX-License-Identifier: BSD-3-Clause
"""A test cluster of N nodes on one machine."""
