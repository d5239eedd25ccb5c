-- SPDX-License-Identifier: MIT
-- bench/micro/empty.lua: nothing but a first line: what starting costs.

print(0)
