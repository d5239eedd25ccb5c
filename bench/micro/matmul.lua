-- SPDX-License-Identifier: MIT
-- bench/micro/matmul.lua: tables of tables of floats. The product of two n by n matrices, the second one transposed
-- first; checked against the row sums, (A B) 1 = A (B 1). All entries are small halves, so every sum is exact.

local function matrix(n, seed)
    local rows = {}
    for i = 1, n do
        local row = {}
        for j = 1, n do row[j] = (((i - 1) * 7 + (j - 1) * seed) % 17 - 8) * 0.5 end
        rows[i] = row
    end
    return rows
end

local function transposed(m)
    local rows = {}
    for j = 1, #m do
        local row = {}
        for i = 1, #m do row[i] = m[i][j] end
        rows[j] = row
    end
    return rows
end

local function product(a, b)
    local columns = transposed(b)
    local n = #a
    local rows = {}
    for i = 1, n do
        local left = a[i]
        local row = {}
        for j = 1, n do
            local right = columns[j]
            local sum = 0.0
            for k = 1, n do sum = sum + left[k] * right[k] end
            row[j] = sum
        end
        rows[i] = row
    end
    return rows
end

local function row_sums(m, weights)
    local sums = {}
    for i, row in ipairs(m) do
        local sum = 0.0
        for j, x in ipairs(row) do sum = sum + x * weights[j] end
        sums[i] = sum
    end
    return sums
end

local n = tonumber(arg[1])
local a, b = matrix(n, 3), matrix(n, 5)
local c = product(a, b)
local ones = {}
for i = 1, n do ones[i] = 1.0 end
local expected = row_sums(a, row_sums(b, ones))
for i, sum in ipairs(row_sums(c, ones)) do assert(sum == expected[i], "the product is wrong") end
local checksum = 0.0
for i = 1, n do checksum = checksum + c[i][i] * i end
print(string.format("%d", checksum * 4.0))
