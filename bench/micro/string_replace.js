// SPDX-License-Identifier: MIT
//
// bench/micro/string_replace.js: three words replaced in a text of about 100 KB, n times over, by longer, shorter and
// no text. Checked by counting; lengths are in UTF-8, as in the other languages.

'use strict';

const LINE = 'The quick brown fox jumps over the lazy dog; 다람쥐 헌 쳇바퀴에 타고파. <a href="x">fox</a>\n';
const LINES = 1000;

const input = LINE.repeat(LINES);
const inputBytes = Buffer.byteLength(input);
let total = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    const out = input.replaceAll('fox', 'red panda').replaceAll('다람쥐', '쥐').replaceAll('lazy ', '');
    const bytes = Buffer.byteLength(out);
    if (bytes !== inputBytes + LINES * (2 * 6 - 6 - 5)) throw new Error('wrong length');
    total += bytes;
}
console.log(total);
