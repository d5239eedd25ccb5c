-- SPDX-License-Identifier: MIT
-- bench/micro/havlak.lua: recursion over a graph, union-find, sets as tables. Finds the loops of a control flow graph
-- (Havlak, "Nesting of reducible and irreducible loops", 1997): ten times in one of 11 blocks, then n times in one of
-- 5213. The number of loops is checked against the published one. Blocks, nodes and loops are arenas named by int
-- ids; NONE is no id.

local NONE = -1

local NON_HEADER, REDUCIBLE, SELF, IRREDUCIBLE = 0, 1, 2, 3

local OTHER_MAX = 32768 -- predecessors of one node, beyond which the search gives up

local blocks = {}
local nodes = {}  -- in the order of a depth-first walk: a node's id is its place in it
local number = {} -- block to node
local loops = {}

-- the graph: block 0 is blocks[1]

local function connect(from, to)
    while #blocks < from or #blocks < to do blocks[#blocks + 1] = {in_edges = {}, out_edges = {}} end
    local out_edges, in_edges = blocks[from].out_edges, blocks[to].in_edges
    out_edges[#out_edges + 1] = to
    in_edges[#in_edges + 1] = from
end

local function build_straight(from, count)
    for i = 0, count - 1 do connect(from + i, from + i + 1) end
    return from + count
end

local function build_diamond(from)
    connect(from, from + 1)
    connect(from, from + 2)
    connect(from + 1, from + 3)
    connect(from + 2, from + 3)
    return from + 3
end

local function build_base_loop(from)
    local header = build_straight(from, 1)
    local diamond1 = build_diamond(header)
    local between = build_straight(diamond1, 1)
    local diamond2 = build_diamond(between)
    local footer = build_straight(diamond2, 1)
    connect(diamond2, between)
    connect(diamond1, header)
    connect(footer, from)
    return build_straight(footer, 1)
end

local function build_small()
    blocks = {{in_edges = {}, out_edges = {}}}
    build_base_loop(1)
    connect(1, 3)
end

local function build_large(outer, middle, inner)
    local n = 3
    for _ = 1, outer do
        connect(3, n + 1)
        n = n + 1
        for _ = 1, middle do
            local top = n
            n = build_straight(n, 1)
            for _ = 1, inner do n = build_base_loop(n) end
            local bottom = build_straight(n, 1)
            connect(n, top)
            n = bottom
        end
        connect(n, 2)
    end
end

-- union-find

local function find_set(id)
    local root = id
    while nodes[root].parent ~= root do root = nodes[root].parent end
    local node = nodes[id]
    while node.parent ~= root do
        local next = node.parent
        node.parent = root
        node = nodes[next]
    end
    return root
end

-- the search

local function walk(block)
    local me = #nodes + 1
    number[block] = me
    local node = {parent = me, block = block, loop_id = NONE, last = NONE, header = 0, type = NON_HEADER, back = {},
        other = {}}
    nodes[me] = node
    local targets = blocks[block].out_edges
    for i = 1, #targets do
        if number[targets[i]] == NONE then walk(targets[i]) end
    end
    node.last = #nodes
end

local function is_ancestor(w, v) return w <= v and v <= nodes[w].last end

local function classify_edges()
    for w = 1, #nodes do
        local node = nodes[w]
        local sources = blocks[node.block].in_edges
        for i = 1, #sources do
            local v = number[sources[i]]
            if v ~= NONE then
                if is_ancestor(w, v) then
                    node.back[#node.back + 1] = v
                elseif not node.other[v] then
                    node.other[v] = true
                    node.other_count = (node.other_count or 0) + 1
                end
            end
        end
    end
end

local function contains(list, id)
    for i = 1, #list do
        if list[i] == id then return true end
    end
    return false
end

-- The nodes of the loop whose header is w; nil when it has too many predecessors.
local function collect_body(w)
    local pool = {}
    local header = nodes[w]
    for i = 1, #header.back do
        local v = header.back[i]
        if v == w then
            header.type = SELF
        else
            pool[#pool + 1] = find_set(v)
        end
    end
    if #pool > 0 then header.type = REDUCIBLE end
    local at = 1
    while at <= #pool do
        local x = nodes[pool[at]]
        at = at + 1
        if (x.other_count or 0) > OTHER_MAX then return nil end
        for y in pairs(x.other) do
            local root = find_set(y)
            if not is_ancestor(w, root) then
                header.type = IRREDUCIBLE
                if not header.other[root] then
                    header.other[root] = true
                    header.other_count = (header.other_count or 0) + 1
                end
            elseif root ~= w and not contains(pool, root) then
                pool[#pool + 1] = root
            end
        end
    end
    return pool
end

local function make_loop(w, pool)
    local header = nodes[w]
    local id = #loops + 1
    local loop = {header = header.block, is_reducible = header.type ~= IRREDUCIBLE, parent = NONE, blocks = 0}
    loops[id] = loop
    header.loop_id = id
    for i = 1, #pool do
        local node = nodes[pool[i]]
        node.header = w
        node.parent = w
        if node.loop_id ~= NONE then
            loops[node.loop_id].parent = id
        else
            loop.blocks = loop.blocks + 1
        end
    end
end

local function find_loops()
    nodes, number = {}, {}
    for i = 1, #blocks do number[i] = NONE end
    walk(1)
    classify_edges()
    for w = #nodes, 1, -1 do
        local pool = collect_body(w)
        if pool == nil then return end
        if #pool > 0 or nodes[w].type == SELF then make_loop(w, pool) end
    end
end

local function weigh()
    local sum = 0
    for i = 1, #loops do
        local loop = loops[i]
        local depth, parent = 1, loop.parent
        while parent ~= NONE do
            depth = depth + 1
            parent = loops[parent].parent
        end
        sum = sum + depth * 10 + loop.blocks
        if loop.is_reducible then sum = sum + 1000 end
    end
    return sum
end

local rounds = tonumber(arg[1])
build_small()
for _ = 1, 10 do find_loops() end
build_large(10, 10, 5)
local sum = 0
for i = 1, rounds do
    if i > 1 then loops = {} end
    find_loops()
    if i == 1 then assert(#loops + 1 == 1632 and #blocks == 5213, #loops .. " loops") end
    sum = sum + weigh()
end
print(string.format("%d", sum))
