-- SPDX-License-Identifier: MIT
-- bench/micro/spectral_norm.lua: float arithmetic with a division in a small function. The largest singular value of
-- an n by n corner of an infinite matrix, in units of 1e-9.

local function entry(i, j)
    local ij = i + j -- indexes from 1
    return 1.0 / ((ij - 1) * (ij - 2) * 0.5 + i)
end

local function multiply(v)
    local out = {}
    for i = 1, #v do
        local sum = 0.0
        for j = 1, #v do sum = sum + entry(i, j) * v[j] end
        out[i] = sum
    end
    return out
end

local function multiply_transposed(v)
    local out = {}
    for i = 1, #v do
        local sum = 0.0
        for j = 1, #v do sum = sum + entry(j, i) * v[j] end
        out[i] = sum
    end
    return out
end

local function dot(a, b)
    local sum = 0.0
    for i = 1, #a do sum = sum + a[i] * b[i] end
    return sum
end

local u, v = {}, nil
for i = 1, tonumber(arg[1]) do u[i] = 1.0 end
for _ = 1, 10 do
    v = multiply_transposed(multiply(u))
    u = multiply_transposed(multiply(v))
end
local norm = math.sqrt(dot(u, v) / dot(v, v))
assert(norm >= 1.2 and norm <= 1.2743, "no corner has that norm")
print(string.format("%d", math.floor(norm * 1e9)))
