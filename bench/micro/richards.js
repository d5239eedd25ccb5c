// SPDX-License-Identifier: MIT
//
// bench/micro/richards.js: objects in arrays, linked by int ids, and branches on them. Martin Richards' simulation of
// an operating system's scheduler with six tasks; n runs of the idle task. Checked against the published counts.
// Tasks and packets are arenas: tasks[id], packets[id]; NONE is no id.

'use strict';

const NONE = -1;

const IDLE = 0, WORKER = 1, HANDLER_A = 2, HANDLER_B = 3, DEVICE_A = 4, DEVICE_B = 5;
const KIND_IDLE = 0, KIND_WORKER = 1, KIND_HANDLER = 2, KIND_DEVICE = 3;
const PACKET_DEVICE = 0, PACKET_WORK = 1;
const DATA_SIZE = 4;

const tasks = [], packets = [];
let taskList = NONE, current = NONE;
let queueCount = 0, holdCount = 0;

function addPacket(link, id, kind) {
    packets.push({link, id, kind, datum: 0, data: [0, 0, 0, 0]});
    return packets.length - 1;
}

function addTask(id, priority, queue, kind, first, second) {
    tasks.push({link: taskList, id, priority, queue, kind, held: false, suspended: true, runnable: queue !== NONE,
        first, second});
    taskList = id;
}

// -- packets in queues: `packet` behind the last of `queue`; gives the queue's first

function append(packet, queue) {
    packets[packet].link = NONE;
    if (queue === NONE) return packet;
    let last = packets[queue];
    while (last.link !== NONE) last = packets[last.link];
    last.link = packet;
    return queue;
}

// -- what a task asks of the scheduler: each gives the id of the task to run next

function release(id) {
    const task = tasks[id];
    task.held = false;
    return task.priority > tasks[current].priority ? id : current;
}

function holdCurrent() {
    holdCount++;
    const task = tasks[current];
    task.held = true;
    return task.link;
}

function suspendCurrent() {
    tasks[current].suspended = true;
    return current;
}

function send(id) {
    const packet = packets[id];
    const receiver = packet.id;
    queueCount++;
    packet.link = NONE;
    packet.id = current;
    const task = tasks[receiver];
    if (task.queue === NONE) {
        task.queue = id;
        task.runnable = true;
        if (task.priority > tasks[current].priority) return receiver;
    } else {
        task.queue = append(id, task.queue);
    }
    return current;
}

// -- the kinds of tasks

function shifted(register) {
    if (register % 2 === 0) return register >> 1;
    return register >> 1 ^ 0xd008;
}

function runIdle(task) { // first: a shift register, second: runs left
    task.second--;
    if (task.second === 0) return holdCurrent();
    const register = task.first;
    task.first = shifted(register);
    return release(register % 2 === 0 ? DEVICE_A : DEVICE_B);
}

function runWorker(task, id) { // first: whom to send to, second: the last letter
    if (id === NONE) return suspendCurrent();
    const receiver = task.first === HANDLER_A ? HANDLER_B : HANDLER_A;
    task.first = receiver;
    const packet = packets[id];
    packet.id = receiver;
    packet.datum = 0;
    let letter = task.second;
    for (let i = 0; i < DATA_SIZE; i++) {
        letter++;
        if (letter > 26) letter = 1;
        packet.data[i] = letter;
    }
    task.second = letter;
    return send(id);
}

function runHandler(task, id) { // first: packets of work, second: packets of devices
    if (id !== NONE) {
        if (packets[id].kind === PACKET_WORK) {
            task.first = append(id, task.first);
        } else {
            task.second = append(id, task.second);
        }
    }
    const work = task.first;
    if (work !== NONE) {
        const packet = packets[work];
        const count = packet.datum;
        if (count === DATA_SIZE) {
            task.first = packet.link;
            return send(work);
        }
        const device = task.second;
        if (device !== NONE) {
            task.second = packets[device].link;
            packets[device].datum = packet.data[count];
            packet.datum = count + 1;
            return send(device);
        }
    }
    return suspendCurrent();
}

function runDevice(task, id) { // first: the packet it works on
    if (id !== NONE) {
        task.first = id;
        return holdCurrent();
    }
    const done = task.first;
    if (done === NONE) return suspendCurrent();
    task.first = NONE;
    return send(done);
}

// -- the scheduler

function runTask(task) {
    let packet = NONE;
    if (task.suspended) { // and runnable: a packet woke it
        packet = task.queue;
        task.queue = packets[packet].link;
        task.suspended = false;
        task.runnable = task.queue !== NONE;
    }
    switch (task.kind) {
    case KIND_IDLE: return runIdle(task);
    case KIND_WORKER: return runWorker(task, packet);
    case KIND_HANDLER: return runHandler(task, packet);
    default: return runDevice(task, packet);
    }
}

function schedule() {
    current = taskList;
    while (current !== NONE) {
        const task = tasks[current];
        if (task.held || (task.suspended && !task.runnable)) {
            current = task.link;
        } else {
            current = runTask(task);
        }
    }
}

function threePackets(device) {
    let queue = NONE;
    for (let i = 0; i < 3; i++) queue = addPacket(queue, device, PACKET_DEVICE);
    return queue;
}

const count = Number(process.argv[2]);
addTask(IDLE, 0, NONE, KIND_IDLE, 1, count);
tasks[IDLE].suspended = false;
const work = addPacket(addPacket(NONE, WORKER, PACKET_WORK), WORKER, PACKET_WORK);
addTask(WORKER, 1000, work, KIND_WORKER, HANDLER_A, 0);
addTask(HANDLER_A, 2000, threePackets(DEVICE_A), KIND_HANDLER, NONE, NONE);
addTask(HANDLER_B, 3000, threePackets(DEVICE_B), KIND_HANDLER, NONE, NONE);
addTask(DEVICE_A, 4000, NONE, KIND_DEVICE, NONE, NONE);
addTask(DEVICE_B, 5000, NONE, KIND_DEVICE, NONE, NONE);
schedule();
if ((count === 1000 && (queueCount !== 2322 || holdCount !== 928))
    || (count === 10000 && (queueCount !== 23246 || holdCount !== 9297))) throw new Error('wrong counts');
console.log(queueCount * 1000000 + holdCount);
