// Reads files with the importer of the npm package speedscope, which only comes inside the page's script: that is run
// with a page that swallows everything, and its importer is picked up when the script defines it.
//   node read_speedscope.mjs PACKAGE FILE...   prints [[{name, unit, total, frames: {NAME: [self, total]}}, ...], ...]
import fs from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';

const [folder, ...files] = process.argv.slice(2);
const release = path.join(folder, 'dist', 'release');
const script = fs.readdirSync(release).find(name => /^speedscope.*\.js$/.test(name));

const anything = () => new Proxy(function () {}, {
  get: (target, key) => key === Symbol.toPrimitive ? () => '' : key === 'length' ? 0 :
    key === 'then' || key === Symbol.iterator ? undefined : anything(),
  apply: anything,
  construct: anything,
  set: () => true,
});
const quiet = Object.fromEntries(['log', 'warn', 'error', 'time', 'timeEnd', 'assert'].map(name => [name, () => {}]));
let importer;
const page = vm.createContext({
  TextDecoder, TextEncoder, URL, Blob, performance, setTimeout, clearTimeout, console: quiet,
  self: anything(), window: anything(), document: anything(), navigator: anything(), location: anything(),
  localStorage: anything(), matchMedia: anything(), requestAnimationFrame() {}, addEventListener() {},
  HTMLElement: class {}, FileReader: class {}, Image: class {},
  found(getter) { importer = getter; },
});
vm.runInContext(`{
  const define = Object.defineProperty;
  Object.defineProperty = (target, key, how) => {
    if (key === 'importProfileGroupFromText') found(how.get);
    return define(target, key, how);
  };
}`, page);
try {
  vm.runInContext(fs.readFileSync(path.join(release, script), 'utf8'), page);
} catch (problem) {
  // Drawing on such a page fails in the end; the importer is there by then, or the next lines fail.
}
await new Promise(done => setTimeout(done, 0));

const answers = [];
for (const file of files) {
  const group = await importer()(path.basename(file), fs.readFileSync(file, 'utf8'));
  answers.push(group.profiles.map(profile => {
    const frames = {};
    profile.forEachFrame(frame => { frames[frame.name] = [frame.getSelfWeight(), frame.getTotalWeight()]; });
    return { name: profile.getName(), unit: profile.getWeightUnit(), total: profile.getTotalWeight(), frames };
  }));
}
console.log(JSON.stringify(answers));
