// SPDX-License-Identifier: MIT
//
// bench/micro/map_strings.js: maps with string keys. Counts 20,000 words of which 5000 differ, looks all of them up
// again and as many that are missing, n times over.

'use strict';

const DISTINCT = 5000;
const WORDS = 20000;

const all = [], missing = [];
for (let i = 0; i < WORDS; i++) all.push(`word-${i * 7919 % DISTINCT}`);
for (let i = 0; i < DISTINCT; i++) missing.push(`other-${i}`);
let sum = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    const counts = new Map();
    for (const word of all) counts.set(word, (counts.get(word) ?? 0) + 1);
    let found = 0;
    for (let i = 0; i < WORDS; i++) found += counts.get(all[i]) * (i % 7);
    for (const word of missing) {
        if (counts.has(word)) throw new Error('it is there');
    }
    if (counts.size !== DISTINCT) throw new Error('wrong number of words');
    sum += found;
}
console.log(sum);
