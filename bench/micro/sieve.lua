-- SPDX-License-Identifier: MIT
-- bench/micro/sieve.lua: a table of booleans. Primes up to 100,000 by Eratosthenes' sieve, n times over, each time
-- with one number more; the last hundred are checked by division. Prints the sum of the primes and of their counts.

local function sieve(limit)
    local composite = {}
    for i = 1, limit do composite[i] = false end
    local i = 2
    while i * i <= limit do
        if not composite[i] then
            for multiple = i * i, limit, i do composite[multiple] = true end
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

local sum = 0
for round = 0, tonumber(arg[1]) - 1 do
    local limit = 100000 + round
    local composite = sieve(limit)
    for i = 2, limit do
        if not composite[i] then sum = sum + i + 1 end
    end
    for i = limit - 100, limit do assert(composite[i] ~= is_prime(i), "sieve is wrong") end
end
print(string.format("%d", sum))
