-- SPDX-License-Identifier: MIT
-- bench/micro/route_policy.lua: the gateway's decision (programs/gateway/routes.han) without the network. Cuts host
-- and path out of a request's head, looks up the host among the services, walks the path's segments through the
-- service's 10 prefixes, and edits two fields of the request. Arguments: decisions, services. The answer to each of
-- the 1024 different requests is checked against a search through all prefixes.

local find, sub = string.find, string.sub

local HEADS = 1024
local PREFIXES = {"/api", "/api/v1", "/api/v2/users", "/static", "/static/img", "/admin", "/health", "/login",
    "/docs/guide", "/ws"}
local PATHS = {"/api/v1/items/42", "/api/v2/users/7", "/static/img/logo.png", "/", "/docs/guide/start", "/docs/other",
    "/index.html", "/admin", "/api/v3", "/login/now"}

local sites = {}
local not_found = {upstream = "", number = 0}

local function host_of(service) return "service-" .. service .. ".example.org" end

local function add(host, prefix, rule)
    local site = sites[host]
    if not site then
        site = {whole = nil, prefixes = nil}
        sites[host] = site
    end
    if prefix == "" then
        site.whole = rule
        return
    end
    if not site.prefixes then site.prefixes = {} end
    local border = find(prefix, "/", 2, true)
    while border do
        local shorter = sub(prefix, 1, border - 1)
        if site.prefixes[shorter] == nil then site.prefixes[shorter] = false end
        border = find(prefix, "/", border + 1, true)
    end
    site.prefixes[prefix] = rule
end

local function configure(services)
    for service = 0, services - 1 do
        local host = host_of(service)
        add(host, "", {upstream = "http://10.0.0.1:8080", number = service * 11 + 1})
        for index, prefix in ipairs(PREFIXES) do
            add(host, prefix, {upstream = "http://10.0.0." .. index + 1 .. ":8080", number = service * 11 + index + 1})
        end
    end
end

-- one decision

local function by_path(site, path)
    local best = site.whole
    local prefixes = site.prefixes
    if not prefixes then return best end
    local border = 1
    while border and border <= #path do
        border = find(path, "/", border + 1, true)
        local prefix = path
        if border then prefix = sub(path, 1, border - 1) end
        local found = prefixes[prefix]
        if found == nil then return best end
        if found then best = found end
    end
    return best
end

local function decide(request)
    local rule = not_found
    local site = sites[request.host]
    if site then rule = by_path(site, request.path) end
    request.upstream = rule.upstream
    request.rule = rule.number
    return request
end

local function decide_head(head)
    local bytes, host_end = head.bytes, head.host_end
    return decide({host = sub(bytes, 1, host_end), path = sub(bytes, host_end + 1), upstream = nil, rule = 0})
end

-- what it is measured and checked with

local function rule_by_search(service, services, path)
    if service >= services then return 0 end
    local best, longest = service * 11 + 1, 0
    for index, prefix in ipairs(PREFIXES) do
        local covers = path == prefix or sub(path, 1, #prefix + 1) == prefix .. "/"
        if covers and #prefix > longest then
            best = service * 11 + index + 1
            longest = #prefix
        end
    end
    return best
end

local decisions, services = tonumber(arg[1]), tonumber(arg[2])
configure(services)
local heads = {}
for i = 0, HEADS - 1 do
    local service = i * 7919 % (services + (services - services % 100) / 100 + 1) -- one in a hundred is not there
    local host = host_of(string.format("%d", service))
    local path = PATHS[i % #PATHS + 1]
    heads[i + 1] = {bytes = host .. path, host_end = #host}
    assert(decide_head(heads[i + 1]).rule == rule_by_search(service, services, path), host .. path)
end
local sum, at = 0, 1
for _ = 1, decisions do
    sum = sum + decide_head(heads[at]).rule
    at = at + 1
    if at > HEADS then at = 1 end
end
print(string.format("%d", sum))
