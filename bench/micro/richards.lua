-- SPDX-License-Identifier: MIT
-- bench/micro/richards.lua: records in tables, linked by int ids, and branches on them. Martin Richards' simulation
-- of an operating system's scheduler with six tasks; n runs of the idle task. Checked against the published counts.
-- Tasks and packets are arenas: tasks[id], packets[id]; NONE is no id.

local NONE = -1

local IDLE, WORKER, HANDLER_A, HANDLER_B, DEVICE_A, DEVICE_B = 1, 2, 3, 4, 5, 6
local KIND_IDLE, KIND_WORKER, KIND_HANDLER, KIND_DEVICE = 0, 1, 2, 3
local PACKET_DEVICE, PACKET_WORK = 0, 1
local DATA_SIZE = 4

local tasks, packets = {}, {}
local task_list, current = NONE, NONE
local queue_count, hold_count = 0, 0

local function add_packet(link, id, kind)
    packets[#packets + 1] = {link = link, id = id, kind = kind, datum = 0, data = {0, 0, 0, 0}}
    return #packets
end

local function add_task(id, priority, queue, kind, first, second)
    tasks[#tasks + 1] = {link = task_list, id = id, priority = priority, queue = queue, kind = kind, held = false,
        suspended = true, runnable = queue ~= NONE, first = first, second = second}
    task_list = id
end

-- packets in queues: `packet` behind the last of `queue`; gives the queue's first

local function append(packet, queue)
    packets[packet].link = NONE
    if queue == NONE then return packet end
    local last = packets[queue]
    while last.link ~= NONE do last = packets[last.link] end
    last.link = packet
    return queue
end

-- what a task asks of the scheduler: each gives the id of the task to run next

local function release(id)
    local task = tasks[id]
    task.held = false
    if task.priority > tasks[current].priority then return id end
    return current
end

local function hold_current()
    hold_count = hold_count + 1
    local task = tasks[current]
    task.held = true
    return task.link
end

local function suspend_current()
    tasks[current].suspended = true
    return current
end

local function send(id)
    local packet = packets[id]
    local receiver = packet.id
    queue_count = queue_count + 1
    packet.link = NONE
    packet.id = current
    local task = tasks[receiver]
    if task.queue == NONE then
        task.queue = id
        task.runnable = true
        if task.priority > tasks[current].priority then return receiver end
    else
        task.queue = append(id, task.queue)
    end
    return current
end

-- the kinds of tasks

-- LuaJIT has no operators for bits, so that each runtime compiles only its own text.
local shifted = (loadstring or load)(jit and [[
local rshift, bxor = require("bit").rshift, require("bit").bxor
return function (register)
    if register % 2 == 0 then return rshift(register, 1) end
    return bxor(rshift(register, 1), 0xd008)
end]] or [[
return function (register)
    if register % 2 == 0 then return register >> 1 end
    return register >> 1 ~ 0xd008
end]])()

local function run_idle(task) -- first: a shift register, second: runs left
    task.second = task.second - 1
    if task.second == 0 then return hold_current() end
    local register = task.first
    task.first = shifted(register)
    if register % 2 == 0 then return release(DEVICE_A) end
    return release(DEVICE_B)
end

local function run_worker(task, id) -- first: whom to send to, second: the last letter
    if id == NONE then return suspend_current() end
    local receiver = HANDLER_A
    if task.first == HANDLER_A then receiver = HANDLER_B end
    task.first = receiver
    local packet = packets[id]
    packet.id = receiver
    packet.datum = 0
    local letter, data = task.second, packet.data
    for i = 1, DATA_SIZE do
        letter = letter + 1
        if letter > 26 then letter = 1 end
        data[i] = letter
    end
    task.second = letter
    return send(id)
end

local function run_handler(task, id) -- first: packets of work, second: packets of devices
    if id ~= NONE then
        if packets[id].kind == PACKET_WORK then
            task.first = append(id, task.first)
        else
            task.second = append(id, task.second)
        end
    end
    local work = task.first
    if work ~= NONE then
        local packet = packets[work]
        local count = packet.datum
        if count == DATA_SIZE then
            task.first = packet.link
            return send(work)
        end
        local device = task.second
        if device ~= NONE then
            task.second = packets[device].link
            packets[device].datum = packet.data[count + 1]
            packet.datum = count + 1
            return send(device)
        end
    end
    return suspend_current()
end

local function run_device(task, id) -- first: the packet it works on
    if id ~= NONE then
        task.first = id
        return hold_current()
    end
    local done = task.first
    if done == NONE then return suspend_current() end
    task.first = NONE
    return send(done)
end

-- the scheduler

local function run_task(task)
    local packet = NONE
    if task.suspended then -- and runnable: a packet woke it
        packet = task.queue
        task.queue = packets[packet].link
        task.suspended = false
        task.runnable = task.queue ~= NONE
    end
    local kind = task.kind
    if kind == KIND_IDLE then
        return run_idle(task)
    elseif kind == KIND_WORKER then
        return run_worker(task, packet)
    elseif kind == KIND_HANDLER then
        return run_handler(task, packet)
    else
        return run_device(task, packet)
    end
end

local function schedule()
    current = task_list
    while current ~= NONE do
        local task = tasks[current]
        if task.held or (task.suspended and not task.runnable) then
            current = task.link
        else
            current = run_task(task)
        end
    end
end

local function three_packets(device)
    local queue = NONE
    for _ = 1, 3 do queue = add_packet(queue, device, PACKET_DEVICE) end
    return queue
end

local count = tonumber(arg[1])
add_task(IDLE, 0, NONE, KIND_IDLE, 1, count)
tasks[IDLE].suspended = false
local work = add_packet(add_packet(NONE, WORKER, PACKET_WORK), WORKER, PACKET_WORK)
add_task(WORKER, 1000, work, KIND_WORKER, HANDLER_A, 0)
add_task(HANDLER_A, 2000, three_packets(DEVICE_A), KIND_HANDLER, NONE, NONE)
add_task(HANDLER_B, 3000, three_packets(DEVICE_B), KIND_HANDLER, NONE, NONE)
add_task(DEVICE_A, 4000, NONE, KIND_DEVICE, NONE, NONE)
add_task(DEVICE_B, 5000, NONE, KIND_DEVICE, NONE, NONE)
schedule()
assert(count ~= 1000 or (queue_count == 2322 and hold_count == 928), "wrong counts")
assert(count ~= 10000 or (queue_count == 23246 and hold_count == 9297), "wrong counts")
print(string.format("%d", queue_count * 1000000 + hold_count))
