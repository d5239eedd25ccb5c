-- SPDX-License-Identifier: MIT
-- bench/micro/hangul_walk.lua: bytes of a string and integer arithmetic. Decodes UTF-8 and splits every Hangul
-- syllable into lead, vowel and tail, n times over the same text; the counts of jamo must rise by the same amount
-- each time. The walk is text, because `//` is no operator of LuaJIT: there it becomes math.floor.

local TEXT = "모든 국민은 인간으로서의 존엄과 가치를 가지며, 행복을 추구할 권리를 가진다. "
    .. "국가는 개인이 가지는 불가침의 기본적 인권을 확인하고 이를 보장할 의무를 진다. (Constitution, art. 10) 😀\n"

local WALK = [[
local byte, floor = string.byte, math.floor
local SYLLABLE_FIRST, SYLLABLE_LAST, TAILS, VOWELS_TAILS = 0xac00, 0xd7a3, 28, 588

return function (bytes, counts)
    local leads, vowels, tails = counts.leads, counts.vowels, counts.tails
    local at, limit = 1, #bytes
    while at <= limit do
        local lead = byte(bytes, at)
        local code = lead
        if lead < 0x80 then
            at = at + 1
        elseif lead < 0xe0 then
            code = (lead - 0xc0) * 64 + (byte(bytes, at + 1) - 0x80)
            at = at + 2
        elseif lead < 0xf0 then
            code = ((lead - 0xe0) * 64 + (byte(bytes, at + 1) - 0x80)) * 64 + (byte(bytes, at + 2) - 0x80)
            at = at + 3
        else
            code = (((lead - 0xf0) * 64 + (byte(bytes, at + 1) - 0x80)) * 64 + (byte(bytes, at + 2) - 0x80)) * 64
                + (byte(bytes, at + 3) - 0x80)
            at = at + 4
        end
        if code >= SYLLABLE_FIRST and code <= SYLLABLE_LAST then
            local index = code - SYLLABLE_FIRST
            local rest = index % VOWELS_TAILS
            local jamo = index // VOWELS_TAILS + 1
            leads[jamo] = leads[jamo] + 1
            jamo = rest // TAILS + 1
            vowels[jamo] = vowels[jamo] + 1
            jamo = index % TAILS + 1
            tails[jamo] = tails[jamo] + 1
        else
            counts.others = counts.others + code
        end
    end
    return counts
end
]]
if jit then WALK = WALK:gsub("([%w_]+) // ([%w_]+)", "floor(%1 / %2)") end
local walk = (loadstring or load)(WALK)()

local function zeros(count)
    local list = {}
    for i = 1, count do list[i] = 0 end
    return list
end

local function weigh(counts)
    local sum = counts.others
    for i, count in ipairs(counts.leads) do sum = sum + count * i end
    for i, count in ipairs(counts.vowels) do sum = sum + count * i * 100 end
    for i, count in ipairs(counts.tails) do sum = sum + count * i * 10000 end
    return sum
end

local function empty() return {leads = zeros(19), vowels = zeros(21), tails = zeros(28), others = 0} end

local rounds = tonumber(arg[1])
local input = string.rep(TEXT, 50)
local once = weigh(walk(input, empty()))
local counts = empty()
for _ = 1, rounds do counts = walk(input, counts) end
assert(weigh(counts) == once * rounds, "the rounds differ")
print(string.format("%d", once * rounds))
