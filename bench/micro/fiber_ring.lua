-- SPDX-License-Identifier: MIT
-- bench/micro/fiber_ring.lua: making, switching and joining coroutines. A token goes along a chain of 100 coroutines
-- and back, n times: each one makes the next, resumes it and takes what it returns.

local create, resume = coroutine.create, coroutine.resume

local LENGTH = 100

local function link(position, token)
    if position == LENGTH then return token + 1 end
    local _, back = resume(create(link), position + 1, token + 1)
    return back + 1
end

local rounds = tonumber(arg[1])
local token = 0
for _ = 1, rounds do token = link(0, token) end
assert(token == rounds * (2 * LENGTH + 1), "the token is wrong")
print(string.format("%d", token))
