// SPDX-License-Identifier: MIT
//
// bench/micro/string_build.js: a long text made of small pieces, ints among them: 1000 lines, n times over. Lengths
// are in UTF-8, as in the other languages.

'use strict';

const NAMES = ['alpha', 'beta', 'gamma', 'delta', '한글'];

let total = 0;
const rounds = Number(process.argv[2]);
for (let round = 0; round < rounds; round++) {
    let out = '';
    let expected = 0;
    for (let i = 0; i < 1000; i++) {
        const name = NAMES[i % 5];
        out += `line ${i}: ${name} = ${i * round};\n`;
        expected += name.length + 12;
    }
    const bytes = Buffer.byteLength(out); // also makes one flat text of the pieces
    if (out.slice(0, 7) !== 'line 0:' || bytes < expected) throw new Error('the text is wrong');
    total += bytes;
}
console.log(total);
