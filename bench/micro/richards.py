# SPDX-License-Identifier: MIT
#
# bench/micro/richards.py: objects in lists, linked by int ids, and branches on them. Martin Richards' simulation of
# an operating system's scheduler with six tasks; n runs of the idle task. Checked against the published counts. Tasks
# and packets are arenas: tasks[id], packets[id]; NONE is no id.

import sys

NONE = -1

IDLE, WORKER, HANDLER_A, HANDLER_B, DEVICE_A, DEVICE_B = range(6)
KIND_IDLE, KIND_WORKER, KIND_HANDLER, KIND_DEVICE = range(4)
PACKET_DEVICE, PACKET_WORK = range(2)
DATA_SIZE = 4


class Task:
    __slots__ = ("link", "id", "priority", "queue", "kind", "held", "suspended", "runnable", "first", "second")

    def __init__(self, link, task_id, priority, queue, kind, first, second):
        self.link, self.id, self.priority, self.queue, self.kind = link, task_id, priority, queue, kind
        self.held, self.suspended, self.runnable = False, True, queue != NONE
        self.first, self.second = first, second


class Packet:
    __slots__ = ("link", "id", "kind", "datum", "data")

    def __init__(self, link, receiver, kind):
        self.link, self.id, self.kind = link, receiver, kind
        self.datum = 0
        self.data = [0] * DATA_SIZE


tasks, packets = [], []
task_list = current = NONE
queue_count = hold_count = 0


def add_packet(link, receiver, kind):
    packets.append(Packet(link, receiver, kind))
    return len(packets) - 1


def add_task(task_id, priority, queue, kind, first, second):
    global task_list
    tasks.append(Task(task_list, task_id, priority, queue, kind, first, second))
    task_list = task_id


# -- packets in queues: `packet` behind the last of `queue`; gives the queue's first

def append(packet, queue):
    packets[packet].link = NONE
    if queue == NONE:
        return packet
    last = packets[queue]
    while last.link != NONE:
        last = packets[last.link]
    last.link = packet
    return queue


# -- what a task asks of the scheduler: each gives the id of the task to run next

def release(task_id):
    task = tasks[task_id]
    task.held = False
    return task_id if task.priority > tasks[current].priority else current


def hold_current():
    global hold_count
    hold_count += 1
    task = tasks[current]
    task.held = True
    return task.link


def suspend_current():
    tasks[current].suspended = True
    return current


def send(packet_id):
    global queue_count
    packet = packets[packet_id]
    receiver = packet.id
    queue_count += 1
    packet.link = NONE
    packet.id = current
    task = tasks[receiver]
    if task.queue == NONE:
        task.queue = packet_id
        task.runnable = True
        if task.priority > tasks[current].priority:
            return receiver
    else:
        task.queue = append(packet_id, task.queue)
    return current


# -- the kinds of tasks

def shifted(register):
    if register % 2 == 0:
        return register >> 1
    return register >> 1 ^ 0xd008


def run_idle(task):  # first: a shift register, second: runs left
    task.second -= 1
    if task.second == 0:
        return hold_current()
    register = task.first
    task.first = shifted(register)
    return release(DEVICE_A if register % 2 == 0 else DEVICE_B)


def run_worker(task, packet_id):  # first: whom to send to, second: the last letter
    if packet_id == NONE:
        return suspend_current()
    receiver = HANDLER_B if task.first == HANDLER_A else HANDLER_A
    task.first = receiver
    packet = packets[packet_id]
    packet.id = receiver
    packet.datum = 0
    letter = task.second
    for i in range(DATA_SIZE):
        letter += 1
        if letter > 26:
            letter = 1
        packet.data[i] = letter
    task.second = letter
    return send(packet_id)


def run_handler(task, packet_id):  # first: packets of work, second: packets of devices
    if packet_id != NONE:
        if packets[packet_id].kind == PACKET_WORK:
            task.first = append(packet_id, task.first)
        else:
            task.second = append(packet_id, task.second)
    work = task.first
    if work != NONE:
        packet = packets[work]
        count = packet.datum
        if count == DATA_SIZE:
            task.first = packet.link
            return send(work)
        device = task.second
        if device != NONE:
            task.second = packets[device].link
            packets[device].datum = packet.data[count]
            packet.datum = count + 1
            return send(device)
    return suspend_current()


def run_device(task, packet_id):  # first: the packet it works on
    if packet_id != NONE:
        task.first = packet_id
        return hold_current()
    done = task.first
    if done == NONE:
        return suspend_current()
    task.first = NONE
    return send(done)


# -- the scheduler

def run_task(task):
    packet = NONE
    if task.suspended:  # and runnable: a packet woke it
        packet = task.queue
        task.queue = packets[packet].link
        task.suspended = False
        task.runnable = task.queue != NONE
    kind = task.kind
    if kind == KIND_IDLE:
        return run_idle(task)
    if kind == KIND_WORKER:
        return run_worker(task, packet)
    if kind == KIND_HANDLER:
        return run_handler(task, packet)
    return run_device(task, packet)


def schedule():
    global current
    current = task_list
    while current != NONE:
        task = tasks[current]
        if task.held or (task.suspended and not task.runnable):
            current = task.link
        else:
            current = run_task(task)


def three_packets(device):
    queue = NONE
    for _ in range(3):
        queue = add_packet(queue, device, PACKET_DEVICE)
    return queue


def main(count):
    add_task(IDLE, 0, NONE, KIND_IDLE, 1, count)
    tasks[IDLE].suspended = False
    work = add_packet(add_packet(NONE, WORKER, PACKET_WORK), WORKER, PACKET_WORK)
    add_task(WORKER, 1000, work, KIND_WORKER, HANDLER_A, 0)
    add_task(HANDLER_A, 2000, three_packets(DEVICE_A), KIND_HANDLER, NONE, NONE)
    add_task(HANDLER_B, 3000, three_packets(DEVICE_B), KIND_HANDLER, NONE, NONE)
    add_task(DEVICE_A, 4000, NONE, KIND_DEVICE, NONE, NONE)
    add_task(DEVICE_B, 5000, NONE, KIND_DEVICE, NONE, NONE)
    schedule()
    assert count != 1000 or (queue_count, hold_count) == (2322, 928), "wrong counts"
    assert count != 10000 or (queue_count, hold_count) == (23246, 9297), "wrong counts"
    print(queue_count * 1000000 + hold_count)


main(int(sys.argv[1]))
