-- SPDX-License-Identifier: MIT
-- bench/micro/string_build.lua: a long text made of small pieces, ints among them: 1000 lines, n times over.

local NAMES = {"alpha", "beta", "gamma", "delta", "한글"}

local total = 0
for round = 0, tonumber(arg[1]) - 1 do
    local parts = {}
    local expected = 0
    for i = 0, 999 do
        local name = NAMES[i % 5 + 1]
        parts[i + 1] = "line " .. i .. ": " .. name .. " = " .. i * round .. ";\n"
        expected = expected + #name + 12
    end
    local out = table.concat(parts)
    assert(out:sub(1, 7) == "line 0:" and #out >= expected, "the text is wrong")
    total = total + #out
end
print(string.format("%d", total))
