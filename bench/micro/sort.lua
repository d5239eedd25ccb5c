-- SPDX-License-Identifier: MIT
-- bench/micro/sort.lua: the library's sort over 20,000 ints, as many floats and 5000 strings in no order, n times
-- over. Each result is checked to rise.

local COUNT = 20000
local WORDS = 5000

local function is_rising(items)
    for i = 2, #items do
        if items[i] < items[i - 1] then return false end
    end
    return true
end

local sum = 0
for round = 0, tonumber(arg[1]) - 1 do
    local seed = 42 + round
    local ints, floats, words = {}, {}, {}
    for i = 1, COUNT do
        seed = (seed * 48271) % 2147483647
        ints[i] = seed % 1000000
        floats[i] = seed * 0.001
        if i <= WORDS then words[i] = "key-" .. seed % 100000 end
    end
    table.sort(ints)
    table.sort(floats)
    table.sort(words)
    assert(is_rising(ints) and is_rising(floats) and is_rising(words), "not in order")
    sum = sum + ints[COUNT / 2 + 1] + math.floor(floats[11]) + #words[1]
end
print(string.format("%d", sum))
