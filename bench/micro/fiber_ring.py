# SPDX-License-Identifier: MIT
#
# bench/micro/fiber_ring.py: making, switching and joining tasks (asyncio). A token goes along a chain of 100 tasks
# and back, n times: each task starts the next one and waits for what it gives.

import asyncio
import sys

LENGTH = 100


async def link(position, token):
    if position == LENGTH:
        return token + 1
    return await asyncio.create_task(link(position + 1, token + 1)) + 1


async def main(rounds):
    token = 0
    for _ in range(rounds):
        token = await link(0, token)
    assert token == rounds * (2 * LENGTH + 1), "the token is wrong"
    print(token)


asyncio.run(main(int(sys.argv[1])))
