#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
#
# tests/sim/schedules_slow_test.py: 20,000 schedules behind those of schedules_test.py. SIM_FIRST=N takes others.

import os
import sys

import schedules_test

sys.exit(schedules_test.run(20000, int(os.environ.get("SIM_FIRST", "100001"))))
