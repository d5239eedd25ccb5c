# SPDX-License-Identifier: MIT
#
# bench/micro/empty.py: nothing but a first line: what starting costs.

print(0)
