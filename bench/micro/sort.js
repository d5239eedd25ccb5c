// SPDX-License-Identifier: MIT
//
// bench/micro/sort.js: the library's sort over 20,000 ints, as many floats and 5000 strings in no order, n times
// over. Each result is checked to rise.

'use strict';

const COUNT = 20000;
const WORDS = 5000;

function isRising(items) {
    for (let i = 1; i < items.length; i++) {
        if (items[i] < items[i - 1]) return false;
    }
    return true;
}

let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    let seed = 42 + round;
    const ints = [], floats = [], words = [];
    for (let i = 0; i < COUNT; i++) {
        seed = (seed * 48271) % 2147483647;
        ints.push(seed % 1000000);
        floats.push(seed * 0.001);
        if (i < WORDS) words.push(`key-${seed % 100000}`);
    }
    ints.sort((a, b) => a - b);
    floats.sort((a, b) => a - b);
    words.sort();
    if (!isRising(ints) || !isRising(floats) || !isRising(words)) throw new Error('not in order');
    sum += ints[COUNT / 2] + Math.floor(floats[10]) + words[0].length;
}
console.log(sum);
