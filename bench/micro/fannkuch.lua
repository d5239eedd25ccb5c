-- SPDX-License-Identifier: MIT
-- bench/micro/fannkuch.lua: small tables of ints. Over all permutations of n: how many flips of the first k until 1
-- is in front, at most; and a checksum of all flips. Checked against the published maxima.

local function flips_of(permutation, p, n)
    for i = 1, n do p[i] = permutation[i] end
    local flips = 0
    while true do
        local first = p[1]
        if first == 1 then return flips end
        local low, high = 1, first
        while low < high do
            p[low], p[high] = p[high], p[low]
            low = low + 1
            high = high - 1
        end
        flips = flips + 1
    end
end

local function fannkuch(n)
    local permutation, counts, scratch = {}, {}, {}
    for i = 1, n do permutation[i], counts[i], scratch[i] = i, 0, 0 end
    local flips_max, checksum, sign = 0, 0, 1
    local r = n
    while true do
        while r > 1 do
            counts[r] = r
            r = r - 1
        end
        local flips = flips_of(permutation, scratch, n)
        if flips > flips_max then flips_max = flips end
        checksum = checksum + sign * flips
        sign = -sign
        while true do -- the next permutation: rotate the first r + 1
            if r == n then return flips_max, checksum end
            local first = permutation[1]
            for i = 1, r do permutation[i] = permutation[i + 1] end
            permutation[r + 1] = first
            counts[r + 1] = counts[r + 1] - 1
            if counts[r + 1] > 0 then break end
            r = r + 1
        end
    end
end

local n = tonumber(arg[1])
local flips_max, checksum = fannkuch(n)
local maxima = {0, 1, 2, 4, 7, 10, 16, 22, 30, 38, 51}
assert(maxima[n] == nil or flips_max == maxima[n], "wrong number of flips")
print(string.format("%d", checksum * 100 + flips_max))
