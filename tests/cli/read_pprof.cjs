// Reads a file with the npm package pprof-format.
//   node read_pprof.cjs PACKAGE FILE   prints {types, period, samples: [{stack: [[NAME, FILE, LINE]...], values, labels}]}
const fs = require('node:fs');
const path = require('node:path');
const zlib = require('node:zlib');

const [folder, file] = process.argv.slice(2);
const { Profile } = require(path.resolve(folder, 'dist', 'commonjs', 'index.js'));
const profile = Profile.decode(zlib.gunzipSync(fs.readFileSync(file)));
const text = id => profile.stringTable.strings[Number(id)];
const byId = list => new Map(list.map(one => [Number(one.id), one]));
const locations = byId(profile.location), functions = byId(profile.function), mappings = byId(profile.mapping);

function frames(id) {
  const location = locations.get(Number(id));
  if (Number(location.mappingId) && !mappings.has(Number(location.mappingId)))
    throw new Error(`location ${id} names no mapping`);
  return location.line.map(line => {
    const f = functions.get(Number(line.functionId));
    return [text(f.name), text(f.filename), Number(line.line)];
  });
}

console.log(JSON.stringify({
  types: profile.sampleType.map(type => [text(type.type), text(type.unit)]),
  period: [text(profile.periodType.type), text(profile.periodType.unit), Number(profile.period)],
  mappings: profile.mapping.map(m => [text(m.filename), text(m.buildId)]),
  samples: profile.sample.map(sample => ({
    stack: sample.locationId.flatMap(frames),
    values: sample.value.map(Number),
    labels: Object.fromEntries(sample.label.map(l => [text(l.key), Number(l.str) ? text(l.str) : Number(l.num)])),
  })),
}));
