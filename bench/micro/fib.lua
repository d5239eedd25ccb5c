-- SPDX-License-Identifier: MIT
-- bench/micro/fib.lua: calls. The n-th Fibonacci number by its definition, checked against the sum from below.

local function fib(n)
    if n < 2 then return n end
    return fib(n - 1) + fib(n - 2)
end

local function from_below(n)
    local a, b = 0, 1
    for _ = 1, n do a, b = b, a + b end
    return a
end

local n = tonumber(arg[1])
local result = fib(n)
assert(result == from_below(n), "fib is wrong")
print(string.format("%d", result))
