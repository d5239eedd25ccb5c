-- SPDX-License-Identifier: MIT
-- bench/micro/json_round_trip.lua: reading and writing JSON. A document of 500 routes is read, written and read
-- again, n times over; what comes back must be what was read. Lua has no JSON of its own: this is the C module
-- lua-cjson.

local found, cjson = pcall(require, "cjson")
if not found then
    io.stderr:write("not available: the module cjson (package lua-cjson)\n")
    os.exit(77)
end

local ROUTE = [[{"id": NUMBER, "name": "service-NUMBER", "domain": "service-NUMBER.example.org",
 "note": "줄\nline \"NUMBER\" \\ end",
 "enabled": true, "fallback": null, "weights": [1, 2.5, -3, NUMBER], "limits": {"requests": 100, "bytes": 1048576}}]]
local ROUTES = 500

local function document()
    local routes = {}
    for i = 0, ROUTES - 1 do routes[i + 1] = ROUTE:gsub("NUMBER", i) end
    return '{"version": 1, "routes": [' .. table.concat(routes, ",\n") .. "]}"
end

local function is_equal(a, b)
    if type(a) ~= "table" or type(b) ~= "table" then return a == b end
    for key, value in pairs(a) do
        if not is_equal(value, b[key]) then return false end
    end
    for key in pairs(b) do
        if a[key] == nil then return false end
    end
    return true
end

local function weigh(read)
    local sum = 0
    local routes = read.routes
    for i = 1, #routes do
        local route = routes[i]
        sum = sum + route.id + route.weights[4] + #route.note + route.limits.requests
    end
    return sum
end

local input = document()
local sum = 0
for round = 1, tonumber(arg[1]) do
    local read = cjson.decode(input)
    local again = cjson.decode(cjson.encode(read))
    assert(round > 1 or is_equal(again, read), "the round trip changed the document")
    sum = sum + weigh(again)
end
print(string.format("%d", sum))
