-- SPDX-License-Identifier: MIT
-- bench/micro/sieve.lua: a table of booleans. Primes up to n by Eratosthenes' sieve; every prime of the last hundred
-- numbers is checked by division. Prints their count and sum.

local function sieve(n)
    local composite = {}
    for i = 1, n do composite[i] = false end
    local i = 2
    while i * i <= n do
        if not composite[i] then
            for multiple = i * i, n, i do composite[multiple] = true end
        end
        i = i + 1
    end
    return composite
end

local function is_prime(n)
    local divisor = 2
    while divisor * divisor <= n do
        if n % divisor == 0 then return false end
        divisor = divisor + 1
    end
    return true
end

local n = tonumber(arg[1])
local composite = sieve(n)
local count, sum = 0, 0
for i = 2, n do
    if not composite[i] then
        count = count + 1
        sum = sum + i
    end
    if i > n - 100 then assert(composite[i] ~= is_prime(i), "sieve is wrong") end
end
print(string.format("%d", sum * 1000 + count % 1000))
