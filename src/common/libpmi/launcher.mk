# SPDX-License-Identifier: BSD-3-Clause
libpmi_launcher_sources =
