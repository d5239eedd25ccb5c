// SPDX-License-Identifier: MIT
//
// bench/micro/string_split.js: 1000 lines of eight fields taken apart, n times over. Checked: the number of fields,
// and that joining gives the text again.

'use strict';

function table() {
    let out = '';
    for (let i = 0; i < 1000; i++) out += `${i},name-${i},10.0.${i % 256}.1,GET,/path/${i}/index.html,200,,end\n`;
    return out;
}

const rounds = Number(process.argv[2]);
const input = table();
let fields = 0, bytes = 0;
for (let round = 0; round < rounds; round++) {
    for (const line of input.split('\n')) {
        if (line === '') continue;
        const parts = line.split(',');
        fields += parts.length;
        bytes += parts[4].length;
        if (round === 0 && parts.join(',') !== line) throw new Error('join does not undo split');
    }
}
if (fields !== rounds * 8000) throw new Error('wrong number of fields');
console.log(fields * 1000 + bytes);
