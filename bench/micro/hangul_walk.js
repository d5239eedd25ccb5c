// SPDX-License-Identifier: MIT
//
// bench/micro/hangul_walk.js: bytes of a buffer and integer arithmetic. Decodes UTF-8 and splits every Hangul
// syllable into lead, vowel and tail, n times over the same text; the counts of jamo must rise by the same amount
// each time.

'use strict';

const TEXT = '모든 국민은 인간으로서의 존엄과 가치를 가지며, 행복을 추구할 권리를 가진다. '
    + '국가는 개인이 가지는 불가침의 기본적 인권을 확인하고 이를 보장할 의무를 진다. (Constitution, art. 10) 😀\n';

const SYLLABLE_FIRST = 0xac00, SYLLABLE_LAST = 0xd7a3, TAILS = 28, VOWELS_TAILS = 588;

function walk(bytes, counts) {
    const {leads, vowels, tails} = counts;
    let at = 0;
    while (at < bytes.length) {
        const lead = bytes[at];
        let code = lead;
        if (lead < 0x80) {
            at += 1;
        } else if (lead < 0xe0) {
            code = (lead - 0xc0) * 64 + (bytes[at + 1] - 0x80);
            at += 2;
        } else if (lead < 0xf0) {
            code = ((lead - 0xe0) * 64 + (bytes[at + 1] - 0x80)) * 64 + (bytes[at + 2] - 0x80);
            at += 3;
        } else {
            code = (((lead - 0xf0) * 64 + (bytes[at + 1] - 0x80)) * 64 + (bytes[at + 2] - 0x80)) * 64
                + (bytes[at + 3] - 0x80);
            at += 4;
        }
        if (code >= SYLLABLE_FIRST && code <= SYLLABLE_LAST) {
            const index = code - SYLLABLE_FIRST;
            leads[Math.floor(index / VOWELS_TAILS)]++;
            vowels[Math.floor(index % VOWELS_TAILS / TAILS)]++;
            tails[index % TAILS]++;
        } else {
            counts.others += code;
        }
    }
    return counts;
}

function weigh(counts) {
    let sum = counts.others;
    counts.leads.forEach((count, i) => { sum += count * (i + 1); });
    counts.vowels.forEach((count, i) => { sum += count * (i + 1) * 100; });
    counts.tails.forEach((count, i) => { sum += count * (i + 1) * 10000; });
    return sum;
}

function empty() {
    return {leads: new Array(19).fill(0), vowels: new Array(21).fill(0), tails: new Array(28).fill(0), others: 0};
}

const rounds = Number(process.argv[2]);
const input = Buffer.from(TEXT.repeat(50));
const once = weigh(walk(input, empty()));
let counts = empty();
for (let round = 0; round < rounds; round++) counts = walk(input, counts);
if (weigh(counts) !== once * rounds) throw new Error('the rounds differ');
console.log(once * rounds);
