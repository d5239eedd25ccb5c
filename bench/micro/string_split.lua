-- SPDX-License-Identifier: MIT
-- bench/micro/string_split.lua: 1000 lines of eight fields taken apart, n times over. Checked: the number of fields,
-- and that joining gives the text again.

local find, sub = string.find, string.sub

local function split(text, separator)
    local parts, count, at = {}, 0, 1
    while true do
        local first, last = find(text, separator, at, true)
        count = count + 1
        if not first then
            parts[count] = sub(text, at)
            return parts
        end
        parts[count] = sub(text, at, first - 1)
        at = last + 1
    end
end

local function make_table()
    local out = {}
    for i = 0, 999 do
        out[i + 1] = i .. ",name-" .. i .. ",10.0." .. i % 256 .. ".1,GET,/path/" .. i .. "/index.html,200,,end\n"
    end
    return table.concat(out)
end

local rounds = tonumber(arg[1])
local input = make_table()
local fields, bytes = 0, 0
for round = 1, rounds do
    local lines = split(input, "\n")
    for i = 1, #lines do
        local line = lines[i]
        if line ~= "" then
            local parts = split(line, ",")
            fields = fields + #parts
            bytes = bytes + #parts[5]
            if round == 1 then assert(table.concat(parts, ",") == line, "join does not undo split") end
        end
    end
end
assert(fields == rounds * 8000, "wrong number of fields")
print(string.format("%d", fields * 1000 + bytes))
