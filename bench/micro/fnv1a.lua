-- SPDX-License-Identifier: MIT
-- bench/micro/fnv1a.lua: bytes of a string and wrapping 64-bit arithmetic. The FNV-1a hash of 64 KiB, n times over;
-- checked against the published hash of "foobar". Lua 5.4 has 64-bit integers and operators, LuaJIT has them in ffi
-- and bit: the functions that use them are text, so that each runtime compiles only its own.

local LUA_54 = [[
local byte = string.byte
local function fnv1a(bytes, first)
    local hash = 0xcbf29ce484222325
    for i = first, #bytes do hash = (hash ~ byte(bytes, i)) * 0x100000001b3 end
    return hash
end
local function fold(sum, hash) return sum ~ ((hash >> 11) | -((hash >> 63) << 53)) end
return fnv1a, fold, 0x85944171f73967e8, function (sum) return string.format("%d", sum & 0xfffffffffffff) end
]]

local LUAJIT = [[
local bit = require("bit")
local byte, bxor = string.byte, bit.bxor
local function fnv1a(bytes, first)
    local hash = 0xcbf29ce484222325ULL
    for i = first, #bytes do hash = bxor(hash, byte(bytes, i)) * 0x100000001b3ULL end
    return hash
end
local function fold(sum, hash) return bxor(sum, bit.arshift(hash, 11)) end
return fnv1a, fold, 0x85944171f73967e8ULL, function (sum)
    return string.format("%.0f", tonumber(bit.band(sum, 0xfffffffffffffULL)))
end
]]

local fnv1a, fold, foobar, decimal = assert((loadstring or load)(jit and LUAJIT or LUA_54))()
assert(fnv1a("foobar", 1) == foobar, "the hash is wrong")
local input = string.rep("The quick brown fox jumps over the lazy dog. 다람쥐 헌 쳇바퀴", 1024)
local sum = 0
for i = 1, tonumber(arg[1]) do sum = fold(sum, fnv1a(input, i)) end
print(decimal(sum))
