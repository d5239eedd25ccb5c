// SPDX-License-Identifier: MIT
//
// bench/micro/map_ints.js: maps with scattered int keys. 20,000 entries put in, looked up, half of them counted up,
// and as many missing ones asked for, n times over.

'use strict';

const ENTRIES = 20000;
const MODULUS = 2147483647;

function key(i) {
    return i * 48271 % MODULUS;
}

let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    const entries = new Map();
    for (let i = 0; i < ENTRIES; i++) entries.set(key(i), i);
    for (let i = 0; i < ENTRIES / 2; i++) {
        const k = key(2 * i);
        entries.set(k, entries.get(k) + 1);
    }
    let found = 0;
    for (let i = 0; i < ENTRIES; i++) found += entries.get(key(i));
    for (let i = ENTRIES; i < 2 * ENTRIES; i++) {
        if (entries.has(key(i))) throw new Error('it is there');
    }
    if (found !== ENTRIES * (ENTRIES - 1) / 2 + ENTRIES / 2) throw new Error('the sum is wrong');
    sum += found + entries.size;
}
console.log(sum);
