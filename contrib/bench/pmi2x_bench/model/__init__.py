# SPDX-License-Identifier: BSD-3-Clause
"""Fits the costs of the simulator to real collectives, and predicts others."""
