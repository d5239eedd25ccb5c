-- SPDX-License-Identifier: MIT
-- bench/micro/string_replace.lua: three words replaced in a text of about 100 KB, n times over, by longer, shorter
-- and no text. Checked by counting. (No word has a magic character, so that gsub takes them as they are.)

local gsub = string.gsub

local LINE = "The quick brown fox jumps over the lazy dog; 다람쥐 헌 쳇바퀴에 타고파. <a href=\"x\">fox</a>\n"
local LINES = 1000

local input = string.rep(LINE, LINES)
local total = 0
for _ = 1, tonumber(arg[1]) do
    local out = gsub(input, "fox", "red panda")
    out = gsub(out, "다람쥐", "쥐")
    out = gsub(out, "lazy ", "")
    assert(#out == #input + LINES * (2 * 6 - 6 - 5), "wrong length")
    total = total + #out
end
print(string.format("%d", total))
