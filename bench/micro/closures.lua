-- SPDX-License-Identifier: MIT
-- bench/micro/closures.lua: making and calling closures. A chain of three composed functions made anew n times, and
-- 100 numbers mapped, filtered and summed through function arguments n times; against the same without functions.

local function adder(amount) return function (x) return x + amount end end
local function compose(f, g) return function (x) return g(f(x)) end end

local function map_list(items, f)
    local out = {}
    for i = 1, #items do out[i] = f(items[i]) end
    return out
end

local function filter(items, keeps)
    local out = {}
    for i = 1, #items do
        local item = items[i]
        if keeps(item) then out[#out + 1] = item end
    end
    return out
end

local function fold(items, start, f)
    local result = start
    for i = 1, #items do result = f(result, items[i]) end
    return result
end

local function directly(count, n)
    local sum = 0
    for item = 0, count - 1 do
        if (item + 2 * n + 1) % 3 == 0 then sum = sum + item + 2 * n + 1 end
    end
    return sum
end

local numbers = {}
for i = 1, 100 do numbers[i] = i - 1 end
local sum = 0
for n = 0, tonumber(arg[1]) - 1 do
    local shift = compose(adder(n), compose(adder(1), adder(n)))
    local chosen = filter(map_list(numbers, shift), function (x) return x % 3 == 0 end)
    sum = sum + fold(chosen, 0, function (a, b) return a + b end)
    if n % 1000 == 0 then
        assert(fold(chosen, 0, function (a, b) return a + b end) == directly(100, n), "wrong sum")
    end
end
print(string.format("%d", sum))
