-- SPDX-License-Identifier: MIT
-- bench/micro/mandelbrot.lua: float arithmetic in local variables. Counts, over an n by n grid of c, the points that
-- stay within 2 for 50 rounds of z = z * z + c, and all the rounds. The picture must mirror at the real axis.

local ROUNDS_MAX = 50

local function rounds(cr, ci)
    local zr, zi, tr, ti = 0.0, 0.0, 0.0, 0.0
    local round = 0
    while round < ROUNDS_MAX and tr + ti <= 4.0 do
        zi = 2.0 * zr * zi + ci
        zr = tr - ti + cr
        tr = zr * zr
        ti = zi * zi
        round = round + 1
    end
    return round
end

local function row(n, y)
    local ci = 2.0 * y / n - 1.0
    local sum = 0
    for x = 0, n - 1 do sum = sum + rounds(2.0 * x / n - 1.5, ci) end
    return sum
end

local n = tonumber(arg[1]) -- a multiple of 4, so that the two rows below have exact coordinates
local sum = 0
for y = 0, n - 1 do sum = sum + row(n, y) end
assert(row(n, n / 4) == row(n, n - n / 4), "the picture is not symmetric")
print(string.format("%d", sum))
