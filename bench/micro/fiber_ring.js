// SPDX-License-Identifier: MIT
//
// bench/micro/fiber_ring.js: making, switching and joining asynchronous calls. A token goes along a chain of 100
// calls and back, n times: each one starts the next and awaits what it gives, and has let others run before.

'use strict';

const LENGTH = 100;

async function link(position, token) {
    await null;
    if (position === LENGTH) return token + 1;
    return await link(position + 1, token + 1) + 1;
}

async function main(rounds) {
    let token = 0;
    for (let round = 0; round < rounds; round++) token = await link(0, token);
    if (token !== rounds * (2 * LENGTH + 1)) throw new Error('the token is wrong');
    console.log(token);
}

main(Number(process.argv[2]));
