-- SPDX-License-Identifier: MIT
-- bench/micro/binary_trees.lua: allocating and freeing small tables. Many full trees of depths up to n beside one
-- that lives; each must have 2^(depth + 1) - 1 nodes. Prints the sum of all nodes.

local function build(depth)
    if depth == 0 then return {left = nil, right = nil} end
    return {left = build(depth - 1), right = build(depth - 1)}
end

local function count(node)
    if node.left == nil then return 1 end
    return 1 + count(node.left) + count(node.right)
end

local depth_max = tonumber(arg[1])
local long_lived = build(depth_max)
local sum = 0
for depth = 4, depth_max, 4 do
    local rounds = 2 ^ (depth_max - depth + 2)
    local nodes = 0
    for _ = 1, rounds do nodes = nodes + count(build(depth)) end
    assert(nodes == rounds * (2 ^ (depth + 1) - 1), "wrong number of nodes")
    sum = sum + nodes
end
print(string.format("%d", sum + count(long_lived)))
