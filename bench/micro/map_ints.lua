-- SPDX-License-Identifier: MIT
-- bench/micro/map_ints.lua: tables with scattered integer keys. 20,000 entries put in, looked up, half of them
-- counted up, and as many missing ones asked for, n times over.

local ENTRIES, HALF = 20000, 10000
local MODULUS = 2147483647

local function key(i) return i * 48271 % MODULUS end

local sum = 0
for _ = 1, tonumber(arg[1]) do
    local entries = {}
    for i = 0, ENTRIES - 1 do entries[key(i)] = i end
    for i = 0, HALF - 1 do
        local k = key(2 * i)
        entries[k] = entries[k] + 1
    end
    local found = 0
    for i = 0, ENTRIES - 1 do found = found + entries[key(i)] end
    for i = ENTRIES, 2 * ENTRIES - 1 do assert(entries[key(i)] == nil, "it is there") end
    assert(found == ENTRIES * (ENTRIES - 1) / 2 + HALF, "the sum is wrong")
    sum = sum + found + ENTRIES
end
print(string.format("%d", sum))
