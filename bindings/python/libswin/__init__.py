# SPDX-License-Identifier: MIT
"""Feature maps of Swin Transformers, on CPUs."""
