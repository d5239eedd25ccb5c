-- SPDX-License-Identifier: MIT
-- bench/micro/loops.lua: the bare cost of loops. Sums of ints and of floats, counted by `for` and by `while`, against
-- their closed forms.

local function sum_ints(n)
    local sum = 0
    for i = 0, n - 1 do sum = sum + i end
    return sum
end

local function sum_floats(n)
    local sum, x = 0.0, 0.0
    local limit = n + 0.0
    while x < limit do
        sum = sum + x
        x = x + 1.0
    end
    return sum
end

local function count_odd(n)
    local count, i = 0, 0
    while i < n do
        if i % 2 == 1 then count = count + 1 end
        i = i + 1
    end
    return count
end

local n = tonumber(arg[1])
local ints, floats, odd = sum_ints(n), sum_floats(n), count_odd(n)
assert(ints == n * (n - 1) / 2 and floats == ints and odd == (n - n % 2) / 2, "a sum is wrong")
print(string.format("%d", ints + odd))
