-- SPDX-License-Identifier: MIT
-- bench/micro/ref_graph.lua: shared mutable nodes with cycles between them. Makes a graph of 1000 nodes with three
-- edges each and walks it ten times from node 0, n times over. Every walk must reach the same number of nodes.

local NODES = 1000

local function build()
    local nodes = {}
    for i = 0, NODES - 1 do nodes[i] = {id = i, mark = 0, edges = {}} end
    for i = 0, NODES - 1 do
        local edges = nodes[i].edges
        edges[1] = nodes[(i + 1) % NODES]
        edges[2] = nodes[(i + i * 7 + 3) % NODES]
        edges[3] = nodes[(i + i * i + 11) % NODES]
    end
    return nodes[0]
end

local function walk(start, mark)
    start.mark = mark
    local reached, count, at, sum = {start}, 1, 0, 0
    while at < count do
        at = at + 1
        local node = reached[at]
        sum = sum + node.id
        local edges = node.edges
        for i = 1, #edges do
            local target = edges[i]
            if target.mark ~= mark then
                target.mark = mark
                count = count + 1
                reached[count] = target
            end
        end
    end
    return sum * 1000 + at % 1000
end

local sum = 0
for _ = 1, tonumber(arg[1]) do
    local start = build()
    local first = walk(start, 1)
    for mark = 2, 10 do assert(walk(start, mark) == first, "a walk missed nodes") end
    sum = sum + first
end
print(string.format("%d", sum))
