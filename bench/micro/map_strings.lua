-- SPDX-License-Identifier: MIT
-- bench/micro/map_strings.lua: tables with string keys. Counts 20,000 words of which 5000 differ, looks all of them
-- up again and as many that are missing, n times over.

local DISTINCT = 5000
local WORDS = 20000

local function words()
    local list = {}
    for i = 0, WORDS - 1 do list[i + 1] = "word-" .. i * 7919 % DISTINCT end
    return list
end

local all = words()
local missing = {}
for i = 0, DISTINCT - 1 do missing[i + 1] = "other-" .. i end
local sum = 0
for _ = 1, tonumber(arg[1]) do
    local counts, distinct = {}, 0
    for i = 1, #all do
        local word = all[i]
        local count = counts[word]
        if not count then
            distinct = distinct + 1
            count = 0
        end
        counts[word] = count + 1
    end
    local found = 0
    for i = 1, #all do found = found + counts[all[i]] * ((i - 1) % 7) end
    for i = 1, #missing do assert(counts[missing[i]] == nil, "it is there") end
    assert(distinct == DISTINCT, "wrong number of words")
    sum = sum + found
end
print(string.format("%d", sum))
